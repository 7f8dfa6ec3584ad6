"""Kinds of values: what can a name hold, as far as a region is concerned?

Nested containers of leaves, each of a `Kind` or any other object.

A leaf with a kind is a value of the graph: an array, a NumPy scalar, a number of Python's. Regions carry those and merge them;
other objects have to stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import optree

from jitml.ir import ops
from jitml.ir.dims import limits
from jitml.ir.graph import Value
from jitml.ir.types import BOOL, C128, F64, I64, Aval, is_supported
from jitml.records import dataclass
from jitml.trace.record.pytree import HOLDS_ITSELF, children, flatten, flatten_but, places_within, unflatten
from jitml.trace.record.recording import Trace, active_trace, current_trace, unsupported
from jitml.trace.rewrite.driver_protocol import UNDEF
from jitml.trace.storage.storage import Storage
from jitml.trace.storage.strides import Ints
from jitml.trace.symbolic.booleans import all_of, as_value, negated
from jitml.trace.symbolic.broadcasting import is_single, require_sizes
from jitml.trace.symbolic.constants import constant_of, depends_on_numbers
from jitml.trace.values.array_writes import is_writeable
from jitml.trace.values.boxing import TracedArray, TracedNumber, TracedScalar, lift, read, scalar
from jitml.trace.values.python_arithmetic import that_floats_hold
from jitml.trace.values.type_unions import NONE, fits, is_of, may_be_none, numpys

_MOST_PLACES = 1 << 16  # in a container that is taken apart
_NUMBERS: dict[type, np.dtype[Any]] = {bool: BOOL, int: I64, float: F64}
_WEAK: dict[np.dtype[Any], type] = {I64: int, F64: float}
_TYPES: dict[np.dtype[Any], type] = {BOOL: bool, I64: int, F64: float}
_CONSTANTS = (str, bytes, int, float, bool, complex, type(None), type(...), np.generic, np.dtype, range)


@dataclass(frozen=True, slots=True)
class Kind:
    """What sort of value a leaf is: `number` (Python's, weak), `scalar` (NumPy's) or `array`.

    An array that is `lent` shows an object's own memory: the function may not write it, and whoever gets it may.
    """

    form: str
    aval: Aval
    layout: Ints = ()
    writeable: bool = True
    lent: bool = False

    @property
    def part(self) -> Any:
        """Its part in promotion: a dtype, or the type of a weak number."""
        return _WEAK.get(self.aval.dtype, self.aval.dtype) if self.form == "number" else self.aval.dtype

    @property
    def python(self) -> type | None:
        """The type of Python's that a number has; None for values of NumPy's."""
        return _TYPES.get(self.aval.dtype, complex) if self.form == "number" else None

    @property
    def which(self) -> type | None:
        """The type that a number or scalar has; None for an array."""
        return self.python if self.form == "number" else None if self.form == "array" else numpys(self.aval.dtype)

    def show(self, value: Value) -> Any:
        """A value as a leaf of this kind; an array is a new one."""
        if self.form == "number":
            return TracedNumber.of_value(active_trace(), value)
        if self.form == "scalar":
            return scalar(value)
        storage = Storage(active_trace(), value, strides=self.layout)
        storage.of_object = self.lent
        return TracedArray(storage, (), self.aval, self.layout, self.writeable)

    def take(self, leaf: Any) -> Value:
        """A leaf in the graph, as a value of this kind; that an integer of Python's fits is checked."""
        dtype = self.aval.dtype
        if type(leaf) is TracedNumber and leaf.kind is int and dtype.kind in "iu":
            return leaf.value_if_any(dtype)
        value = value_if_any(leaf)
        if dtype in (F64, C128) and value.dtype.kind in "iu" and value.dtype.itemsize == 8:
            value = that_floats_hold(value)
        return value if value.dtype == dtype else ops.convert(value, dtype=dtype)


def value_if_any(leaf: Any) -> Value:
    """A leaf in the graph; of a number that may be None, what stands for that, too."""
    value: Value = leaf.value if may_be_none(leaf) else read(leaf)
    return value


FLAG = Kind("number", Aval((), BOOL))


def kind_of(leaf: Any) -> Kind | None:
    """The kind of a leaf; None for what is no value."""
    which = type(leaf)
    if which is TracedNumber:
        return Kind("number", Aval((), leaf.dtype))
    if which in _NUMBERS and not (which is int and not -(1 << 63) <= leaf < 1 << 63):
        return Kind("number", Aval((), _NUMBERS[which]))
    if which is TracedScalar or (isinstance(leaf, np.generic) and is_supported(leaf.dtype)):
        return Kind("scalar", Aval((), leaf.dtype))
    if which is np.ndarray:
        leaf = lift(leaf)
    if type(leaf) is TracedArray:
        return Kind("array", leaf.aval, leaf.layout, leaf.writeable, lent=is_writeable(leaf) and not leaf.writeable)
    return None


def join(a: Kind, b: Kind) -> Kind | None:
    """The kind of a place that holds one or the other; None if there is none.

    A weak number joins a scalar whose dtype it takes beside it.
    """
    if a == b:
        return a
    if "array" in (a.form, b.form):
        return None
    if a.form == b.form:
        return None if a.form == "scalar" or {a.aval.dtype, b.aval.dtype} != {I64, F64} else Kind("number", Aval((), F64))
    weak, strong = (a, b) if a.form == "number" else (b, a)
    sample = {BOOL: False, I64: 0, F64: 0.0, C128: 0j}[weak.aval.dtype]
    fits = np.result_type(sample, strong.aval.dtype) == strong.aval.dtype
    return strong if fits and (weak.aval.dtype == BOOL) == (strong.aval.dtype == BOOL) else None


def widest(a: Kind, b: Kind, leaves: Iterable[Any]) -> Kind | None:
    """The kind of a place that holds one or the other with the truth of its type beside it; None if there is none.

    Then they need not compute alike: one may be a truth and the other a number, or one Python's float and the other NumPy's int.
    """
    joined = join(a, b)
    if (joined is not None and all(may_hold(leaf, joined) for leaf in leaves)) or "array" in (a.form, b.form):
        return joined
    pairs = ((wide, other) for wide, other in ((a, b), (b, a)) if np.can_cast(other.aval.dtype, wide.aval.dtype))
    return next((wide for wide, other in pairs if wide.form == "number" or other.form == "scalar" or other == FLAG), None)


def may_hold(leaf: Any, kind: Kind) -> bool:
    """Whether a place of some kind has room for an integer of Python's, as far as that is known."""
    known = leaf.concrete if type(leaf) is TracedNumber and leaf.slot is not None else leaf
    return kind.aval.dtype.kind not in "iu" or type(known) is not int or fits(known, kind.aval.dtype)


def truth(x: Any) -> Value:
    """The truth of a number, a scalar or an array of one element, in the graph; None is false."""
    value = value_if_any(x)
    if value.shape:
        value = ops.reshape(require_sizes(value, (1,) * value.ndim), shape=())
    value = value if value.dtype == BOOL else ops.ne(value, 0)
    return as_value(all_of(negated(is_of(x, NONE)), value)) if may_be_none(x) else value


def is_decided(x: Any) -> bool:
    """Whether Python decides on a traced value: on a number of Python's from outside, whose truth is then guarded, or a constant.

    NumPy's numbers from outside are elements of arrays, as a rule: others come with the next call.
    """
    if may_be_none(x):
        return False
    if type(x) is TracedNumber:
        if x.slot is not None:
            return True
        if x.size is not None:
            low, high = limits(x.size)
            return low > 0 or high < 0 or low == high
    elif not is_single(x.aval.size):
        return True  # whose truth is ambiguous
    value = read(x)
    return not depends_on_numbers(value) and constant_of(value) is not None


_LEAF = optree.treespec_leaf(none_is_leaf=True)


@dataclass(frozen=True)
class HeldValue:
    """What a name holds, taken apart."""

    spec: optree.PyTreeSpec
    leaves: tuple[Any, ...]
    kinds: tuple[Kind | None, ...]

    def rebuild(self, leaves: list[Any]) -> Any:
        return rebuilt(self.spec, leaves)

    @property
    def others(self) -> list[Any]:
        """The leaves that are no values."""
        return [leaf for leaf, kind in zip(self.leaves, self.kinds) if kind is None]


def rebuilt(spec: optree.PyTreeSpec, leaves: Sequence[Any]) -> Any:
    """A container of these leaves; where a function is traced, it is known to be the function's own, which may change it."""
    made, trace = unflatten(spec, leaves), current_trace()
    if trace is not None:
        _own(trace.root, made, spec)
    return made


def _own(trace: Trace, x: Any, spec: optree.PyTreeSpec) -> None:
    if spec.is_leaf() or x is None:
        return
    if type(x).__module__ != "builtins":
        trace.outside.own[id(x)] = x
    for part, inner in zip(children(x)[0], spec.children()):
        _own(trace, part, inner)


def is_filled(x: Any) -> bool:
    """Whether something is a list that a loop has filled: a Stack."""
    return isinstance(x, list) and type(x) is not list


def take_apart(x: Any, *, none_is_leaf: bool = True) -> HeldValue:
    """None is a leaf, as a number may come to stand there; as an item of a list that a loop fills it is structure."""
    if is_filled(x):  # it has many leaves; it is one object here
        return HeldValue(_LEAF, (x,), (None,))
    return take_all_apart(x, none_is_leaf=none_is_leaf)


def take_all_apart(x: Any, *, none_is_leaf: bool = True) -> HeldValue:
    """The same of what is handed on as a new object: the leaves of a Stack, too."""
    if type(x) in (tuple, list, dict) and (count := places_within(x)) > _MOST_PLACES:
        where = "holds itself" if count >= HOLDS_ITSELF else f"holds the same containers over and over, in {count} places"
        unsupported(f"a {type(x).__name__} in a loop or a branch {where}", "Put what is shared into a name of its own.")
    take = partial(flatten_but, whole=records) if (records := active_trace().outside.records) else flatten
    leaves, spec = take(x, none_is_leaf=none_is_leaf)
    return HeldValue(spec, tuple(leaves), tuple(map(kind_of, leaves)))


def same(a: Any, b: Any) -> bool:
    """Whether a program cannot tell the two from each other, now or later."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b) or a is UNDEF:
        return False
    if kind is TracedArray:
        if a.storage is not b.storage or a.steps != b.steps or a.writeable != b.writeable:
            return False
        return not (a.storage.is_external and (a.slot is not None or b.slot is not None))  # an argument, and a view of all of it
    if kind is TracedScalar:
        return a.value is b.value
    if kind is TracedNumber:
        if a.slot is not None or b.slot is not None:
            return a.slot == b.slot
        return a.value is b.value if a.size is None or b.size is None else bool(a.size == b.size)
    if isinstance(a, _CONSTANTS):
        return repr(a) == repr(b)
    if isinstance(a, slice):
        return same(a.start, b.start) and same(a.stop, b.stop) and same(a.step, b.step)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return False


def by_leaves(x: Any, y: Any, join: Callable[[Any, Any], Any]) -> Any:
    """Of two values that are the same: x with what is to stand for each pair of leaves."""
    if not isinstance(x, tuple):
        return join(x, y)
    held, other = take_apart(x), take_apart(y)
    made = [join(a, b) for a, b in zip(held.leaves, other.leaves)]
    return x if all(a is b for a, b in zip(made, held.leaves)) else held.rebuild(made)


def told(x: Any) -> str:
    """A leaf as messages name it."""
    kind = kind_of(x)
    if kind is None:
        return repr(x) if isinstance(x, (str, type(None))) else f"a {type(x).__name__}"
    if kind.form == "number":
        return f"a Python {x.__class__.__name__}"
    return str(kind.aval) if kind.form == "array" else f"a NumPy {kind.aval.dtype} scalar"
