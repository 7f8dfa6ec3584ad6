"""Host objects: what of an object that a host call makes, a spline or an optimizer's result?

`TracedObject`: its address, for other calls.

The program keeps what is made while it runs, and hands on addresses: attributes, methods and operators are host calls that begin
with one. What an object is, and which of its attributes are methods, today's says.
"""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from types import CellType
from typing import Any, NoReturn

import numpy as np
import optree

from jitml.errors import FailedCheck, UnsupportedError
from jitml.interrupts import pass_on
from jitml.ir.graph import Value
from jitml.ir.ops.host import MADE, generator_at
from jitml.records import dataclass, field
from jitml.trace.host_calls.addresses import Constant, LentAddress, Located, OuterObject, Pointer, address_of_a
from jitml.trace.host_calls.callbacks import WatchedCallback, is_built
from jitml.trace.host_calls.held_memory import (
    LOOKED_AT,
    GivenObject,
    GivenObjects,
    HeldMemories,
    arrays_of,
    closed_over,
    hold,
    hold_shared,
    is_unwritten,
    read_only,
)
from jitml.trace.record.object_state import ObjectState, is_large, parts_of
from jitml.trace.record.pytree import NAMESPACE, flatten, unflatten
from jitml.trace.record.recording import active_trace, home_of, is_users_class, unsupported, user_source
from jitml.trace.record.user_code import Call, caller
from jitml.trace.speculation.modes import Decisions
from jitml.trace.values.boxing import TracedArray, is_traced, lift
from jitml.trace.values.numbers import TracedNumber

Unchanged = Callable[[], bool]
_NUMBERS = (bool, int, float, complex)
_CONSTANTS = (str, bytes, np.dtype, type)
_REMEDY = "Take what is needed of it, numbers and arrays."
_OUTSIDE = "Use it outside of the jitted function, and pass what is needed of it."
_FACTORS = {"SuperLU"}  # which cannot be copied, and never change
METHODS_IN_PLACE = {"fill", "itemset", "partition", "put", "resize", "sort"}
_OPERATORS = ("add", "sub", "mul", "truediv", "matmul", "pow", "floordiv", "mod")
_KEEP_MASKS = (operator.iadd, operator.isub, operator.imul)  # unless there are two; a division masks what it divides by 0
_OPERATORS_IN_PLACE = {getattr(operator, f"i{name}") for name in _OPERATORS}


def is_object(x: Any) -> bool:
    """Whether a result is nothing that a program computes with."""
    return x is not None and type(x) not in (*_NUMBERS, np.ndarray) and not isinstance(x, (np.generic, str, bytes))


class TracedObject:
    """An object in a trace: `isinstance(spline, CubicSpline)` holds.

    Args:
        call: calls a function of it on the host.
        example: what is made in this call, if that is at hand.
        kept: say whether arrays and variables that the object may look at are as they were when it was made.
        outer: what is known of one from outside.
    """

    __slots__ = ("_call", "_example", "_kept", "_kind", "_outer", "_value")
    __array_ufunc__ = None  # arrays leave operators to it

    def __init__(
        self,
        call: Callable[..., Any],
        value: Value | None,
        example: Any,
        kind: type,
        kept: tuple[Unchanged, ...],
        outer: OuterObject | None = None,
    ) -> None:
        for name, own in zip(TracedObject.__slots__, (call, example, kept, kind, outer, value)):
            object.__setattr__(self, name, own)

    @property  # type: ignore[misc]  # see TracedNumber.__class__
    def __class__(self) -> type:
        return self._kind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__array_"):
            raise AttributeError(name)  # it has no memory to look at
        if self._example is None:
            self._refuse(f"is another one than in this call, and asked for {name}")
        if callable(getattr(self._example, name)):  # raises AttributeError in Python's words
            return functools.partial(self._called, name)
        return read_only(self._call(Attribute(self._kind, name), (self,), {}))

    def __hash__(self) -> int:
        if self._outer is None:
            return object.__hash__(self)
        if self._kind.__hash__ is not object.__hash__:
            self._refuse("is looked up by what it holds")
        active_trace().root.host.require_same(self._outer.slot, self._outer.original)
        return hash(self._outer.original)

    def __eq__(self, other: object) -> bool:
        return self is other or (self._outer is not None and self._outer.original is other)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        self._refuse(f"has its attribute {name} set")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._called("__call__", *args, **kwargs)

    def __getitem__(self, index: Any) -> Any:
        return read_only(self._called("__getitem__", index))

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        self._refuse("has an item set")

    def __iter__(self) -> Iterator[Any]:
        if self._outer is not None:
            return self._outer.items()
        if not isinstance(self._example, tuple):
            self._refuse("is iterated over")
        return iter([self[n] for n in range(len(self._example))])

    def __len__(self) -> int:
        if self._outer is not None:
            return self._outer.length()
        if not isinstance(self._example, tuple):
            self._refuse("is asked for its length")
        return len(self._example)

    def __bool__(self) -> bool:
        if any(hasattr(self._kind, name) for name in ("__bool__", "__len__")):
            self._refuse("is asked for its truth")
        return True

    def __repr__(self) -> str:
        return self._refuse("is shown")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self._refuse("is used as an array")

    def __copy__(self) -> Any:
        return self._operated(copy.copy)

    def __deepcopy__(self, memo: Any) -> Any:
        return self._operated(copy.deepcopy)

    def compared(self, name: str, other: Any) -> Any:
        """`x == other` and its like."""
        return self._operated(getattr(operator, name), other)

    def truth(self) -> Any:
        """`bool(x)`"""
        is_asked = any(hasattr(self._kind, name) for name in ("__bool__", "__len__"))
        return self._operated(operator.truth) if is_asked and not isinstance(self._example, tuple) else bool(self)

    def length(self) -> Any:
        """`len(x)`"""
        return len(self) if self._outer is None and isinstance(self._example, tuple) else self._operated(len)

    def contains(self, item: Any) -> Any:
        """`item in x`"""
        return self._operated(operator.contains, item)

    def _operated(self, function: Callable[..., Any], *others: Any) -> Any:
        return self._call(Operator(self._kind, function), (self, *others), {})

    def _called(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self._call(ObjectMethod(self._kind, name), (self, *args), kwargs)

    def _refuse(self, what: str) -> NoReturn:
        kind = self._kind
        where = "from outside" if self._outer is not None else "that the jitted function has made"
        unsupported(f"a {kind.__module__}.{kind.__qualname__} {where} {what}", _REMEDY)


def _operator(name: str) -> None:
    function = getattr(operator, name)

    def forward(self: TracedObject, other: Any) -> Any:
        return self._operated(function, other)

    def backward(self: TracedObject, other: Any) -> Any:
        return self._call(Operator(self._kind, function), (other, self), {})

    def in_place(self: TracedObject, other: Any) -> Any:
        return self._operated(getattr(operator, f"i{name}"), other)

    setattr(TracedObject, f"__{name}__", forward)
    setattr(TracedObject, f"__r{name}__", backward)
    setattr(TracedObject, f"__i{name}__", in_place)


def _unary(name: str) -> None:
    def itself(self: TracedObject) -> Any:
        return self._operated(getattr(operator, name))

    setattr(TracedObject, f"__{name}__", itself)


for _name in _OPERATORS:
    _operator(_name)
for _name in ("neg", "pos", "abs", "invert"):
    _unary(_name)


class OfObjects:
    """A function of objects of a class, under a name that users know; what it calls is called from the user's line."""

    def __init__(self, kind: type, name: str) -> None:
        self.__module__, self.__name__ = kind.__module__, f"{kind.__qualname__}.{name}"
        self.name = name
        self.call = caller()


class ObjectMethod(OfObjects):
    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        return self.call(getattr(x, self.name), args, kwargs)


class Attribute(OfObjects):
    def __call__(self, x: Any) -> Any:
        return self.call(getattr, (x, self.name), {})


class Operator(OfObjects):
    def __init__(self, kind: type, function: Callable[..., Any]) -> None:
        super().__init__(kind, f"__{function.__name__}__")
        self.function = function

    def __call__(self, *operands: Any) -> Any:
        return self.call(self.function, operands, {})


def original_of(x: Any) -> Any:
    """What an object from outside is in the call that is traced; of all else, itself."""
    return x._outer.original if type(x) is TracedObject and x._outer is not None else x


def outer_of(x: TracedObject) -> OuterObject | None:
    """What is known of it, if it is from outside."""
    return x._outer


def method_of(x: TracedObject, name: str) -> Callable[..., Any]:
    """A method as the program calls it."""
    return functools.partial(x._called, name)


def _located(x: TracedObject) -> Located:
    return Located(TracedNumber.of_value(active_trace(), x._value)) if x._outer is None else LentAddress(x._outer.address)


def _name_of(x: TracedObject) -> str:
    assert x._outer is not None
    return f"{active_trace().root.host.name(x._outer.slot)} ({x._kind.__module__}.{x._kind.__qualname__})"


def _to_try_out(x: TracedObject) -> ObjectState | None:
    """Let functions of an object from outside be tried out on a copy, and say what that holds; None if they change nothing."""
    outer = x._outer
    assert outer is not None
    if issubclass(x._kind, LOOKED_AT) or x._kind.__name__ in _FACTORS:
        return None
    if not outer.is_copied and not is_large(outer.original):
        try:
            example = copy.deepcopy(outer.original)
        except Exception as error:
            pass_on(error)
            said = f"{type(error).__name__}: {error}"
            unsupported(f"{_name_of(x)} cannot be copied ({said:.200}), so that nothing says what its methods change", _OUTSIDE)
        object.__setattr__(x, "_example", example)
        outer.address.concrete, outer.is_copied = id(example), True
    return ObjectState(x._example)


@dataclass
class AddressGiver:
    """A function that gives addresses of the objects that it makes.

    call: calls it from the user's line, for its warnings.
    tried_out: what it has made, of what, and all that it has given, as long as it is called to see that.
    """

    function: Callable[..., Any]
    call: Call = field(default_factory=caller)
    tried_out: tuple[list[Any], list[Any], Any] | None = ([], [], None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, spec = flatten((args, kwargs))
        given = [_own(x) for x in leaves]
        args, kwargs = unflatten(spec, given)
        result = self.call(self.function, args, kwargs)
        results, spec = flatten(result)
        if self.tried_out is not None:
            made = [x for x in results if is_object(x) and not isinstance(x, _CONSTANTS)]
            self.tried_out = made, given, result
        return unflatten(spec, [*map(_handed_out, results)])


def _handed_out(x: Any) -> Any:
    if isinstance(x, _CONSTANTS):
        return Constant(x)
    kind: Any = type(x)
    return address_of_a(kind)(MADE.keep(x)) if is_object(x) else x


def _own(x: Any) -> Any:
    """An array that objects may keep: the program's memory goes."""
    return x.copy() if type(x) is np.ndarray else x


def holds_traced(x: Any) -> bool:
    """Whether an object of NumPy's or SciPy's has been made with tracers in it, which its own code cannot use."""
    is_theirs = home_of(type(x)).partition(".")[0] in ("numpy", "scipy")
    return is_theirs and is_object(x) and any(map(is_traced, parts_of([x])))


def _is_bound_to(cell: CellType, x: Any) -> bool:
    return cell.cell_contents is x


def _kept(leaves: Sequence[Any], function: Any, made: Sequence[Any], given: Sequence[Any]) -> tuple[Unchanged, ...]:
    """What says whether all is as it is now that the objects which a function has made keep of arguments."""
    found: list[Unchanged] = [one for x in leaves if type(x) is TracedObject for one in x._kept]
    arrays = arrays_of(made)
    watched = function if isinstance(function, WatchedCallback) and any(map(is_built, parts_of(made, closed_over))) else None
    shared = [x for x in given if type(x) is np.ndarray and any(np.may_share_memory(x, y) for y in arrays)]
    for x, leaf in zip(given, leaves) if len(given) == len(leaves) else ():
        if type(leaf) is TracedArray and any(x is y for y in shared):
            hold(x, leaf)
    if watched is not None or shared:
        pairs = [
            (x.storage, own) for x, own in zip(leaves, given if len(given) == len(leaves) else leaves) if type(x) is TracedArray
        ]
        found += [functools.partial(is_unwritten, x, x.value, x.writes, own) for x, own in pairs]
    if watched is not None:
        found += [functools.partial(_is_bound_to, cell, x) for cell, x in watched.cells]
    return tuple(found)


def _is_in_place(function: Any, objects: Sequence[TracedObject], made: Sequence[Any]) -> Callable[[np.ndarray[Any, Any]], bool]:
    """Into which arrays of the object a method or an operator writes, also where nothing changes in this call."""
    if isinstance(function, ObjectMethod) and function.name in METHODS_IN_PLACE:
        return lambda x: True
    if isinstance(function, Operator) and function.function in _OPERATORS_IN_PLACE:
        if any(x is obj._example for x in made for obj in objects):
            keeps_mask = function.function in _KEEP_MASKS and len(objects) == 1
            return lambda x: x.dtype != bool or not keeps_mask
    return lambda x: False


def arrays_apart(x: TracedObject) -> list[tuple[Any, str]]:
    """Arrays of an object from outside that the function writes, and where they are found."""
    trace = active_trace().root
    if x._outer is None:
        return []
    names = trace.call[Decisions].apart_from.get(trace.host.name(x._outer.slot), ())
    return [(getattr(x._outer.original, name), name) for name in sorted(names)]


def attribute_of(x: TracedObject, name: str) -> Any:
    """An attribute as it is where the program asks for it."""
    return read_only(x._call(Attribute(x._kind, name), (x,), {}))


def _contents_apart(x: TracedObject) -> list[tuple[str, Any, Any]]:
    """Where such arrays are found, their addresses, and what the function has made of them."""
    trace, found = active_trace().root, []
    for array, name in arrays_apart(x):
        assert x._outer is not None
        text = f"{trace.host.name(x._outer.slot)}.{name}"
        slot = x._outer.attribute(name)
        address = TracedNumber(trace, trace.host.compute(id, (slot,), f"id({text})"), id(array))
        found.append((name, address, lift(array, slot)))
    return found


@dataclass(frozen=True)
class AsWritten:
    """A function of objects from outside that is given copies of them, with what the function has written into their arrays.

    names: where each of these arrays is found.
    """

    function: Callable[..., Any]
    names: tuple[str, ...]

    def __call__(self, args: Any, kwargs: Any, addresses: Sequence[int], contents: Sequence[Any]) -> Any:
        arrays = [*map(generator_at, addresses)]
        leaves, spec = flatten((args, kwargs))
        copies = [self._copied(x, arrays, contents) for x in leaves]
        args, kwargs = unflatten(spec, copies)
        states = [(x, ObjectState(x)) for x, before in zip(copies, leaves) if x is not before]
        result = self.function(*args, **kwargs)
        if not all(state.is_of(x) for x, state in states):
            raise FailedCheck("an object from outside, of which an array is written, is changed by its own method")
        parts = arrays_of([x for x, before in zip(copies, leaves) if x is not before])
        for leaf in flatten(result)[0]:
            if type(leaf) is np.ndarray and any(np.may_share_memory(leaf, x) for x in parts):
                raise FailedCheck("a view is taken of an array of an object from outside that is written")
        return result

    def _copied(self, x: Any, arrays: Sequence[Any], contents: Sequence[Any]) -> Any:
        known = {id(array) for array in arrays}
        if not is_object(x) or not any(id(part) in known for part in parts_of([x])):
            return x
        made = copy.deepcopy(x)
        for name, array, now in zip(self.names, arrays, contents):
            if getattr(x, name, None) is array:
                getattr(made, name)[...] = now
        return made


def handed(
    record: Callable[..., Any], call: Callable[..., Any], function: Callable[..., Any], args: Any, kwargs: dict[str, Any]
) -> Any:
    """Record a call of a function that takes or makes objects.

    Args:
        record: records the call of a function with arguments, and gives its traced result.
        call: what calls functions of the objects that are made.
    """
    leaves, _ = flatten((args, kwargs))
    apart = [one for x in leaves if type(x) is TracedObject for one in _contents_apart(x)]
    called = AsWritten(function, tuple(name for name, _, _ in apart)) if apart else function
    if apart:
        args, kwargs = (args, kwargs, [address for _, address, _ in apart], [array for _, _, array in apart]), {}
    leaves, spec = flatten((args, kwargs))
    outer = [x for x in leaves if type(x) is TracedObject and x._outer is not None]
    states = [_to_try_out(x) for x in outer]
    values = [_located(x) if type(x) is TracedObject else x for x in leaves]
    given, named = unflatten(spec, values)
    if not all(is_unchanged() for x in leaves if type(x) is TracedObject for is_unchanged in x._kept):
        unsupported(
            "an array or a variable is changed after an object that keeps it has been made", "Make the object after that."
        )
    handing = AddressGiver(called)
    objects = [x for x in leaves if type(x) is TracedObject]
    held = [one for one in active_trace().call[HeldMemories] if one.storage() is not None] if objects else []
    before = [one.array.tobytes() for one in held]

    def shown(x: Any) -> Any:
        if type(x) is not Pointer:
            return x.value if type(x) is Constant else x
        if is_users_class(x.kind) and any(issubclass(one._kind, LOOKED_AT) for one in outer):
            message = f"{_name_of(outer[0])} gives a {x.kind.__qualname__} that the function may also know by another name"
            error = UnsupportedError(message, source=user_source(), remedy="Pass it as an argument.")
            active_trace().call[GivenObjects].append(GivenObject(x.kind, error))
        # Of another class than today's, nothing is at hand.
        number = next((n for n, example in enumerate(examples) if type(example) is x.kind), None)
        return TracedObject(call, x.value, None if number is None else examples.pop(number), x.kind, kept)

    result = record(handing, given, named)
    (examples, copies, seen), handing.tried_out = handing.tried_out or ([], [], None), None
    for x, state in zip(outer, states):
        if state is not None and not state.is_of(x._example):
            unsupported(f"{function.__name__} changes {_name_of(x)}, which is from outside the jitted function", _OUTSIDE)
    is_in_place = _is_in_place(function, objects, examples)
    written = [x for x in arrays_of([x._example for x in objects]) if is_in_place(x)] if held else []
    for one, contents in zip(held, before):
        if one.array.tobytes() != contents or any(np.may_share_memory(one.array, x) for x in written):
            one.overwritten_by(objects[0]._kind)
    kept = _kept(leaves, function, examples, copies)
    written_later = (x.storage for _, _, x in apart)  # what is made may show them
    kept += tuple(functools.partial(is_unwritten, x, x.value, x.writes, None) for x in written_later)
    parts = [*filter(is_object, (*examples, *copies))]
    result = optree.tree_map(shown, result, is_leaf=lambda x: type(x) is Constant, namespace=NAMESPACE)
    hold_shared(result, seen, parts)
    return result
