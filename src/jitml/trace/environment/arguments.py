"""Arguments: what does a traced function get in place of its arguments?  `enter_all`: stand-ins, with guards for later calls."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from itertools import groupby
from types import FunctionType, MethodType
from typing import Any, NoReturn

import numpy as np
import optree

from jitml.device.convert import is_foreign
from jitml.errors import Cause, UnsupportedError
from jitml.ir.types import is_supported
from jitml.trace.environment.equality_guards import require_value
from jitml.trace.environment.guarded_loads import CalledArguments, observe, observe_argument
from jitml.trace.environment.transformed import Transformed
from jitml.trace.environment.value_classification import Way, is_array, way_of
from jitml.trace.host_calls.generators import from_outside, is_generator
from jitml.trace.record.device_arrays import is_on_device, shown_memory
from jitml.trace.record.guards import IMMUTABLE, HostConst, Slot
from jitml.trace.record.libraries import is_library
from jitml.trace.record.object_state import CONTAINERS
from jitml.trace.record.pytree import MOST_PARTS, Static, count_leaves, flatten, is_countable
from jitml.trace.record.recording import Trace, user_source
from jitml.trace.record.user_code import about
from jitml.trace.values.boxing import is_traced, lift, refuse_dtype, scalar
from jitml.trace.values.numbers import TracedNumber

_NUMBERS = (bool, int, float, complex)
_FEW = 32  # numbers whose types are guarded one by one
_WORK, _WORK_OF_ARRAY = 6, 15


class Unchanging:
    """What jitml has made and nobody changes, a pullback say, which holds what no converted code loads: a variant for each."""

    __slots__ = ()


class Callee:
    """An argument that is the user's function, to be converted: another one of the same code will do.

    Its globals and what it closes over are loaded at each call, and guarded like what every function loads. A method of the same
    object will do, a `functools.partial` with the same arguments, and what a transform has made of such a function.
    """

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


def parameters(function: Callable[..., Any], args: tuple[Any, ...]) -> list[str]:
    """What a function calls its positional arguments; those that a transform hands on have the names of its function's."""
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    names = [p.name for p in known if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in known if p.kind is p.VAR_POSITIONAL), None)
    if rest is None:
        return names
    if args and type(args[0]) is Callee:
        return [*names, *parameters(args[0].function, args[len(names) :])]
    return [*names, *(f"{rest}[{n}]" for n in range(len(args) - len(names)))]


def require_countable(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Refuse arguments of so many parts that a list of these alone would take seconds, and half a gigabyte.

    Raises:
        UnsupportedError: there are too many parts.
    """
    if not is_countable((args, kwargs)):
        _refuse_many(function, args, kwargs)


def require_few(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Refuse arguments that it would take as much to take apart: each part has a guard, and a name.

    Raises:
        UnsupportedError: there are too many parts.
    """
    if not kwargs and len(args) <= _FEW and all(is_array(x) or type(x) in _NUMBERS for x in args):
        return
    require_countable(function, args, kwargs)
    leaves, spec = flatten((args, kwargs))
    if spec.num_nodes * _WORK_OF_ARRAY > MOST_PARTS and _work_of(leaves, spec) > MOST_PARTS:
        _refuse_many(function, args, kwargs)


def _refuse_many(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> NoReturn:
    positional = parameters(function, args)
    named = [*((positional[n] if n < len(positional) else f"args[{n}]", x) for n, x in enumerate(args)), *kwargs.items()]
    name, count = max(((name, count_leaves(x, MOST_PARTS)) for name, x in named), key=lambda pair: pair[1])
    items = f"more than {MOST_PARTS}" if count > MOST_PARTS else f"{count}"
    what = f"argument {name} holds {items} items" if count > len(named) else f"there are {len(named)} arguments"
    with about(name):
        raise UnsupportedError(
            f"{what}, too many to be checked at each call",
            source=user_source(),
            remedy=f"Make it an array: np.asarray({name}).",
            cause=Cause.SLOW,
        )


def _work_of(leaves: Sequence[Any], spec: optree.PyTreeSpec) -> int:
    work = _WORK * (spec.num_nodes - len(leaves))
    for kind, row in groupby(leaves, type):
        count = sum(1 for _ in row)
        work += count * (1 if kind in _NUMBERS and count > _FEW else _WORK_OF_ARRAY if kind is np.ndarray else _WORK)
    return work


def enter_all(recording: Trace, leaves: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """The stand-ins of all leaves."""
    slots = [recording.host.argument(position, name) for position, name in enumerate(names)]
    for n, leaf in enumerate(leaves):
        if is_on_device(leaf):
            shown, slots[n] = shown_memory(recording, leaf, slots[n])
            leaves = [*leaves[:n], shown, *leaves[n + 1 :]]
    typed = _require_types(recording, slots, leaves)
    entered: list[Any] = []
    for slot, leaf, name in zip(slots, leaves, names):
        with about(name):
            entered.append(_enter(recording, slot, len(entered), leaf, name, slot in typed))
    return entered


def _require_types(recording: Trace, slots: Sequence[Slot], leaves: Sequence[Any]) -> set[Slot]:
    """Guard the types of long rows of Python numbers, each row at once; answers which these are."""
    found: set[Slot] = set()
    for kind, row in groupby(zip(slots, leaves), lambda given: type(given[1])):
        if kind in _NUMBERS and len(alike := [slot for slot, _ in row]) > _FEW:
            recording.host.require_types(alike, kind)
            found.update(alike)
    return found


def _enter(recording: Trace, slot: Slot, position: int, leaf: Any, name: str, is_typed: bool) -> Any:
    """The stand-in for one argument leaf, with the checks that make it valid for later calls; `is_typed`: its type has one."""
    host = recording.host
    kind = type(leaf)
    if is_traced(leaf):
        raise UnsupportedError(f"argument {name} is a traced value of another trace", source=user_source())
    if is_array(leaf):
        return lift(leaf, slot, position)
    if is_foreign(leaf):
        raise UnsupportedError(
            f"argument {name} is a {kind.__module__}.{kind.__qualname__} on a device",
            source=user_source(),
            remedy=f"Pass jitml.asarray({name}), which makes no copy. Arguments of jitted functions that are no items of others "
            "may be such arrays.",
        )
    if isinstance(leaf, np.generic):
        if not _is_number(leaf):
            refuse_dtype(leaf, name)
        if leaf.dtype.type is not kind:
            raise UnsupportedError(
                f"argument {name} is a {kind.__qualname__}, a class of numbers with methods of its own",
                source=user_source(),
                remedy=f"Pass a number of NumPy's: np.{leaf.dtype.type.__name__}({name}).",
            )
        host.require_type(slot, kind)
        number = host.compute(np.generic.item, (slot,), name)
        return scalar(recording.number_input(number, leaf.item(), leaf.dtype))
    if kind in _NUMBERS:
        if not is_typed:
            host.require_type(slot, kind)
        if (position, None) in recording.inputs.opened:
            return TracedNumber.of_size(recording, None, recording.open_size((position, None), slot, leaf))
        return TracedNumber(recording, slot, leaf)
    if kind is Static:
        host.require(slot, leaf)
        return leaf.value
    if kind is Callee:
        _see_function(recording, leaf.function, host.compute(getattr, (slot, HostConst("function")), name), name)
        return leaf.function
    if isinstance(leaf, (type, Unchanging)):
        host.require_same(slot, leaf)
        return leaf
    if kind in (str, bytes, type(...)) or isinstance(leaf, (np.dtype, Enum, range, *IMMUTABLE)):
        require_value(recording, slot, leaf)
        return leaf
    if kind in (bytearray, memoryview) or (makes_array(leaf) and way_of(leaf) not in (Way.OPAQUE, Way.COMPARED)):
        raise UnsupportedError(
            f"argument {name} is a {kind.__qualname__}, which is not supported",
            source=user_source(),
            remedy=f"Pass np.asarray({name}): arguments are NumPy arrays, not what others make arrays of."
            if kind is memoryview or makes_array(leaf)
            else "Arguments are NumPy arrays, numbers, strings, and tuples, lists, dicts and dataclasses of them.",
        )
    if is_generator(leaf):
        return from_outside(recording, leaf, slot)
    if isinstance(leaf, CONTAINERS):  # of a class of its own, like Counter
        return observe(recording, leaf, slot, name)
    return observe_argument(recording, leaf, slot, name)


def makes_array(x: Any) -> bool:
    """Whether NumPy makes an array of an object that says so itself. A `__getattr__` that has any name does not count."""
    return inspect.getattr_static(x, "__array__", None) is not None


def _see_function(recording: Trace, function: Any, place: Slot, name: str) -> None:
    """Guard what tells a function, which the host program has at a place, from another one that does something else."""
    host = recording.host

    def part(attribute: str) -> Slot:
        return host.compute(getattr, (place, HostConst(attribute)), name)

    if isinstance(function, Transformed):
        _see_function(recording, function.__wrapped__, part("__wrapped__"), name)
    elif type(function) is MethodType:
        host.require_same(part("__self__"), function.__self__)
        _see_function(recording, function.__func__, part("__func__"), name)
    elif type(function) is functools.partial:
        given = [("args", n, value) for n, value in enumerate(function.args)]
        for attribute, key, value in (*given, *(("keywords", key, value) for key, value in function.keywords.items())):
            item = host.compute(operator.getitem, (part(attribute), HostConst(key)), name)
            (host.require if type(value) in (bool, int, float, complex, str) else host.require_same)(item, value)
        _see_function(recording, function.func, part("func"), name)
    elif type(function) is FunctionType and not is_library(function):
        recording.call[CalledArguments][function] = place
    else:
        host.require_same(place, function)


def _is_number(x: np.generic) -> bool:
    return is_supported(x.dtype)


def check_containers(given: Any, got: Any, tracers: Sequence[Any], spec: optree.PyTreeSpec) -> None:
    """The function got copies of the caller's lists and dicts: what it did to them would be lost.

    Args:
        given, got: `(args, kwargs)` of the caller, and of the function. What is declared static is one leaf, whatever it is.
    """
    args = tuple(x if type(x) is Static else y for x, y in zip(given[0], got[0]))
    kwargs = {name: given[1][name] if type(given[1].get(name)) is Static else y for name, y in got[1].items()}
    leaves, after = flatten((args, kwargs))
    if after != spec or any(a is not b and type(a) is not Static for a, b in zip(leaves, tracers)):
        raise UnsupportedError(
            "the function changes a list, dict or dataclass argument (an item is added, removed or replaced)",
            source=user_source(),
            remedy="Return the new container instead. Writing into an array it holds, as in params['w'] -= g, is fine.",
        )


def marked(
    function: Callable[..., Any],
    called: str,
    statics: tuple[Collection[int], Collection[str]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, static ones as such.

    Args:
        called: the function's name, to be told.
        statics: positions and names of these.

    Raises:
        TypeError: one of them has no hash.
    """
    positions, names = statics
    args = tuple(_static_argument(function, called, x, n) if n in positions else x for n, x in enumerate(args))
    return args, {name: _static_argument(function, called, x, name) if name in names else x for name, x in kwargs.items()}


def _static_argument(function: Callable[..., Any], called: str, value: Any, place: int | str) -> Static:
    try:
        hash(value)
    except TypeError:
        name = place if isinstance(place, str) else [*inspect.signature(function).parameters][place]
        raise TypeError(
            f"{name} of {called} is a static argument, and a {type(value).__qualname__} could change unseen: "
            "it has no hash. Pass a tuple of numbers, say, or do not declare it static."
        ) from None
    return Static(value)
