"""Random draws: how are numbers drawn on a GPU, the same ones as NumPy's?

A generator's state lives on the host. Uniform numbers of a PCG64 or a Philox are computed on the device: each thread jumps to its
own states, or counts; the host hands over the state and moves its generator on. All others are drawn on the host and copied: how
many steps they take depends on what comes.
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
_MULTIPLIERS, _BUMPS = (0xD2E7470EE14C6C93, 0xCA5A826395121157), (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_ORDER_WORDS = 15  # of `ji_philox_order`; `ji_pcg_order` has one less
_PCG, _PHILOX = 1, 2


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
    body = ["ji_fill(y, order);"]
    text = entry(name, [written(element, "y"), read("unsigned long long", "order")], body, f"{numbers.name} = uniform numbers")
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
            halves = writes[1].dtype.itemsize == 4
            if type(bits) is np.random.PCG64 and count:
                order[:-1] = pcg_order(bits, count, self.stride, halves)
                return self.names[0], self.names[2]
            if type(bits) is np.random.Philox and count:
                order[...] = philox_order(bits, count, halves)
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
    words = [_PCG, count, *_words(state), *_words(_FACTOR), *_words(inc)]
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


def philox_order(bits: Any, count: int, halves: bool) -> Array:
    """The same of a Philox: each four numbers are made of a count and the key, and those that are left wait in a buffer."""
    held: Mapping[str, Any] = bits.state
    counter, key = ([int(x) for x in held["state"][part]] for part in ("counter", "key"))
    buffer, place = [int(x) for x in held["buffer"]], held["buffer_pos"]
    has_half, half = held["has_uint32"], held["uinteger"]
    order = np.array([_PHILOX, count, *key, *counter, *buffer, place, has_half, half], np.uint64)
    drawn = (count - has_half + 1) // 2 if halves else count
    left = len(buffer) - place
    after = dict(held, buffer_pos=place + drawn)
    if drawn > left:
        blocks = -(-(drawn - left) // 4)
        counter = _quarters(sum(x << 64 * k for k, x in enumerate(counter)) + blocks)
        buffer = philox(counter, key)
        after |= {"state": {"counter": np.array(counter, np.uint64), "key": held["state"]["key"]}}
        after |= {"buffer": np.array(buffer, np.uint64), "buffer_pos": drawn - left - 4 * (blocks - 1)}
    if halves and drawn:
        after |= {"has_uint32": (count - has_half) % 2, "uinteger": buffer[after["buffer_pos"] - 1] >> 32}
    elif halves:
        after["has_uint32"] = 0
    bits.state = after
    return order


def _quarters(number: int) -> list[int]:
    return [number >> 64 * k & (1 << 64) - 1 for k in range(4)]


def philox(counter: Sequence[int], key: Sequence[int]) -> list[int]:
    """The four numbers of a count (Philox 4x64-10: Salmon et al. 2011).

    >>> bits = np.random.Philox(counter=4, key=7)
    >>> philox([5, 0, 0, 0], [7, 0]) == [int(x) for x in bits.random_raw(4)]
    True
    """
    (a, b, c, d), (k, m) = counter, key
    for _ in range(10):
        (high, low), (other, lower) = _words(_MULTIPLIERS[0] * a), _words(_MULTIPLIERS[1] * c)
        a, b, c, d = other ^ b ^ k, lower, high ^ d ^ m, low
        k, m = k + _BUMPS[0] & (1 << 64) - 1, m + _BUMPS[1] & (1 << 64) - 1
    return [a, b, c, d]


def _words(number: int) -> tuple[int, int]:
    return number >> 64, number & (1 << 64) - 1


def _output(state: int) -> int:
    """The 64 bits that a state stands for."""
    (high, low), turn = _words(state), state >> 122
    x = high ^ low
    return (x >> turn | x << (64 - turn)) & (1 << 64) - 1
