"""What fusion hands down: kernels, library calls and regions in order, over named buffers that have no addresses yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from jitml.errors import Source
from jitml.ir.ops.complex import whole_dtype
from jitml.kernels.ir import Buffer, Expr, Kernel
from jitml.kernels.schedule import Schedule
from jitml.kernels.sizes import SizeSource
from jitml.records import dataclass, field


@dataclass(frozen=True, slots=True)
class Call:
    """A call into a library: `gemm`, `copy`, `zeros`, `sort`, `argsort`, `random`; none, `empty`; or out into Python: `host`.

    `gemm`: writes[0][b, m, n] = sum_k reads[0][b, m, k] * reads[1][b, k, n]; params are the integers `m n k`, the extents `batch`
    and, for each of `a b c`, the element strides `a_batch` (as many as `batch` has), `a_row a_col` (so a transposed operand is a
    swap of strides), and the element offset `a_offset`. What only the run knows is in a last read, i64[]: where `sized` is set,
    m, n and k (those in params are the largest ones), and at the place `a_start` what is added to `a_offset`.
    f32 and f64 only, one of row/col strides is 1 (or that extent is 1). With `adds` the product is added to what is there.
    `fused`: writes = the graph `call` of reads, at least one product in it; nothing in between lies in memory. What is read may
    have another shape than in the graph if it is contiguous.
    `copy`: writes[0] = reads[0], whole buffers of one dtype and shape, each with its own strides. Here and in the sorts, what is
    read may have another shape if it is contiguous.
    `sort`: writes[0] = reads[0] sorted along `axis` by NumPy's `kind` of sort. In both the elements of a row along `axis`
    are neighbours, and row follows row in C order; they may be the same memory. With `places`, which rise, nobody looks
    elsewhere in a row: there may be anything. An `argsort` of the kind `introselect` may leave equal elements in any order.
    A further read of a sort, i64[2], holds how many elements of each row count and how many rows, if that is known only here.
    `host`: writes = `function`(reads), a `HostFunction`, which may end the program with an error. `shapes` are those in which it
    gets what it reads: a contiguous buffer may have another one.
    `random`: writes[0] = reads[0], a generator's address; writes[1], a row, gets `count` numbers from `routine`, given reads[1:]
    (its limits, and how many numbers are to be drawn where `count` is None).
    `empty`: writes[0] is there, with any contents.
    `zeros`: writes[0] is all zeros; where the system can promise them, they are not written before they are touched.
    `scan`: writes[0] = reads[0] combined (`combine`) along `axis` with all that come before, or behind with `reverse`; both have
    strides of their own.
    `scatter`: writes[0] with reads[0] combined (`combine`, or `set`) into it, in the order of the indices, at the places that the
    index arrays reads[1:] name from `axis` on: from either end, and clamped. `shapes` are those in which it gets what it reads.
    If it is `sized`, a last read, i64[], holds the extents of the result's axes and of the indices'.
    `compact`: writes[0] = what the mask reads[0], of one axis, keeps of reads[1] along `axis`, in order; or, if nothing else is
    read, where in the mask that stands (i64). `shapes` are those in which it gets what it reads. If it is `sized`, a last read,
    i64[], holds the mask's extent and those of the result's axes.
    `argsort`: writes[0] (i64) = where in its row the element of reads[0] stands that comes there in a sort; both lie as above.

    updates: result -> the buffer whose contents it must hold when the step starts (as in `Kernel.updates`).
    """

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    params: Mapping[str, Any]
    sources: tuple[Source, ...] = field(default=(), compare=False)
    updates: Mapping[str, str] = field(default_factory=dict)


def seen_as(buffer: Buffer, shape: tuple[int, ...]) -> Buffer:
    """A contiguous buffer under another shape."""
    return buffer if buffer.shape == shape else Buffer(buffer.name, buffer.dtype, shape)


@dataclass(frozen=True, slots=True)
class Region:
    """Programs inside a program, run again and again or not at all.

    `loop`: bodies (body,). The body runs `control` times, a number or an i64[] buffer; `index` counts from 0.
    `while`: bodies (test, body). The test writes the bool[] buffer `control`; the body runs as long as that is true.
    `cond`: bodies (then, orelse). The first runs if the bool[] buffer `control` is true, else the second.

    A body sees only its inputs: `arguments[k]` names the buffer of this program that each input of body k is, and
    `results[k]` the one that each output ends up in. What a body carries or updates stands in both, and the output
    aliases the input; bodies have no constants. Where a result is another buffer than the argument that it is to be,
    `moves` says what becomes of both.

    index: the i64[] buffer that a loop sets before each iteration.
    updates: result -> the buffer whose contents it must hold when the step starts (as in `Kernel.updates`).
    scratch: the buffer (of bytes) that memory planning gives the bodies as their arena.
    """

    name: str
    kind: Literal["loop", "while", "cond"]
    bodies: tuple[KernelProgram, ...]
    arguments: tuple[tuple[str, ...], ...]
    results: tuple[tuple[str, ...], ...]
    control: str | int
    index: str | None = None
    updates: Mapping[str, str] = field(default_factory=dict)
    scratch: str | None = None
    sources: tuple[Source, ...] = field(default=(), compare=False)

    @property
    def carried(self) -> tuple[str, ...]:
        """What is handed from one iteration to the next."""
        match self.kind:
            case "loop":
                return self.arguments[0][1 : 1 + len(self.results[0])]
            case "while":
                return self.arguments[1][: len(self.results[1])]
        return ()

    @property
    def moves(self) -> Mapping[str, str]:
        """Buffer -> the one whose memory it has at the next iteration, of those that change places.

        No element is moved for it. When the step ends, what is carried is back in its own memory.
        """
        carried = self.carried
        if not carried:
            return {}
        landed = dict(zip(carried, self.results[-1]))
        spare = [name for name in landed.values() if name not in landed]
        left = [name for name in carried if name not in landed.values()]
        return {name: at for name, at in landed.items() if name != at} | dict(zip(spare, left))

    @property
    def writes(self) -> tuple[str, ...]:
        """Results, and what only the step itself needs: index, scratch, the truth of a test."""
        own = (name for name in (self.index, self.scratch) if name is not None)
        return tuple(dict.fromkeys((*self.carried, *(name for names in self.results for name in names), *own)))

    @property
    def reads(self) -> tuple[str, ...]:
        """What the step needs and does not write itself."""
        control = (self.control,) if isinstance(self.control, str) else ()
        names = dict.fromkeys((*control, *(name for names in self.arguments for name in names)))
        written = set(self.writes)
        return tuple(name for name in names if name not in written)


Step: TypeAlias = Kernel | Call | Region


# (steps, the next one, how often all of them use each buffer) -> other steps that do what these and the next do, or None.
Merge: TypeAlias = Callable[[Sequence[Step], Step, Mapping[str, int]], list[Step] | None]


def merge_steps(steps: Sequence[Step], kept: Collection[str], rules: Sequence[Merge]) -> tuple[list[Step], set[str]]:
    """Steps of which some are done by others, rule by rule.

    Args:
        kept: buffers that others read.

    Returns:
        The steps, and the buffers that they no longer need.
    """
    touched = times_used(steps, kept)
    uses = touched
    for merge in rules:
        found: list[Step] = []
        for step in steps:
            merged = merge(found, step, uses)
            if merged is None:
                found.append(step)
            else:
                found = merged
        steps, uses = found, times_used(found, kept)
    return list(steps), touched.keys() - uses.keys()


def times_used(steps: Iterable[Step], kept: Iterable[str]) -> Counter[str]:
    """How often steps read, write or update each buffer; once more what is kept for others."""
    uses = Counter(kept)
    for step in steps:
        bases = [name for name in step.updates.values() if name not in step.reads]
        uses.update((*step.reads, *step.writes, *bases))
    return uses


@dataclass(frozen=True, slots=True)
class Decision:
    """One thing fusion decided, and why: printed by `explain`."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


@dataclass(frozen=True, slots=True)
class Port:
    """An array that is handed in or out.

    buffer: as the caller sees it. parts: the program's buffers in it: one, or the real and the imaginary part of a complex
    array, which take turns in its memory. A complex array may be one buffer too, of one more axis.
    """

    buffer: Buffer
    parts: tuple[str, ...]

    @classmethod
    def joining(cls, re: Buffer, im: str) -> Port:
        strides = None if re.strides is None else tuple(step // 2 for step in re.strides)
        return cls(Buffer(re.name, whole_dtype(re.dtype), re.shape, strides), (re.name, im))

    @classmethod
    def packing(cls, both: Buffer) -> Port:
        strides = None if both.strides is None else tuple(step // 2 for step in both.strides[:-1])
        return cls(Buffer(both.name, whole_dtype(both.dtype), both.shape[:-1], strides), (both.name,))


def parted(strides: tuple[int, ...]) -> tuple[int, ...]:
    """The element strides of the parts of a complex array."""
    return tuple(2 * step for step in strides)


@dataclass(frozen=True, slots=True)
class KernelProgram:
    """A whole program after fusion.

    buffers: every buffer that outlives a kernel, by name, with its true shape and strides.
    inputs, outputs: names, in the order of the graph's signature; no buffer is both, and none stands twice.
    constants: literal arrays, by buffer name; read-only.
    aliases: output name -> input name: the caller's array that this output must end up in (a mutated argument).
    sizes: the size variables, and where their values lie (`kernels/sizes.py`).
    extents: of the buffers whose true shape is not that of their memory, the true shape over size variables.
    exact: outputs whose memory has their true shape -> that shape over size variables that inputs hold.
    joined: inputs and outputs that are the real parts of complex arrays, whose imaginary parts follow (`Port`).
    packed: inputs and outputs that are complex arrays, both parts along a last axis.
    measured: other outputs to be shrunk to their true shape -> for each axis, where its extent stands in the last output, which
    is an array i64 for this purpose only (None: it is the memory's).
    schedules: how the loops of kernels run, of those whose loops are a schedule's.
    """

    buffers: Mapping[str, Buffer]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, np.ndarray[Any, Any]]
    aliases: Mapping[str, str]
    steps: tuple[Step, ...]
    sizes: Mapping[str, SizeSource] = field(default_factory=dict)
    extents: Mapping[str, tuple[Expr, ...]] = field(default_factory=dict)
    exact: Mapping[str, tuple[Expr, ...]] = field(default_factory=dict)
    measured: Mapping[str, tuple[int | None, ...]] = field(default_factory=dict)
    joined: frozenset[str] = frozenset()
    packed: frozenset[str] = frozenset()
    decisions: tuple[Decision, ...] = field(default=(), compare=False)
    schedules: Mapping[str, Schedule] = field(default_factory=dict, compare=False)

    def ports(self, names: Sequence[str]) -> tuple[Port, ...]:
        """Inputs or outputs as the caller sees them."""
        found: list[Port] = []
        rest = iter(names)
        for name in rest:
            buffer = self.buffers[name]
            if name in self.joined:
                found.append(Port.joining(buffer, next(rest)))
            else:
                found.append(Port.packing(buffer) if name in self.packed else Port(buffer, (name,)))
        return tuple(found)

    def table(self) -> dict[str, tuple[int, int]]:
        """Where the caller's arrays, and the constants, are handed in: name -> position among them, and bytes from its start."""
        ports = (*self.ports(self.inputs), *self.ports(self.outputs))
        places = {
            name: (position, n * self.buffers[name].dtype.itemsize)
            for position, port in enumerate(ports)
            for n, name in enumerate(port.parts)
        }
        return places | {name: (len(ports) + n, 0) for n, name in enumerate(self.constants)}
