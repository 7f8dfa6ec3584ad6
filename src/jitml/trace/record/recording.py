"""The recording: which recording is going on, and which files are jitml's own?

`Trace`: one recording with what it has refused, and the current one of this thread.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, NoReturn

import numpy as np

from jitml.diagnostics.code_owners import is_machinery, is_users
from jitml.diagnostics.tracebacks import is_passed_over, stay_whole_while
from jitml.errors import Cause, JitmlError, Source, TraceError, UnsupportedError
from jitml.functions import look_away, see_calls
from jitml.interrupts import pass_on, unset
from jitml.ir import ops
from jitml.ir.dims import Dim, Size, Sym, limits
from jitml.ir.graph import GraphBuilder, Node, Value
from jitml.ir.op import record_into, recording
from jitml.ir.types import I64, Aval
from jitml.trace.record.guards import Host, HostConst, Place, Slot
from jitml.trace.record.parts import CallParts, LocalParts
from jitml.trace.record.state import (
    BoundSizes,
    CallInputs,
    ConvertedFunctions,
    JoinSite,
    NamedOperation,
    OutsideChanges,
    OutsideObjects,
    RecordedErrors,
    TrackedCopies,
)

_KNOWN = sys.stdlib_module_names | {"builtins", "numpy", "scipy", "optree", "jitml"}
_SELDOM = 16  # operations between two looks at what there is


def frames_of_ours() -> int:
    """How many frames a `stacklevel` counts between the caller and the user's line."""
    count = 0
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_machinery(frame.f_code.co_filename):
        count += not is_passed_over(frame.f_code)
        frame = frame.f_back
    return count


def home_of(cls: Any) -> str:
    """The module of a class, as it says; nothing where that is no text, as of Cython's class of functions."""
    home = cls.__module__
    return home if isinstance(home, str) else ""


def is_users_class(cls: Any) -> bool:
    """Whether a class is the user's, and not a library's."""
    return _is_users_module(home_of(cls))


@lru_cache(maxsize=4096)
def _is_users_module(home: str) -> bool:
    if not home or home.partition(".")[0] in _KNOWN:
        return False
    return is_users(getattr(sys.modules.get(home), "__file__", None) or "")


def user_source() -> Source | None:
    """The innermost frame that is the user's."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if is_users(code.co_filename):
            trace = _current.get()
            if trace is None:
                return Source(code.co_filename, _line_of(frame), code.co_name)
            lines, place = trace.lines, (id(code), frame.f_lasti)
            if place not in lines:
                lines[place] = _line_of(frame)
            return Source(code.co_filename, lines[place], code.co_name, *trace.errors.state, operation=trace.operation.name)
        frame = frame.f_back  # type: ignore[assignment]  # None at the outermost frame ends the loop
    return None


_LONG = 2048  # bytes of a line table
_KEPT = 16  # long functions
_line_tables: dict[int, tuple[CodeType, list[int], list[int | None]]] = {}  # by the id of the code; starts, and lines


def _line_of(frame: FrameType) -> int:
    """The line that a frame is at. Python reads the lines of all instructions before it: in a long function that is slow."""
    code = frame.f_code
    if len(code.co_linetable) < _LONG:
        return frame.f_lineno
    known = _line_tables.get(id(code))
    if known is None:
        if len(_line_tables) >= _KEPT:
            _line_tables.clear()
        starts, _, lines = zip(*code.co_lines())
        known = _line_tables[id(code)] = (code, list(starts), list(lines))
    line = known[2][bisect_right(known[1], frame.f_lasti) - 1]
    return frame.f_lineno if line is None else line


def last_user_source(error: BaseException) -> Source | None:
    """The innermost frame of an error's traceback that is the user's."""
    found: Source | None = None
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if is_users(code.co_filename):
            found = Source(code.co_filename, step.tb_lineno, code.co_name)
        step = step.tb_next
    return found


class Effort:
    """How many operations have been recorded, also in bodies that are going to be recorded again; `look` is called at some."""

    __slots__ = ("look", "recorded")

    def __init__(self) -> None:
        self.recorded = 0
        self.look: Callable[[], None] | None = None

    def locate(self) -> Source | None:
        """Where the operation comes from that is being recorded."""
        self.recorded += 1
        if self.look is not None and self.recorded % _SELDOM == 0:
            self.look()
        return user_source()


class Trace:
    """One recording. An inner trace (a function being differentiated, a region's body) has a parent, whose values it may read.

    `root` is the outermost trace, that of the call, to which most belongs: inner traces share it (`_share`).
    """

    def __init__(self, parent: Trace | None = None) -> None:
        self.parent = parent
        self.root: Trace = parent.root if parent else self
        self.builder: GraphBuilder = GraphBuilder(parent.builder if parent else None)
        self.effort: Effort = parent.effort if parent else Effort()
        self.builder.locate = self.effort.locate
        self.builder.strayed = strayed
        self.refusal: JitmlError | None = None
        self.closed = False
        self.is_body = False
        self.is_of_rows: bool = parent.is_of_rows if parent else False  # for many rows at once, which may take ways of their own
        # Sizes that are not negative as long as this trace records, and truths that hold: of a branch, its condition.
        self.facts: tuple[Dim | Value, ...] = ()
        self.local = LocalParts()
        self._share(parent)

    def _share(self, parent: Trace | None) -> None:
        """What belongs to the call as a whole."""
        self.host: Host = parent.host if parent else Host(locate=user_source)
        self.call: CallParts = parent.call if parent else CallParts()
        self.inputs: CallInputs = parent.inputs if parent else CallInputs()
        self.sizes: BoundSizes = parent.sizes if parent else BoundSizes()
        self.operation: NamedOperation = parent.operation if parent else NamedOperation()
        self.errors: RecordedErrors = parent.errors if parent else RecordedErrors()
        self.outside: OutsideObjects = parent.outside if parent else OutsideObjects()
        self.changes: OutsideChanges = parent.changes if parent else OutsideChanges()
        self.copies: TrackedCopies = parent.copies if parent else TrackedCopies()
        self.functions: ConvertedFunctions = parent.functions if parent else ConvertedFunctions()
        self.constructs: dict[GraphBuilder, JoinSite] = parent.constructs if parent else {}  # whose bodies have been recorded
        self.lines: dict[tuple[int, int], int] = parent.lines if parent else {}  # of the user's code: it, and a position

    def add_input(self, aval: Aval, slot: Slot) -> Value:
        """A new input of the root trace, filled from a slot of the host program; inner traces capture it."""
        self.inputs.origins.append(slot)
        return self.root.builder.add_input(aval, self.host.name(slot))

    def number_input(self, slot: Slot, concrete: Any, dtype: np.dtype[Any]) -> Value:
        """The graph input, of shape (), that carries a number; one per number and dtype."""
        known = self.inputs.numbers
        if (slot, dtype) not in known:
            # A complex number is handed in as an array: there is no quick way for Python's own.
            entry = self.host.compute(np.asarray, (slot, HostConst(dtype))) if dtype.kind == "c" else slot
            known[slot, dtype] = self.add_input(Aval((), dtype), entry)
            self.inputs.scalars[known[slot, dtype]] = (slot, concrete)
        return known[slot, dtype]

    def numbers_input(self, slots: Sequence[Slot], concrete: Sequence[Any], make: Callable[..., np.ndarray[Any, Any]]) -> Value:
        """The graph input that is an array of numbers, which the host program makes."""
        known, key = self.inputs.made, (make, tuple(slots))
        if key not in known:
            name = f"an array of {self.host.name(slots[0])} and {len(slots) - 1} others"
            known[key] = self.host.compute(make, tuple(slots), name)
        entry = known[key]
        array = make(*concrete)
        if (entry, array.dtype) not in self.inputs.numbers:
            value = self.inputs.numbers[entry, array.dtype] = self.add_input(Aval(array.shape, array.dtype), entry)
            self.inputs.scalars[value] = (entry, array)
        return self.inputs.numbers[entry, array.dtype]

    def open_size(self, place: Place, slot: Slot, concrete: int) -> Dim:
        """The size that an argument's place is left open as; `slot` is the number itself in the host program."""
        known, host, first = self.inputs.opened[place], self.host, self.inputs.first
        host.require_range(slot, known.low, known.high)
        if known.like in first:
            other, size = first[known.like]
            host.require_equal(slot, other)
            return size
        size = self.bind(self.number_input(slot, concrete, I64), known.low, known.high)
        first[known.like] = slot, size
        return size

    def sees(self, value: Value) -> bool:
        """Whether this trace can use a value: it or one around it defines it."""
        builder: GraphBuilder | None = self.builder
        while builder is not None and not builder.defines(value):
            builder = builder.parent
        return builder is not None

    def bind(self, value: Value, low: Size, high: Size, name: str = "n") -> Dim:
        """An i64[] value as a size, `low <= value <= high`; the same value is the same size each time.

        The `bind` node stands in the graph that defines the value; a graph inside that one which mentions the size gets its
        own by `bind_outer` when it is finished.

        Args:
            low, high: ints, or sizes where more is known than numbers can say: `j` of `for j in range(i + 1, n)`.
        """
        sizes = self.sizes
        if value not in sizes.names:
            sym = Sym(f"{name}{len(sizes.values)}", limits(low)[0], limits(high)[1])
            builder: GraphBuilder = self.builder
            while not builder.defines(value) and builder.parent is not None:
                builder = builder.parent
            builder.emit(ops.bind, (builder.capture(value),), {"sym": sym}, (), user_source())
            sizes.values[sym] = value
            sizes.names[value] = Dim((((sym,), 1),))
            if isinstance(low, Dim) or isinstance(high, Dim):
                sizes.limits[sym] = (low, high)
        return sizes.names[value]

    def bind_outer(self) -> None:
        """Bind every Sym that this trace's graph mentions and an outer one has bound: the last thing before it is built.

        Those of captured values are bound too: a loop inside that runs so often has limits then. They stand in front of it.
        """
        builder, names = self.builder, self.sizes.names
        bound = {node.params["sym"] for node in builder.nodes if node.op is ops.bind}
        mentioned = {sym for v in builder.inputs for sym in v.aval.syms}.union(*(node.syms for node in builder.nodes))
        mentioned.update(*(names[v].syms for v in builder.captured if v in names))
        missing = sorted(mentioned - bound, key=lambda sym: sym.serial)
        values = [builder.capture(self.sizes.values[sym]) for sym in missing]
        builder.nodes[:0] = [Node(ops.bind, (value,), {"sym": sym}, ()) for sym, value in zip(missing, values)]

    def encloses(self, other: Trace) -> bool:
        """Whether `other` is this trace or inside it."""
        return self in other.around()

    def around(self) -> Iterator[Trace]:
        """This one, and those that it is inside of."""
        trace: Trace | None = self
        while trace is not None:
            yield trace
            trace = trace.parent


_current: ContextVar[Trace | None] = ContextVar("jitml_trace", default=None)
# The innermost trace of this thread, or None outside any. Each compiled call asks: a function around it would cost more than it.
current_trace: Callable[[], Trace | None] = _current.get
stay_whole_while(current_trace)


def active_trace() -> Trace:
    """The innermost trace; a traced value met outside any has leaked."""
    trace = _current.get()
    if trace is None:
        raise leaked()
    return trace


@contextmanager
def activate(trace: Trace) -> Iterator[Trace]:
    """Record into `trace` inside the block; at the end it is closed and a refusal that was swallowed comes back."""
    token = _current.set(trace)
    try:
        see_calls(trace)
        with recording(trace.builder):
            yield trace
    except Exception as error:
        pass_on(error)
        if trace.refusal is not None and error is not trace.refusal:
            raise trace.refusal from error
        raise
    finally:
        unset(_current, token)
        trace.closed = True
        look_away(trace)
    if trace.refusal is not None:
        raise trace.refusal


@contextmanager
def outside_trace() -> Iterator[None]:
    """Inside the block there is no trace: NumPy runs as ever."""
    token = _current.set(None)
    try:
        with recording(None):
            yield
    finally:
        unset(_current, token)


class Attempt:
    """A place in the current recording to which it can be taken back after a refusal."""

    __slots__ = ("facts", "nodes", "trace")

    def __init__(self) -> None:
        self.trace = _current.get()
        self.nodes = len(self.trace.builder.nodes) if self.trace is not None else 0
        self.facts = self.trace.facts if self.trace is not None else ()  # some are checked

    def undo(self) -> bool:
        """Forget what was recorded and refused since then; False if the trace is not the same any more."""
        trace = _current.get()
        if trace is None or trace is not self.trace:
            return False
        trace.facts = self.facts
        nodes = trace.builder.cut(self.nodes)
        for part in [*trace.call.values()] if nodes else ():
            part.cut(nodes)
        for node in nodes:
            if node.op is ops.bind:
                del trace.sizes.names[trace.sizes.values[node.params["sym"]]]  # whoever asks for the size binds it again
        for scope in trace.around():
            scope.refusal = None
        return True


def switch(trace: Trace) -> None:
    """Record into another trace from here on: into the body of a region, or again into what surrounds it."""
    _current.set(trace)
    record_into(trace.builder)


def refuse(error: JitmlError) -> NoReturn:
    """Raise `error`, and again when the trace ends: an `except` in between must not compile the wrong branch."""
    if error.source is None:
        error.source = user_source()
    trace = _current.get()
    for part in [*trace.call.values()] if trace is not None else ():
        part.refused(error)
    for scope in trace.around() if trace is not None else ():
        scope.refusal = scope.refusal or error
    raise error


def unsupported(message: str, remedy: str = "", cause: Cause | None = None) -> NoReturn:
    """Refuse with an `UnsupportedError` at the user's line; the cause is the usual one of the room that refuses."""
    refuse(UnsupportedError(message, remedy=remedy, cause=cause))


def strayed(value: Value) -> TraceError:
    """The error for a value of the graph that is used outside its trace."""
    trace = _current.get()
    return leaked(next((b for b in trace.constructs if b.defines(value)), None) if trace is not None else None)


def refuse_environ() -> NoReturn:
    """Refuse what reads the environment.

    Raises:
        UnsupportedError: always.
    """
    what = "os.environ would be read only once, while the function is traced"
    unsupported(what, "Pass what it says as an argument.", Cause.EFFECT)


def leaked(builder: GraphBuilder | None = None) -> TraceError:
    """The error for a traced value used outside its trace.

    What holds one that the body of a region has made, and has left it, as a partial does, is no fault of the program: the region
    is traced in another way.

    Args:
        builder: what has recorded the value, if that is known.
    """
    trace = _current.get()
    if builder is not None and trace is not None:
        around, outermost = set(trace.builder.around()), builder
        for outer in builder.around():
            if outer in around and outermost in trace.constructs:
                what = "something made in a branch or a loop holds a number or an array of it, and is used after it"
                trace.constructs[outermost].refuse(what, "Keep the number or the array itself, and make the object anew.")
            outermost = outer
    return TraceError(
        "a traced value is used after its trace has ended, or in another thread",
        source=user_source(),
        remedy="Return it from the jitted or transformed function; do not keep it in a global, an attribute, a list.",
    )
