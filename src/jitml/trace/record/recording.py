"""The recording: which recording is going on?

`Trace`: one recording with what it has refused, and the current one of this thread.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, NoReturn

import numpy as np

import jitml
from jitml.errors import JitmlError, Source, TraceError, UnsupportedError
from jitml.interrupts import pass_on, unset
from jitml.ir import ops
from jitml.ir.dims import Dim, Size, Sym, limits
from jitml.ir.graph import GraphBuilder, Node, Value
from jitml.ir.op import record_into, recording
from jitml.ir.types import I64, Aval
from jitml.trace.record.guards import Host, HostConst, Opened, Place, Slot

_JITML = os.path.dirname(os.path.abspath(jitml.__file__)) + os.sep
_PACKAGES = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))  # of whichever environment
_LIBRARIES = (_JITML, *(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")))
_LIKE_THE_USERS = (_JITML + "control.py", os.path.join(_JITML, "trace", "effects", "queue_methods.py"))
_KNOWN = sys.stdlib_module_names | {"builtins", "numpy", "scipy", "optree", "jitml"}
# Code that dataclasses and namedtuples generate, and Python's frozen modules.
_GENERATED = ("<string>", "<frozen", "<jitml")


@lru_cache(maxsize=4096)
def is_users(file: str) -> bool:
    """Whether code from this file is the user's, to be converted and named in messages, or a library's.

    The demo's programs stand for a user's.
    """
    if file.startswith(_JITML):
        return file.startswith(_JITML + "demo")
    return not file.startswith((*_LIBRARIES, *_GENERATED)) and not any(folder in file for folder in _PACKAGES)


def is_jitmls(file: str) -> bool:
    """Whether a file is one of jitml's own that is never converted."""
    return file.startswith(_JITML) and not is_converted(file)


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


def is_converted(file: str) -> bool:
    """Whether functions of this file are converted: the user's, and jitml's own that are written like those."""
    return is_users(file) or file in _LIKE_THE_USERS


def user_source() -> Source | None:
    """The innermost frame that is the user's."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if is_users(code.co_filename):
            trace = _current.get()
            if trace is None:
                return Source(code.co_filename, _line_of(frame), code.co_name)
            lines, place = trace.root.lines, (id(code), frame.f_lasti)
            if place not in lines:
                lines[place] = _line_of(frame)
            root = trace.root
            return Source(code.co_filename, lines[place], code.co_name, *root.error_state, operation=root.operation)
        frame = frame.f_back  # type: ignore[assignment]  # None at the outermost frame ends the loop
    return None


def _line_of(frame: FrameType) -> int:
    """The line that a frame is at. Python reads the lines of all instructions before it: in a long function that is slow."""
    return frame.f_lineno


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
    """How many operations have been recorded, also in bodies that are going to be recorded again."""

    __slots__ = ("recorded",)

    def __init__(self) -> None:
        self.recorded = 0

    def locate(self) -> Source | None:
        """Where the operation comes from that is being recorded."""
        self.recorded += 1
        return user_source()


@dataclass(frozen=True)
class Sealed:
    """A copy of a container that the function may not change: what is raised if it does, and the copy's leaves."""

    error: JitmlError
    copied: Any
    leaves: Sequence[Any]


class Trace:
    """One recording. An inner trace (a function being differentiated) has a parent, whose values it may read.

    `root` is the outermost trace: it owns what belongs to the call as a whole, that is, the inputs (`origins` are their
    slots in the host program, parallel to the builder's inputs) and the host program itself.
    """

    def __init__(self, parent: Trace | None = None, *, host_calls: bool = True) -> None:
        self.parent = parent
        self.root: Trace = parent.root if parent else self
        self.builder: GraphBuilder = GraphBuilder(parent.builder if parent else None)
        self.effort: Effort = parent.effort if parent else Effort()
        self.builder.locate = self.effort.locate
        self.builder.recorded = parent.builder.recorded if parent else None
        self.builder.strayed = strayed
        self.modules: Any = None  # what stands for `sys.modules` (`loaded_modules.py`)
        self.constructs: dict[GraphBuilder, Any] = {}  # the `Decider` of each region whose body has been recorded, by that
        self.refusal: JitmlError | None = None
        self.closed = False
        self.host: Host = parent.host if parent else Host(locate=user_source)
        self.origins: list[Slot] = []
        self.lifted: dict[int, Any] = {}  # id of a concrete array -> its TracedArray; the host program keeps it alive
        self.arrays: dict[Slot, Any] = {}  # the array inputs: slot -> (concrete array, TracedArray)
        self.views: dict[Any, Slot] = {}  # of these, by the memory that they show (`view_of`)
        self.parts: dict[Slot, Any] = {}  # arrays that share memory with others: slot -> TracedArray, a view of their storage
        self.enter_part: Any = None  # (array, slot) -> its TracedArray, if others that are written share its memory
        self.again: dict[int, list[tuple[Slot, Slot]]] = {}  # id of a TracedArray -> other slots that hold the array, and its own
        self.unknown: set[Value] = (
            set()
        )  # values of which `constants.py` has found that they depend on what only the program knows
        self.constants: dict[Value, Any] = {}  # and those that it has found to be known, as arrays
        self.lines: dict[tuple[int, int], int] = {}  # of the user's instructions: code and position in it
        self.opened: Opened = {}  # sizes of arguments that are left open
        self.objects: dict[Slot, Any] = {}  # other things from outside: instances, functions
        self.exchanged: set[Slot] = set()  # of those, such that are others at each call, though no arguments
        self.exchangeable: dict[int, Slot] = {}  # these and arguments, by id
        self.crowd: dict[int, Slot] = {}  # what is none of these, where they are many, by id
        # For conversion: functions with hooks, slots of what was loaded, what is known to be from outside (id -> slot).
        self.converted: dict[Any, Any] = {}
        self.sourceless: set[CodeType] = set()  # of functions that could not be converted
        self.classes: set[type] = set()  # of the user's, of which it is guarded that they stay as they are
        self.registered: set[tuple[type, type]] = set()  # and of which it is guarded whether they are of abstract ones
        self.loaded: dict[Any, Slot] = {}
        self.callees: dict[Any, Slot] = {}  # functions that are arguments and may be others, of the same code
        self.places: dict[int, Slot] = {}
        self.records: set[int] = set()  # ids of dataclasses among those that are no copies
        self.at_run_time: dict[int, Any] = {}  # objects that are taken at run time, by id
        self.own: dict[int, Any] = {}  # objects that the function made itself, by id
        self.containers: dict[Slot, Any] = {}
        self.met: Counter[int] = Counter()  # how often containers and objects from outside have been loaded, by id
        self.watched: dict[int, Any] = {}  # copies of containers from outside, by id, with what was in them
        self.items = 0  # in containers from outside that are guarded item by item
        self.copies: dict[int, Any] = {}  # the first of them, by the id of the original
        self.taken: dict[int, tuple[Any, Any]] = {}  # containers that transforms are given, by id, and those that they show
        self.shared: dict[int, Any] = {}  # what may be held by others than a name that seems to have a new deque, by id
        self.withheld: dict[int, dict[str, Any]] = {}  # attributes that copies have not, by their ids, and what says why
        self.sealed: list[Sealed] = []
        self.stored: dict[tuple[int, str], Any] = {}  # what attributes from outside have become: id, name -> value, or GONE
        self.deleted: set[tuple[int, str]] = set()  # those that were deleted, whether or not they have been set again
        self.copied: list[Any] = []  # objects of libraries that the function returns, of which each call gets a copy
        self.queues: dict[int, Any] = {}  # from outside, that the function changes, by id
        self.spaces: dict[int, Any] = {}  # owners of global and nonlocal names that the function assigns, by id
        self.read_unseen: set[str] = set()  # names that code that is not converted loads
        self.set_in_classes: set[str] = set()  # names of those that are attributes of classes
        self.guarded: set[str] = set()  # names of numbers from outside that are guarded by value
        self.frozen: set[tuple[Slot, Any]] = set()  # objects whose attributes are guarded, and which: names, or None for all
        self.unseen: dict[tuple[Any, tuple[str, ...]], Any] = {}  # what runs for special methods of a class, out of sight
        self.raw: list[tuple[Any, str]] = []  # arrays whose contents code that is not converted has read, and their names
        self.looked: list[tuple[str, Any]] = []  # host calls inside loops of functions that may read what is outside, and where
        self.kept: list[Any] = []
        self.trials: Context | None = None  # in which functions are tried out: what they set of context variables stays there
        # Inputs that are numbers, or arrays made of numbers: their slot and value in this call.
        self.scalars: dict[Value, tuple[Slot, Any]] = {}
        self._numbers: dict[tuple[Slot, np.dtype[Any]], Value] = {}
        # Of the root, for all traces: what each Sym is (the operand of its `bind`), and which Dim a value has as a size.
        self.sizes: dict[Sym, Value] = {}
        self.size_names: dict[Value, Dim] = {}
        self.doubts: dict[Value, Any] = {}  # numbers that may be of another type
        self.operating = False  # whether an operator of Python's is being computed
        self.takes_lists = False  # whether a function is computed that is given lists, which may have to be arrays
        self.operation = ""  # what NumPy calls the outermost operator or ufunc that is, when it warns
        self.size_limits: dict[Sym, tuple[Size, Size]] = {}  # where a Sym's limits are sizes themselves
        # Sizes that are not negative as long as this trace records, and truths that hold: of a branch, its condition.
        self.facts: tuple[Dim | Value, ...] = ()
        self.derived: dict[Any, Value] = {}  # quotients, minima, ... of sizes: computed once
        self._first: dict[Place, tuple[Slot, Dim]] = {}  # of places that are always equal
        # For host calls: whether they are allowed, what values are in this call, and which value of an enclosing trace an
        # input that is not captured begins with (what a loop carries).
        self.host_calls = host_calls
        self.filters = warnings.filters  # catch_warnings puts another list there
        self.error_state = (0, 0)  # errors that np.errstate inside the function ignores, and those that it does not
        self.error_kinds: dict[str, str] = {}  # `np.geterr()` of this call, and what np.errstate inside the function says instead
        self.reactions: dict[str, str] = {}
        self.generators: dict[Slot, Any] = {}  # of random numbers, from outside: slot -> (generator, TracedGenerator)
        self.examples: dict[Value, Any] = {}
        self.guesses: set[Value] = set()  # those of which loops were cut short
        self.example_bytes = 0
        self.example_work = 0  # what has been run of loops for them
        self.entered: dict[Value, Value] = {}
        # Of the body of a region: storages from around it, with their values outside and inside, and those it writes.
        self.is_body = False
        self.is_of_rows: bool = parent.is_of_rows if parent else False  # for many rows at once, which may take ways of their own
        self.hands_on = False  # of a function that is transformed: whether what it writes outside comes out as a result
        self.storages: dict[Any, tuple[Value, Value]] = {}
        self.written: dict[Any, None] = {}
        self.stretches: list[Any] = []  # what derivatives are to compute again (`checkpoints.py`)
        self.stores = 0  # of the root: how often a storage got a new value
        self.given: list[Any] = []  # of the root: host calls of objects from outside (`staleness.py`)
        self.held: list[Any] = []  # of the root: memory that objects of host calls have, and the function as well
        self.lent: dict[Any, None] = {}  # of the root: storages of whose arrays a transform's function has written copies
        self.made: dict[int, Any] = {}  # objects that the body itself has made, by id
        self.unsettled: dict[int, Any] = {}  # containers that may be others, by id (`containers.py`)
        self.iterators: dict[int, Any] = {}  # of before the body
        # Of the root: the regions that are being recorded, innermost last, and what earlier attempts have taught.
        self.open: list[Any] = []
        # Of the root: statements that may handle exceptions, in all functions that are called; what runs each operation of this
        # call, where an exception is handled in it; and the floating-point errors, as bits, that are exceptions then.
        self.handlers: list[Any] = []
        self.steps: Any = None
        self.is_transformed = False  # whether what is recorded belongs to a transform, which ignores floating-point errors
        self.floating = 0
        self.decisions: Any = None
        self.decided: Any = None  # what the program assumes of this call

    def is_changed(self, x: Any) -> bool:
        """Whether the function has changed attributes of an object from outside, or of a class that it may find them in."""
        owners = {id(x), *map(id, type(x).__mro__), *(map(id, x.__mro__) if isinstance(x, type) else ())}
        return any(owner in owners for owner, _ in self.stored)

    def add_input(self, aval: Aval, slot: Slot) -> Value:
        """A new input of the root trace, filled from a slot of the host program; inner traces capture it."""
        root = self.root
        root.origins.append(slot)
        return root.builder.add_input(aval, self.host.name(slot))

    def number_input(self, slot: Slot, concrete: Any, dtype: np.dtype[Any]) -> Value:
        """The graph input, of shape (), that carries a number; one per number and dtype."""
        known = self.root._numbers
        if (slot, dtype) not in known:
            # A complex number is handed in as an array: there is no quick way for Python's own.
            entry = self.host.compute(np.asarray, (slot, HostConst(dtype))) if dtype.kind == "c" else slot
            known[slot, dtype] = self.add_input(Aval((), dtype), entry)
            self.root.scalars[known[slot, dtype]] = (slot, concrete)
        return known[slot, dtype]

    def numbers_input(self, slots: Sequence[Slot], concrete: Sequence[Any], make: Callable[..., np.ndarray[Any, Any]]) -> Value:
        """The graph input that is an array of numbers, which the host program makes."""
        known, key = self.root.loaded, (make, *slots)
        if key not in known:
            name = f"an array of {self.host.name(slots[0])} and {len(slots) - 1} others"
            known[key] = self.host.compute(make, tuple(slots), name)
        entry = known[key]
        array = make(*concrete)
        if (entry, array.dtype) not in self.root._numbers:
            value = self.root._numbers[entry, array.dtype] = self.add_input(Aval(array.shape, array.dtype), entry)
            self.root.scalars[value] = (entry, array)
        return self.root._numbers[entry, array.dtype]

    def open_size(self, place: Place, slot: Slot, concrete: int) -> Dim:
        """The size that an argument's place is left open as; `slot` is the number itself in the host program."""
        known, host = self.opened[place], self.host
        host.require_range(slot, known.low, known.high)
        if known.like in self._first:
            other, size = self._first[known.like]
            host.require_equal(slot, other)
            return size
        size = self.bind(self.number_input(slot, concrete, I64), known.low, known.high)
        self._first[known.like] = slot, size
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
        root = self.root
        if value not in root.size_names:
            sym = Sym(f"{name}{len(root.sizes)}", limits(low)[0], limits(high)[1])
            builder: GraphBuilder = self.builder
            while not builder.defines(value) and builder.parent is not None:
                builder = builder.parent
            builder.emit(ops.bind, (builder.capture(value),), {"sym": sym}, (), user_source())
            root.sizes[sym] = value
            root.size_names[value] = Dim((((sym,), 1),))
            if isinstance(low, Dim) or isinstance(high, Dim):
                root.size_limits[sym] = (low, high)
        return root.size_names[value]

    def bind_outer(self) -> None:
        """Bind every Sym that this trace's graph mentions and an outer one has bound: the last thing before it is built.

        Those of captured values are bound too: a loop inside that runs so often has limits then. They stand in front of it.
        """
        builder, names = self.builder, self.root.size_names
        bound = {node.params["sym"] for node in builder.nodes if node.op is ops.bind}
        mentioned = {sym for v in builder.inputs for sym in v.aval.syms}.union(*(node.syms for node in builder.nodes))
        mentioned.update(*(names[v].syms for v in builder.captured if v in names))
        missing = sorted(mentioned - bound, key=lambda sym: sym.serial)
        values = [builder.capture(self.root.sizes[sym]) for sym in missing]
        builder.nodes[:0] = [Node(ops.bind, (value,), {"sym": sym}, ()) for sym, value in zip(missing, values)]

    def encloses(self, other: Trace) -> bool:
        """Whether `other` is this trace or inside it."""
        inner: Trace | None = other
        while inner is not None and inner is not self:
            inner = inner.parent
        return inner is self


_current: ContextVar[Trace | None] = ContextVar("jitml_trace", default=None)
# The innermost trace of this thread, or None outside any. Each compiled call asks: a function around it would cost more than it.
current_trace: Callable[[], Trace | None] = _current.get


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
        with recording(trace.builder):
            yield trace
    except Exception as error:
        pass_on(error)
        if trace.refusal is not None and error is not trace.refusal:
            raise trace.refusal from error
        raise
    finally:
        trace.closed = True
        unset(_current, token)
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
        scope = trace = _current.get()
        if trace is None or trace is not self.trace:
            return False
        trace.facts = self.facts
        for node in trace.builder.cut(self.nodes):
            if node.op is ops.check and trace.root.decided is not None:
                trace.root.decided.outcomes.pop(node.inputs[0], None)  # who asks has it claimed again
            if node.op is ops.bind:
                del trace.root.size_names[trace.root.sizes[node.params["sym"]]]  # whoever asks for the size binds it again
        while scope is not None:
            scope.refusal = None
            scope = scope.parent
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
    if trace is not None and trace.root.decisions is not None:
        trace.root.decisions.reconsider(trace, error)
    while trace is not None:
        trace.refusal = trace.refusal or error
        trace = trace.parent
    raise error


def unsupported(message: str, remedy: str = "") -> NoReturn:
    """Refuse with an `UnsupportedError` at the user's line."""
    refuse(UnsupportedError(message, remedy=remedy))


def strayed(value: Value) -> TraceError:
    """The error for a value of the graph that is used outside its trace."""
    trace = _current.get()
    return leaked(next((b for b in trace.root.constructs if b.defines(value)), None) if trace is not None else None)


def refuse_environ() -> NoReturn:
    """Refuse what reads the environment.

    Raises:
        UnsupportedError: always.
    """
    unsupported("os.environ would be read only once, while the function is traced", "Pass what it says as an argument.")


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
            if outer in around and outermost in trace.root.constructs:
                what = "something made in a branch or a loop holds a number or an array of it, and is used after it"
                trace.root.constructs[outermost].refuse(what, "Keep the number or the array itself, and make the object anew.")
            outermost = outer
    return TraceError(
        "a traced value is used after its trace has ended, or in another thread",
        source=user_source(),
        remedy="Return it from the jitted or transformed function; do not keep it in a global, an attribute, a list.",
    )
