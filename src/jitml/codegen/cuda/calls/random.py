"""Random draws: how are numbers drawn on a GPU, the same ones as NumPy's?

A generator's state lives on the host. Uniform numbers of a PCG64 are computed on the device, where each thread jumps to its own
states; the host hands over the state and moves its generator on. All others are drawn on the host and copied: how many steps they
take depends on what comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitml.codegen.cuda.calls.plan import Array, CallPlan, HostWork, blocks_for
from jitml.codegen.cuda.calls.text import entry, number_type, read, template, written
from jitml.codegen.cuda.module import Launch
from jitml.codegen.cuda.target import THREADS
from jitml.ir import ops
from jitml.ir.ops.random import DISTRIBUTIONS, routine
from jitml.ir.run_state import generator_at
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call, KernelProgram
from jitml.records import dataclass, replace

_EACH = 8  # numbers worth a thread's jump to its first state
_FACTOR = 0x2360ED051FC65DA44385DF649FCCF645
_MASK = (1 << 128) - 1
_ORDER_WORDS = 14  # of `ji_pcg_order`


def plan_random(call: Call, program: KernelProgram, name: str) -> CallPlan:
    """writes[0] = reads[0], a generator's address; writes[1] = numbers."""
    address, numbers = (program.buffers[n] for n in call.writes)
    numbers = replace(numbers, shape=(numbers.size,))
    legacy = call.params["routine"].startswith("jitml_legacy_")
    (kind,) = (d for d in DISTRIBUTIONS if routine(d, legacy, numbers.dtype) == call.params["routine"])
    reads = tuple(program.buffers[n] for n in call.reads)
    order = Buffer(f"{name}_order", np.dtype(np.uint64), (_ORDER_WORDS,))
    blocks = blocks_for(max(1, numbers.size // _EACH))
    draw = _HostDraw(kind, legacy, call.params["count"], blocks * THREADS, (address.name, numbers.name, order.name))
    what = f"{kind} of {'RandomState' if legacy else 'Generator'}"
    source = call.sources[0] if call.sources else None
    if kind != "uniform":
        return CallPlan(work=(HostWork(what, reads, (address, numbers), draw, source),))
    element = number_type(numbers.dtype)
    body = ["if (order->draws) ji_pcg_fill(y, *order);"]
    text = entry(name, [written(element, "y"), read("ji_pcg_order", "order")], body, f"{numbers.name} = uniform numbers")
    work = HostWork(what, reads, (address, numbers, order), draw, source)
    launch = Launch(name, blocks, THREADS, 0, (numbers.name, order.name))
    return CallPlan(text, (template("random"),), (work, launch), (order,))


@dataclass(frozen=True, slots=True)
class _HostDraw:
    """What the host does for a draw.

    Args:
        count: of numbers; None if the last read tells.
        stride: threads of the grid that computes them, if there is one.
        names: of what it writes: the address, the numbers, the order to the device.
    """

    kind: str
    legacy: bool
    count: int | None
    stride: int
    names: tuple[str, ...]

    def __call__(self, reads: Sequence[Array], writes: Sequence[Array]) -> Sequence[str]:
        address, *rest = (int(x) for x in reads)
        count = rest.pop() if self.count is None else self.count
        writes[0][...] = address
        generator = generator_at(address)
        bits = generator._bit_generator if self.legacy else generator.bit_generator
        if len(writes) == 3:
            order = writes[2]
            order[...] = 0
            if type(bits) is np.random.PCG64 and count:
                order[...] = pcg_order(bits, count, self.stride, writes[1].dtype.itemsize == 4)
                return self.names[0], self.names[2]
        options = {"distribution": self.kind, "legacy": self.legacy, "shape": (count,), "dtype": writes[1].dtype}
        writes[1][:count] = ops.random.evaluate(address, *rest, **options)[1]
        return self.names[: len(writes)]


def pcg_order(bits: Any, count: int, stride: int, halves: bool) -> Array:
    """What the device has to know to draw numbers of 64 bits, or of 32; moves the generator on as if it had drawn them."""
    held: Mapping[str, Any] = bits.state
    state, inc = held["state"]["state"], held["state"]["inc"]
    has_half, half = held["has_uint32"], held["uinteger"]
    drawn = (count - has_half + 1) // 2 if halves else count
    words = [1, count, *_words(state), *_words(_FACTOR), *_words(inc)]
    words += [word for number in steps(inc, stride) for word in _words(number)]
    factor, summand = steps(inc, drawn)
    last = (state * factor + summand) & _MASK
    after = dict(held, state={"state": last, "inc": inc})
    if halves and drawn:
        after |= {"has_uint32": (count - has_half) % 2, "uinteger": _output(last) >> 32}
    elif halves:
        after["has_uint32"] = 0
    bits.state = after
    return np.array([*words, has_half, half], np.uint64)


def steps(inc: int, count: int) -> tuple[int, int]:
    """So many steps of a PCG64 as one: (factor, summand).

    >>> steps(3, 1) == (_FACTOR, 3)
    True
    """
    factor, summand, square, twice = 1, 0, _FACTOR, inc
    while count:
        if count & 1:
            factor, summand = factor * square & _MASK, (summand * square + twice) & _MASK
        square, twice, count = square * square & _MASK, (twice * square + twice) & _MASK, count >> 1
    return factor, summand


def _words(number: int) -> tuple[int, int]:
    return number >> 64, number & (1 << 64) - 1


def _output(state: int) -> int:
    """The 64 bits that a state stands for."""
    (high, low), turn = _words(state), state >> 122
    x = high ^ low
    return (x >> turn | x << (64 - turn)) & (1 << 64) - 1
