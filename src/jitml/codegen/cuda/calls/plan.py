"""Plans of library calls: what does a `kernels.program.Call` become on a GPU?  Text to compile, and work in order; data.

The work of a call is a sequence: launches of functions in its text, and functions that run on the host between copies out and in.
A library may do it instead, by a function that takes device pointers and a stream. Whoever runs it knows where the buffers are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from jitml.codegen.cuda.emit.functions import ScalarFunctions
from jitml.codegen.cuda.module import Launch
from jitml.codegen.cuda.target import PROCESSORS, THREADS
from jitml.errors import Source
from jitml.ir.types import F32, DType
from jitml.kernels.ir import Buffer, Check
from jitml.records import dataclass, field, replace

Array = np.ndarray[Any, Any]

ROUNDINGS = ("bf16", "tf32")  # of which the first one that is allowed is done: the faster one
MOST_BLOCKS = PROCESSORS * 8  # of a grid that strides over its work: what a device has resident at once
LARGEST_GRID = 1 << 30  # where each block takes one part of the work: for copies, the fastest way


class LibraryCall(Protocol):
    """A function of one of NVIDIA's libraries that queues work on a stream. The GPU's context is the calling thread's."""

    @property
    def library(self) -> str:
        """As `cuda.pathfinder` names it."""

    @property
    def buffers(self) -> tuple[str, ...]:
        """Whose addresses it takes, in order; the first one is what it writes."""

    @property
    def workspace(self) -> int:
        """Bytes of device memory that all calls share, whose address comes last; 0 for none."""

    @property
    def can_record(self) -> bool:
        """Whether all that it does goes to the stream, so that it can be a part of a graph."""

    def is_ready(self) -> bool:
        """Whether the library is installed and does it."""

    def own_bytes(self) -> int:
        """Bytes of device memory that it needs for itself, once it is ready; their address comes behind those of buffers."""

    def __call__(self, stream: int, addresses: Sequence[int]) -> None: ...


@dataclass(frozen=True, slots=True)
class HostWork:
    """A function that runs on the host: what it reads is copied out, what it writes is copied in.

    Args:
        name: for people.
        reads, writes: buffers as the function sees them; one of another shape than the program's is contiguous.
        run: takes arrays of these shapes, fills those that it writes, and gives the names of those that it has filled: only they
            are copied in.
    """

    name: str
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    run: Callable[[Sequence[Array], Sequence[Array]], Sequence[str]]
    source: Source | None = None

    @property
    def nbytes(self) -> int:
        """What is copied between host and device."""
        return sum(buffer.nbytes for buffer in (*self.reads, *self.writes))


Work: TypeAlias = Launch | HostWork


@dataclass(frozen=True, slots=True)
class Means:
    """What plans may use.

    Args:
        functions: of scalars, those of the whole text.
        fastmath: flags.
    """

    functions: ScalarFunctions = field(default_factory=ScalarFunctions)
    fastmath: frozenset[str] = frozenset()

    def rounding(self, factors: DType) -> str:
        """To what factors of products may be rounded: "tf32", "bf16", or ""."""
        allowed = [kind for kind in ROUNDINGS if kind in self.fastmath and factors == F32]
        return allowed[0] if allowed else ""


@dataclass(frozen=True, slots=True)
class LibraryWork:
    """What libraries do of a call, and what functions of its own do around that.

    Args:
        steps: in order.
        scratch: as a plan has it, for these steps.
    """

    steps: tuple[Launch | LibraryCall, ...]
    scratch: tuple[Buffer, ...] = ()

    @property
    def launches(self) -> tuple[Launch, ...]:
        return tuple(each for each in self.steps if isinstance(each, Launch))

    @property
    def calls(self) -> tuple[LibraryCall, ...]:
        return tuple(each for each in self.steps if not isinstance(each, Launch))

    def with_launches(self, change: Callable[[Launch], Launch]) -> LibraryWork:
        return replace(self, steps=tuple(change(each) if isinstance(each, Launch) else each for each in self.steps))


@dataclass(frozen=True, slots=True)
class CallPlan:
    """
    Args:
        source: functions of its own; they need `templates` ahead of them.
        templates: texts that calls share, each to stand once in a program's source.
        work: in order.
        scratch: device memory that the call needs while it runs; work names these buffers like those of the program.
        library: is done in place of the work, where the device has libraries and they are ready.
        checks: what may fail, by functions of this plan. The source calls the number of the first one `{name}_check`.
    """

    source: str = ""
    templates: tuple[str, ...] = ()
    work: tuple[Work, ...] = ()
    scratch: tuple[Buffer, ...] = ()
    library: LibraryWork | None = None
    checks: tuple[Check, ...] = ()

    def numbered(self, name: str, first: int) -> str:
        """The source, where `first` is the number of the first check, counted from 1."""
        return f"constexpr long long {name}_check = {first};\n{self.source}" if self.checks else self.source

    def nameless(self, name: str) -> str:
        """The source as that of a call with the same functions reads, too, which has another name; without comments."""
        return re.sub(r"^//.*\n", "", self.source, flags=re.M).replace(name, "call")

    def by_functions_of(self, twin: str, name: str) -> CallPlan:
        """The plan without a source of its own: its functions are those of a call that has the same."""

        def renamed(launch: Launch) -> Launch:
            assert launch.entry.startswith(name), "functions are called after their call"
            return replace(launch, entry=twin + launch.entry.removeprefix(name))

        return replace(self.with_launches(renamed), source="")

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Its own, and those around libraries."""
        own = tuple(each for each in self.work if isinstance(each, Launch))
        return own if self.library is None else (*own, *self.library.launches)

    def with_launches(self, change: Callable[[Launch], Launch]) -> CallPlan:
        work = tuple(change(each) if isinstance(each, Launch) else each for each in self.work)
        return replace(self, work=work, library=self.library and self.library.with_launches(change))

    def with_constants(self, constants: Mapping[str, Mapping[int, int]]) -> CallPlan:
        """The plan whose functions have constants in place of some of their numbers, as `agreed_numbers` gives them."""

        def shorter(launch: Launch) -> Launch:
            known = constants.get(launch.entry, {})
            return replace(launch, numbers=tuple(n for k, n in enumerate(launch.numbers) if k not in known))

        source = self.source
        for entry in dict.fromkeys(launch.entry for launch in self.launches if constants.get(launch.entry)):
            source = _specialized(source, entry, constants[entry]) if source else source
        return replace(self.with_launches(shorter), source=source)

    def guarded(self, callers: Collection[str]) -> CallPlan:
        """The plan in a program with checks: once one has failed, its functions do nothing.

        A library's would write all the same, which none may do to what is in memory of the caller's.

        Args:
            callers: buffers that are.
        """
        source = self.source
        for entry in dict.fromkeys(launch.entry for launch in self.launches if not launch.has_error):
            source = _looking(source, entry)
        plan = self.with_launches(lambda launch: replace(launch, has_error=True))
        writes_to_callers = plan.library is not None and any(call.buffers[0] in callers for call in plan.library.calls)
        return replace(plan, source=source, library=None if writes_to_callers else plan.library)


def agreed_numbers(plans: Iterable[CallPlan]) -> dict[str, dict[int, int]]:
    """For each function that takes numbers, those in which all of its launches agree, by their places."""
    given: dict[str, list[tuple[int, ...]]] = {}
    for plan in plans:
        for launch in plan.launches:
            if launch.numbers:
                given.setdefault(launch.entry, []).append(launch.numbers)
    return {
        entry: {place: values[0] for place, values in enumerate(zip(*numbers, strict=True)) if len({*values}) == 1}
        for entry, numbers in given.items()
    }


def _specialized(source: str, entry: str, constants: Mapping[int, int]) -> str:
    """A source one of whose functions has constants in place of some numbers."""
    head, parameters, body = _parts(source, entry)
    declared = parameters.split(", ")
    numbers = [p for p in declared if re.fullmatch(r"const long long \w+", p)]
    fixed = {p: constants[place] for place, p in enumerate(numbers) if place in constants}
    left = ", ".join(p for p in declared if p not in fixed)
    return f"{head}({left}) {{\n" + "".join(f"  {p} = {value};\n" for p, value in fixed.items()) + body


def _looking(source: str, entry: str) -> str:
    """A source one of whose functions looks for a check that has failed."""
    head, parameters, body = _parts(source, entry)
    return f"{head}({parameters}, const long long* error) {{\n  if (*error) return;\n{body}"


def _parts(source: str, entry: str) -> tuple[str, str, str]:
    """A source up to the name of a function, its parameters, and what follows."""
    head, rest = re.split(rf"(?<= {entry})\((?=[^()]*\) {{\n)", source, maxsplit=1)
    parameters, body = rest.split(") {\n", 1)
    return head, parameters, body


def blocks_for(count: int, each: int = THREADS, most: int = MOST_BLOCKS) -> int:
    """Blocks of a grid that strides over `count` items, of which a block takes `each` at a time."""
    return max(1, min(most, -(-count // each)))
