"""Calls of what is not converted: functions of Python's, of NumPy's and of other libraries, run as they are or on the host.

What they are given to call back is converted first; what they may read of objects is guarded, and what they change in lists and
dicts is told to the trace.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from jitml.errors import Cause, LifetimeError
from jitml.imports.late import late
from jitml.trace.carried.iterators import gone_through
from jitml.trace.carried.outer_lists import OpenList
from jitml.trace.effects.attribute_stores import require_own
from jitml.trace.effects.side_effects import own_parts
from jitml.trace.environment.functools_wrappers import is_foreign
from jitml.trace.environment.guarded_loads import with_items
from jitml.trace.environment.tracked_copies import entries
from jitml.trace.environment.unseen_reads import guard_librarys, require_constant
from jitml.trace.environment.value_classification import is_iterator
from jitml.trace.hooks.impure import COMPARED, MUTATORS, is_one_of
from jitml.trace.hooks.models.user_methods import parts_of, users_method
from jitml.trace.hooks.profiling import Sighted
from jitml.trace.hooks.python_functions import SPECIAL, asked_by, finding, looked_at
from jitml.trace.host_calls.array_ownership import own_arrays, with_lifted_items
from jitml.trace.record.container_contents import contents, differ, refill
from jitml.trace.record.object_state import CONTAINERS
from jitml.trace.record.pytree import flatten, is_record
from jitml.trace.record.recording import Trace, home_of, is_users_class, refuse, unsupported
from jitml.trace.record.user_code import as_written
from jitml.trace.regions.drivers import made
from jitml.trace.values.boxing import is_traced, lift
from jitml.trace.values.opaque_objects import is_opaque, refuse_opaque
from jitml.trace.values.reachable import called_by
from jitml.trace.values.registry import call, full_name, has_meaning, meaning_of
from jitml.trace.values.text import plain_key
from jitml.trace.values.type_unions import may_be_none, require_type_known

if TYPE_CHECKING:
    from jitml.trace.host_calls import call as host_call
else:
    host_call = late("jitml.trace.host_calls.call")


# Of Python's own containers: methods that look at nothing that is in them, but at keys; and those that change nothing.
_MOVERS = {
    *("append", "insert", "pop", "clear", "reverse", "appendleft", "popleft", "rotate"),
    *("get", "setdefault", "keys", "values", "items"),
}
_READERS = {"get", "keys", "values", "items", "index", "count", "copy"}
_OF_OBJECT = {"__reduce__", "__reduce_ex__", "__getstate__", "__dir__", "__format__"}  # which all objects have, and read them
# Functions of libraries that look at classes only, or call what is converted.
WEAK = (
    *(weakref.ref, weakref.proxy, weakref.finalize, weakref.WeakMethod),
    *(weakref.WeakSet, weakref.WeakKeyDictionary, weakref.WeakValueDictionary),
)
_TRUSTED = {functools.reduce, dataclasses.fields, dataclasses.is_dataclass, cast, weakref.ref}


class OutsideCalls(Sighted):
    """Hooks that call what is not converted; `calls.Hooks` has them too."""

    __slots__ = ()

    def _iterating(self, function: Callable[..., Any], converted: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function that may iterate over what it is given."""
        args = self.given_to(function, args)
        kwargs = {name: self._handed_key(arg) if name == "key" else arg for name, arg in kwargs.items()}
        if function is sum and args and not kwargs and type(args[0]) in (list, tuple):
            if any(users_method(type(x), name) for x in args[0] for name in ("__add__", "__radd__")):
                return functools.reduce(functools.partial(self.binary, "add"), args[0], *(args[1:] or (0,)))
        return converted(*args, **kwargs)

    def _computing(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function of NumPy's, which may ask special methods."""
        for x in filter(is_opaque, flatten((args, kwargs))[0]):  # a masked array, say
            refuse_opaque(x, f"is given to {full_name(function)}")
        self.unseen_inside(*args, *kwargs.values())
        return call(function, *map(_dtype_known, args), **{name: _dtype_known(x) for name, x in kwargs.items()})

    def _handing(self, function: Callable[..., Any], converted: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The same of one that calls functions which it is given."""
        named = {name: self._handed(arg) for name, arg in kwargs.items()}
        return self._iterating(function, converted, *map(self._handed, args), **named)

    def _handed(self, argument: Any) -> Any:
        """A function that others get to call, of Python's own ones, too."""
        return meaning_of(argument) if has_meaning(argument) else self._handed_key(argument)

    def _handed_key(self, argument: Any) -> Any:
        """The same of a function that sees no tracers but as they are."""
        plain = argument
        while type(plain) is functools.partial:
            plain = plain.func
        if type(plain) in (FunctionType, BuiltinFunctionType):  # a library's is called out of sight
            self.refuse_impure(plain, None)
        return self.conv(argument) if argument is getattr else self._callback(argument)

    def call_outside(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function that is not converted: those it is given are, the objects it may look into are guarded."""
        if function in (map, filter):
            args = (*args[:1], *map(self.gone_through, args[1:]))
        elif function is functools.reduce and len(args) > 1:
            args = (args[0], self.gone_through(args[1]), *args[2:])
        args = tuple(self.present_number(arg) for arg in map(gone_through, args))
        close_lists(args)
        if is_ours(function):
            args, kwargs = tuple(self.seen(x, {}) for x in args), {name: self.seen(x, {}) for name, x in kwargs.items()}
        owner = getattr(function, "__self__", None)
        # What a method that changes its owner does to it, `_check_effects` has told already.
        given = (x for x in (*args, None if _is_known_method(function) else owner) if isinstance(x, COMPARED))
        held = [(x, contents(x)) for x in given if not home_of(type(x)).startswith("jitml.")]
        if (look := self._looks(function)) is not None:
            look(*args, *kwargs.values())
            args = tuple(looked_at(x, look) for x in args)
        if function is functools.reduce:
            arguments = [*map(self._handed, args)]
        else:  # a container keeps a function, or looks it up, as it is
            arguments = [*args] if _is_known_method(function) else [*map(self._callback, args)]
        if function in (map, filter) and args and args[0] is not None:
            arguments[0] = self.conv(args[0])
        named = {name: self._callback(arg) for name, arg in kwargs.items()}
        if (getattr(function, "__module__", None) or "").startswith("numpy"):
            return self._calling_library(function, *arguments, **named)
        try:
            box = [as_written(finding(function), arguments, named)]
        except TypeError as error:
            _refuse_memory(error, (arguments, named))
            raise
        guard_librarys(self.trace, *_read_by(function, arguments, named))
        for x, before in held:
            if differ(before, after := contents(x)):  # it is one of those that change what they are given
                require_own(self.trace, x)  # before anything is put back: what others see is theirs as well
                refill(x, before)
                self.effect(x)
                refill(x, after)
        if is_foreign(function) and not is_iterator(box[0]) and not any(map(is_traced, flatten((args, kwargs))[0])):
            self._leaving_to_python(function)  # it tells what the library knows
        return self._result(function, box, (*arguments, *named.values()))

    def weakly(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """A weak reference, if not to what the function makes: that lives as long as the trace, not until it is let go."""
        if not is_one_of(function, WEAK[:2]) or not args or id(args[0]) not in self.trace.outside.places:
            message = f"{full_name(function)}() would still see objects of the jitted function that are let go in it"
            refuse(LifetimeError(message, remedy="Make them outside of it."))
        return self.call_outside(function, *args, **kwargs)

    def _result(self, function: Any, box: list[Any], given: Iterable[Any]) -> Any:
        """What a call that is not converted has given, which alone is in the list: perhaps something new."""
        if isinstance(box[0], type):
            return box[0] if _is_found_by_name(box[0]) else self.class_made()
        own_arrays(box)
        if type(box[0]) is np.ndarray:
            return lift(box[0])
        if isinstance(box[0], tuple):
            box = [with_lifted_items(box.pop())]
        own_parts(self.trace, box, (*called_by(function), *given), may_be_new=True)
        return box[0]

    def _ufunc(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a ufunc that is not in the registry; of lists it does not see what is in them."""
        are_listed = any(type(x) in (list, tuple) and any(map(is_traced, flatten(x)[0])) for x in args)
        return call(function, *args, **kwargs) if are_listed else self.call_outside(function, *args, **kwargs)

    def _calling_library(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function of NumPy's or SciPy's that is not in the registry: as ever if it can do with that, else on the host."""
        box = [host_call.call_now(function, args, kwargs)]
        if box[0] is host_call.ON_HOST:  # where it reads its objects at each call
            return host_call.call_on_host(function, args, kwargs)
        guard_librarys(self.trace, *_read_by(function, args, kwargs))
        return self._result(function, box, (*args, *kwargs.values()))

    def _leaving_to_python(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A call of another library, of which nobody knows what it looks at and changes."""
        unsupported(
            f"{full_name(function)} is of an installed library, which Python alone calls", "Call it outside.", Cause.LIBRARY
        )

    def _making(self, cls: type, *args: Any, **kwargs: Any) -> Any:
        """An object of a class of NumPy's, which is the function's own unless the host makes it."""
        if cls is np.datetime64 and args and isinstance(args[0], str) and args[0] in ("now", "today"):
            self._refuse_once(cls)
        return own(self.trace, self._calling_library(cls, *args, **kwargs))

    def _looks(self, function: Any) -> Callable[..., object] | None:
        """What guards all that a function which is not converted may read of the objects that it is given; None if nothing."""
        owner = getattr(function, "__self__", None)
        is_method = type(function) is MethodType
        module = getattr(function, "__module__", None)
        if not is_method and (module == "builtins" or (module is None and home_of(type(owner)) in ("builtins", "collections"))):
            if methods := asked_by(function):
                return functools.partial(self.unseen_inside, owner, methods=methods)
            return self._look_up if isinstance(owner, (dict, set, frozenset)) else None
        if is_one_of(function, _TRUSTED) or type(function) is operator.itemgetter:
            return None
        reads_owner = is_method or getattr(function, "__name__", "") in _OF_OBJECT
        is_users = reads_owner and is_users_class(cast(Any, type(owner)))
        return functools.partial(self._look_at_all, owner) if is_users else self._look_at_all

    def _look_up(self, *given: Any) -> None:
        for x in given:
            self.hashed(x)

    def _look_at_all(self, *given: Any) -> None:
        for part in parts_of(given):
            slot = self.trace.outside.places.get(id(part))
            if slot is not None and not isinstance(part, CONTAINERS):
                require_constant(self.trace, part, slot)

    def _taking_apart(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a transform of ours."""
        return function(*(self.seen(x, {}) for x in args), **{name: self.seen(x, {}) for name, x in kwargs.items()})

    def seen(self, x: Any, known: dict[int, Any]) -> Any:
        """A container with what it holds as converted code sees it; what takes it apart goes past that."""
        if not (is_record(x) or isinstance(x, CONTAINERS)) or home_of(type(x)).startswith("jitml."):
            return x
        if id(x) in known:
            return known[id(x)]
        known[id(x)] = x  # one that holds itself ends here
        if is_record(x):
            items = [(key, self.seen(self.attr(x, key), known)) for key, _ in entries(x)]
        else:
            items = [(key, self.seen(item, known)) for key, item in entries(x)]
        if any(item is not before for (_, item), (_, before) in zip(items, entries(x))):
            made = known[id(x)] = made_like(self.trace, x, dict(items)) if is_record(x) else with_items(x, items)
            self.trace.copies.taken[id(made)] = made, x
        return known[id(x)]

    def _callback(self, argument: Any) -> Any:
        if type(argument) in (FunctionType, MethodType, functools.partial):
            return self.convert(argument)
        is_method = type(argument) in (BuiltinFunctionType, MethodWrapperType) and type(argument.__self__) is not ModuleType
        is_getter = type(argument) in (operator.attrgetter, operator.methodcaller)
        return self.conv(argument) if is_method or is_getter or _is_operator(argument) else argument

    def present_number(self, x: Any) -> Any:
        """What is seen by somebody who may ask whether it is None."""
        if may_be_none(x):
            require_type_known(x)
        return x


def own(trace: Trace, x: Any) -> Any:
    """What is new in each call; members of an enumeration, which its class keeps, are not."""
    if not isinstance(x, Enum):
        trace.outside.own[id(x)] = x
    return x


def made_like(trace: Trace, x: Any, state: dict[str, Any]) -> Any:
    """A new object of the same class, with these attributes."""
    new = own(trace, object.__new__(type(x)))
    for name, value in state.items():
        object.__setattr__(new, name, value)
    return made(new)


def _is_found_by_name(cls: type) -> bool:
    """Whether a class is its module's, and not made by a call: `namedtuple`, `make_dataclass`."""
    return getattr(sys.modules.get(home_of(cls)), cls.__qualname__.partition(".")[0], None) is not None


def _is_operator(x: Any) -> bool:
    return type(x) is BuiltinFunctionType and x in SPECIAL


def close_lists(given: Iterable[Any]) -> None:
    """What is not converted may look into lists as C does, and not ask them."""
    for x in given:
        if type(x) is OpenList:
            x.close()


def _refuse_memory(error: TypeError, given: Any) -> None:
    """`zlib.crc32(x)`, `b"".join([x])`: what asks for memory is not told by an object that there is none."""
    if "bytes-like" in str(error) or "buffer" in str(error):
        for x in filter(is_traced, flatten(given)[0]):
            _ = x.data


def _read_by(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Any]:
    """The objects that a function may read: itself, if it is an object, or its own, and those in its arguments."""
    owner = getattr(function, "__self__", None)
    moves = type(owner) in (list, deque, dict) and function.__name__ in _MOVERS
    return parts_of((*(() if moves else (function, owner)), *args, *kwargs.values()))


def _is_known_method(function: Any) -> bool:
    """Whether it is a method of Python's of which it is known whether it changes its owner."""
    if type(function) is not BuiltinFunctionType:
        return False
    return function.__name__ in MUTATORS or (function.__name__ in _READERS and type(function.__self__) in (list, dict, deque))


def _dtype_known(x: Any) -> Any:
    """`(float, n)`, as a dtype is written, with the number known: it has a dtype of its own, which NumPy would take instead."""
    is_dtype = type(x) is tuple and len(x) == 2 and isinstance(x[0], (type, np.dtype)) and is_traced(x[1])
    return plain_key(x) if is_dtype else x


def is_ours(function: Callable[..., Any]) -> bool:
    """Whether it is one of our transforms, or what one of them has made."""
    home = function.__globals__.get("__name__", "") if type(function) is FunctionType else home_of(type(function))
    return bool(home.startswith("jitml."))
