"""What is really called where converted code calls something?  `Hooks.conv`, the hook planted at every call.

Functions of the registry take the place of NumPy's, the user's functions are converted, impure ones are refused; what others are
given to call back is converted first.
"""

from __future__ import annotations

import builtins
import contextvars
import dataclasses
import decimal
import functools
import gc
import inspect
import operator
import random
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ContextDecorator
from pathlib import Path, PurePath
from types import BuiltinFunctionType, FunctionType, MethodType, MethodWrapperType, ModuleType, WrapperDescriptorType
from typing import Any, NoReturn, cast

import numpy as np

from jitml.ir.floating import CATEGORIES
from jitml.trace import regions
from jitml.trace.attributes import is_gone
from jitml.trace.choices import negation
from jitml.trace.classes import require_registered
from jitml.trace.contents import gone_through
from jitml.trace.context import active_trace, home_of, is_users_class, unsupported
from jitml.trace.copies import FUNCTIONS_THAT_COPY, Copies
from jitml.trace.doubts import NONE, doubt_of, has_attribute, is_of, may_be_none, require_type_known
from jitml.trace.drivers import OURS
from jitml.trace.effects import effect_of
from jitml.trace.growing import Growing, Probe
from jitml.trace.host import Slot
from jitml.trace.hostcalls import ON_HOST, call_now, call_on_host
from jitml.trace.identity import is_one
from jitml.trace.libraries import is_called, is_scipys
from jitml.trace.loaded_names import is_library, is_made_plainly
from jitml.trace.numbers import TracedNumber, combine
from jitml.trace.objects import TracedObject
from jitml.trace.open_lists import OpenList
from jitml.trace.outside import entries, load, require_decimal_context, with_items
from jitml.trace.perhaps import Perhaps
from jitml.trace.random import Draw, maker, method_of
from jitml.trace.registry import FUNCTIONS, call, full_name, has_meaning, meaning_of, of_its_type, uncached
from jitml.trace.shown import shown, shown_in_braces, shown_in_percent, shown_part, shown_twice
from jitml.trace.snapshots import contents, differ, refill
from jitml.trace.special_methods import SPECIAL, asked_by, looked_at, parts_of, users_method
from jitml.trace.stacks import Stack
from jitml.trace.state import CONTAINERS
from jitml.trace.steering import Steering
from jitml.trace.sums import added, settled
from jitml.trace.targets import Outside
from jitml.trace.text import filled_in, joined, percent, text
from jitml.trace.tracers import TracedScalar, is_traced, lift
from jitml.trace.tree import flatten, is_record
from jitml.trace.truths import as_value
from jitml.trace.unconverted import called_by, own_parts, watched
from jitml.trace.unseen import guard_librarys, guard_state
from jitml.trace.unsure import bound
from jitml.trace.users_line import as_written
from jitml.trace.wrappers import cached_part, chosen, chosen_for, is_dispatch, is_dispatcher, is_foreign, of_cache, of_library

# Modules whose functions give another answer at each call, or act on the world: traced once, they would be frozen.
_IMPURE = (
    "random", "time", "os", "datetime", "secrets", "uuid", "io", "_io", "posix", "genericpath", "glob", "shutil", "tempfile",
    "subprocess", "multiprocessing", "threading", "concurrent", "asyncio", "socket", "urllib.request", "signal", "atexit", "pdb",
    "numpy.random", "scipy.io", "locale", "_locale", "platform", "getpass",
)  # fmt: skip
_FORBIDDEN = {
    input, open, exec, eval, globals, vars, id, breakpoint, np.seterr, np.seterrcall, np.set_printoptions,
    np.geterr, np.geterrcall, np.getbufsize, np.setbufsize, np.get_printoptions, decimal.getcontext, decimal.setcontext,
    decimal.localcontext, sys.getrecursionlimit, sys.setrecursionlimit, sys.getswitchinterval, sys.getrefcount, sys.exc_info,
    gc.isenabled, gc.get_threshold, gc.get_count, gc.get_objects, contextvars.copy_context, sys._getframe,
    np.load, np.loadtxt, np.genfromtxt, np.fromfile, np.fromregex, np.memmap,
}  # fmt: skip
_WRITERS: set[Any] = {print, str, repr, format}
_MUTATORS = {
    "append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update", "setdefault", "popitem", "add",
    "discard", "appendleft", "popleft", "extendleft", "rotate", "subtract", "move_to_end", "difference_update",
    "intersection_update", "symmetric_difference_update", "__setitem__", "__delitem__", "__iadd__", "__imul__", "__ior__",
    "__iand__", "__isub__", "__ixor__",
}  # fmt: skip
# Of Python's own containers: methods that look at nothing that is in them, but at keys; and those that change nothing.
_MOVERS = {
    *("append", "insert", "pop", "clear", "reverse", "appendleft", "popleft", "rotate"),
    *("get", "setdefault", "keys", "values", "items"),
}
_READERS = {"get", "keys", "values", "items", "index", "count", "copy"}
_QUEUES_CHANGE = {"put", "get", "put_nowait", "get_nowait", "task_done", "join", "shutdown"}
_COMPARED = (list, dict, set, deque, bytearray)
_CHANGEABLE = (*_COMPARED, OpenList)
_STATELESS = {"_struct"}
# Functions of libraries that look at classes only, or call what is converted.
_TRUSTED = {functools.reduce, dataclasses.fields, dataclasses.is_dataclass, cast, weakref.ref}
_CHANGES_FIRST = {
    *(("_heapq", name) for name in ("heapify", "heappop", "heappush", "heappushpop", "heapreplace")),
    *(("_bisect", name) for name in ("insort_left", "insort_right")),
    *(("_operator", name) for name in ("iadd", "iconcat", "imul", "ior", "iand", "ixor", "isub")),
}  # of modules and functions


class Hooks(Copies, Steering):
    """What converted code calls: `__jm`. One for each function and trace."""

    __slots__ = ()

    def made_by(self, items: Any, maker: Any) -> Any:
        """What a name is bound to that alone holds it, if `maker` is what it is called."""
        if maker is not deque:
            self.trace.root.shared[id(items)] = items
        return items

    def push(self, items: Any, item: Any) -> Any:
        """`items.append(item)` in a loop, of a list that only this name holds; the name is bound to the result."""
        items = bound(items)
        if type(items) is Growing:
            return items.push(item)
        if type(items) is Probe:
            return items.push(item, regions.loops_inside(items.trace))
        self.conv(items.append)(item)
        return items

    def users(self, names: dict[str, Any]) -> dict[str, Any]:
        """`locals()` without what conversion has added."""
        return {name: value for name, value in names.items() if not name.startswith(OURS)}

    def added(self, total: Any, rest: Any, item: Any) -> tuple[Any, Any]:
        """What a sum is after one more item, and what rounding has lost."""
        if users_method(type(total), "__add__") or users_method(type(item), "__add__") or users_method(type(item), "__radd__"):
            return self.binary("add", settled(total, rest), item), 0.0
        return added(total, rest, item)

    def summed(self, total: Any, rest: Any) -> Any:
        """A sum after its last item."""
        return settled(total, rest)

    def popped(self, items: Any, is_first: bool) -> tuple[Any, Any]:
        """What the name of such a list is bound to after `items.pop()`, or `items.pop(0)`, and the item."""
        items = bound(items)
        if type(items) in (Growing, Probe):
            return items.popped(is_first)
        if type(items) is deque and is_first:
            return items, self.conv(items.popleft)()
        return items, self.conv(items.pop)(*([0] if is_first else []))

    def filled(self, items: Any) -> Any:
        """What the truth of such a list depends on."""
        items = bound(items)
        return items.length() > 0 if type(items) in (Growing, Probe, Stack) else items

    def is_same(self, x: Any, y: Any) -> Any:
        """`x is y`, one of them True or False: Python's bools are the same where they are equal."""
        return of_its_type(_is_same, *((y, x) if type(x) is bool else (x, y)))

    def is_not_same(self, x: Any, y: Any) -> Any:
        """`x is not y`"""
        return self.not_(self.is_same(x, y))

    def is_one(self, x: Any, y: Any) -> bool:
        """`x is y`"""
        return is_one(x, y)

    def present_number(self, x: Any) -> Any:
        """What is seen by somebody who may ask whether it is None."""
        if may_be_none(x):
            require_type_known(x)
        return x

    def is_none(self, x: Any, y: Any) -> Any:
        """`x is None`"""
        number = x if y is None else y
        if type(number) is Perhaps:
            return number.is_there(False)
        return TracedNumber.of_value(self.trace, as_value(is_of(number, NONE))) if may_be_none(number) else x is y

    def is_not_none(self, x: Any, y: Any) -> Any:
        """`x is not None`"""
        outcome = self.is_none(x, y)
        return negation(outcome) if type(outcome) is TracedNumber else not outcome

    def is_not_one(self, x: Any, y: Any) -> bool:
        """`x is not y`"""
        return not is_one(x, y)

    def text(self, *parts: Any) -> Any:
        """An f-string."""
        return text(*(shown_part(self, part) for part in parts))

    def percent(self, template: Any, values: Any) -> Any:
        """`"..." % values`"""
        return percent(template, shown_in_percent(self, template, values))

    def conv(self, function: Any) -> Any:
        """A function is about to be called."""
        if type(function) is TracedObject:
            return function
        owner = getattr(function, "__self__", None)
        if is_traced(owner) or (isinstance(owner, np.ufunc) and function not in FUNCTIONS):
            return function
        called = self._really(function)
        if type(function) in (BuiltinFunctionType, type) and function in SPECIAL:
            called = functools.partial(self.asked, called, function)
        return called if _is_seen(function) else watched(called, function)

    def _really(self, function: Any) -> Any:
        """What is called where no special method of the user's decides."""
        owner = getattr(function, "__self__", None)
        if function is operator.getitem or function is operator.setitem:
            return self.item if function is operator.getitem else self._set_item
        try:
            implementation = FUNCTIONS.get(function)
        except TypeError:  # unhashable callables
            implementation = None
        if implementation is not None:
            if _in(function, _WRITERS):
                return functools.partial(self._writing, function)
            if getattr(function, "__module__", "") in ("builtins", "collections"):
                return functools.partial(self._iterating, function, functools.partial(call, function))
            return functools.partial(self._computing, function)
        if is_dispatcher(function):
            return functools.partial(self._dispatched, function)
        if is_dispatch(function):
            return functools.partial(chosen_for, self.trace, function, "dispatch")
        if (cached := cached_part(function)) is not None:
            return functools.partial(of_cache, self.trace, cached[0], *cached[1])
        if type(function) is FunctionType:
            if function in FUNCTIONS_THAT_COPY:
                return getattr(self, FUNCTIONS_THAT_COPY[function])
            if not is_library(function):
                return self.convert(function)
        if function is getattr:
            return self._getattr
        if function is hasattr:
            return self._hasattr
        if getattr(function, "__objclass__", None) is np.ndarray:
            return functools.partial(_unbound, function)
        if function is setattr:
            return lambda obj, name, value: setattr(self.own(obj), name, value)
        if function is delattr:
            return lambda obj, name: delattr(self.own(obj), name)
        if _is_store(function):
            return functools.partial(self._storing, function, *(() if owner is None else (owner,)))
        if function is type or function is isinstance:
            return functools.partial(of_its_type, self._type if function is type else self._is_instance)
        if function is issubclass:
            return self._is_subclass
        if function is np.errstate:
            return _ErrorState
        if (found := method_of(self.trace, function) or maker(function)) is not None or isinstance(function, Draw):
            return found or function
        if (effect := effect_of(function)) is not None:
            return functools.partial(self._noting, effect)
        if isinstance(owner, str) and function.__name__ in ("format", "join"):
            return functools.partial(self._filled_in if function.__name__ == "format" else joined, owner)
        if isinstance(owner, (bytes, bytearray)) and function.__name__ == "join":
            return lambda parts: self._call_outside(function, list(parts))
        if type(function) is MethodWrapperType and function.__name__ == "__str__" and not is_traced(owner):
            return functools.partial(self._writing, str, owner)
        if _changes_first(function):
            return functools.partial(self._changing, function)
        if _in(function, {bytearray, memoryview}):
            return functools.partial(_of_memory, function)
        if type(function) is functools.partial and type(function.func) is not FunctionType:
            return functools.partial(self.conv(function.func), *function.args, **function.keywords)
        if function is random.Random:
            return self._seeded
        self._check_effects(function, owner)
        if is_scipys(function):
            return functools.partial(self._making if isinstance(function, type) else self._calling_library, function)
        if is_called(function):
            return functools.partial(self._calling_on_host, function)
        module = getattr(function, "__module__", None) or ""
        if module == "decimal":
            require_decimal_context(self.trace)
        if module == "math" and type(function) is BuiltinFunctionType:
            return functools.partial(_math, function)
        if has_meaning(plain := uncached(function)):
            return self.conv(plain)
        converted = self.convert(function)
        if isinstance(function, type) and not is_users_class(function) and converted is not function:
            if module.startswith("numpy"):
                return functools.partial(self._iterating, function, functools.partial(self._making, function))
            return functools.partial(self._handing if module == "itertools" else self._iterating, function, converted)
        if module.startswith("jitml"):
            return functools.partial(self._taking_apart, converted)
        if converted is not function or function is callable:
            return converted
        if isinstance(function, type) and function not in (map, filter) and not module.startswith("numpy"):
            return functools.partial(self._iterating, function, function)
        if isinstance(function, np.ufunc):
            return functools.partial(self._ufunc, function)
        # map, sorted(key=...), functools.reduce: what they call is the user's.
        return functools.partial(self._call_outside, function)

    def _dispatched(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Call what `functools.singledispatch` chooses."""
        return self.conv(chosen(self.trace, function.dispatch, function.__name__, args))(*args, **kwargs)

    def _writing(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """`str(x)`, `print(x)` and their like."""
        given = tuple(map(gone_through, args))
        if function is builtins.print:
            return call(function, *(shown(self, x) for x in given), **kwargs)
        if kwargs or not 1 <= len(given) <= 1 + (function is builtins.format):
            return call(function, *given, **kwargs)
        spec = given[1] if len(given) > 1 else ""
        return self.text((given[0], {builtins.format: "", builtins.str: "s"}.get(function, "r"), spec))

    def _noting(self, effect: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        """A call of `logging`, which writes what it is given."""
        effect(*(shown_twice(self, x) for x in args), **kwargs)

    def _filled_in(self, template: str, *args: Any, **kwargs: Any) -> Any:
        """`template.format(*args, **kwargs)`"""
        found = shown_in_braces(self, template, args, kwargs)
        return filled_in(template, *args, **kwargs) if found is None else found

    def _iterating(self, function: Callable[..., Any], converted: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function that may iterate over what it is given."""
        args = self.given_to(function, args)
        if function is sum and args and not kwargs and type(args[0]) in (list, tuple):
            if any(users_method(type(x), name) for x in args[0] for name in ("__add__", "__radd__")):
                return functools.reduce(functools.partial(self.binary, "add"), args[0], *(args[1:] or (0,)))
        return converted(*args, **kwargs)

    def _computing(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function of NumPy's, which may ask special methods."""
        if any(type(x) is TracedObject for x in flatten((args, kwargs))[0]):  # a masked array, say
            return call_on_host(function, args, kwargs)
        self.unseen_inside(*args, *kwargs.values())
        return call(function, *args, **kwargs)

    def _handing(self, function: Callable[..., Any], converted: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The same of one that calls functions which it is given."""
        named = {name: self._handed(arg) for name, arg in kwargs.items()}
        return self._iterating(function, converted, *map(self._handed, args), **named)

    def _handed(self, argument: Any) -> Any:
        """A function that others get to call, of Python's own ones, too."""
        return meaning_of(argument) if has_meaning(argument) else self._callback(argument)

    def _call_outside(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function that is not converted: those it is given are, the objects it may look into are guarded."""
        if function in (map, filter):
            args = (*args[:1], *map(self.gone_through, args[1:]))
        elif function is functools.reduce and len(args) > 1:
            args = (args[0], self.gone_through(args[1]), *args[2:])
        args = tuple(self.present_number(arg) for arg in map(gone_through, args))
        _close(args)
        if is_foreign(function) and (found := of_library(self.trace, function, args, kwargs)) is not NotImplemented:
            return found
        if _is_ours(function):
            args, kwargs = tuple(self.seen(x, {}) for x in args), {name: self.seen(x, {}) for name, x in kwargs.items()}
        owner = getattr(function, "__self__", None)
        # What a method that changes its owner does to it, `_check_effects` has told already.
        given = (x for x in (*args, None if _is_known_method(function) else owner) if isinstance(x, _COMPARED))
        held = [(x, contents(x)) for x in given if not home_of(type(x)).startswith("jitml.")]
        if (look := self._looks(function)) is not None:
            look(*args, *kwargs.values())
            args = tuple(looked_at(x, look) for x in args)
        arguments = [*map(self._handed if function is functools.reduce else self._callback, args)]
        if function in (map, filter) and args and args[0] is not None:
            arguments[0] = self.conv(args[0])
        named = {name: self._callback(arg) for name, arg in kwargs.items()}
        if (getattr(function, "__module__", None) or "").startswith("numpy"):
            return self._calling_library(function, *arguments, **named)
        try:
            box = [as_written(function, arguments, named)]
        except TypeError as error:
            _refuse_memory(error, (arguments, named))
            raise
        guard_librarys(self.trace, *_read_by(function, arguments, named))
        for x, before in held:
            if differ(before, after := contents(x)):  # it is one of those that change what they are given
                self._require_own(x)  # before anything is put back: what others see is theirs as well
                refill(x, before)
                self.effect(x)
                refill(x, after)
        return self._result(function, box, (*arguments, *named.values()))

    def _result(self, function: Any, box: list[Any], given: Iterable[Any]) -> Any:
        """What a call that is not converted has given, which alone is in the list: perhaps something new."""
        if isinstance(box[0], type):
            return box[0] if _is_found_by_name(box[0]) else self.own_class(box[0])
        if type(box[0]) is np.ndarray:
            return lift(box[0])
        own_parts(self.trace, box, (*called_by(function), *given), may_be_new=True)
        return box[0]

    def _ufunc(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a ufunc that is not in the registry; of lists it does not see what is in them."""
        are_listed = any(type(x) in (list, tuple) and any(map(is_traced, flatten(x)[0])) for x in args)
        return call(function, *args, **kwargs) if are_listed else self._call_outside(function, *args, **kwargs)

    def _calling_library(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function of NumPy's or SciPy's that is not in the registry: as ever if it can do with that, else on the host."""
        box = [call_now(function, args, kwargs)]
        if box[0] is ON_HOST:  # where it reads its objects at each call
            return call_on_host(function, args, kwargs)
        guard_librarys(self.trace, *_read_by(function, args, kwargs))
        return self._result(function, box, (*args, *kwargs.values()))

    def _calling_on_host(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function of another library, or make an object of its."""
        args, kwargs = tuple(map(self.gone_through, args)), {name: self.gone_through(x) for name, x in kwargs.items()}
        if is_foreign(function) and (found := of_library(self.trace, function, args, kwargs)) is not NotImplemented:
            return found
        return call_on_host(function, args, kwargs)

    def _making(self, cls: type, *args: Any, **kwargs: Any) -> Any:
        """An object of a class of NumPy's, which is the function's own unless the host makes it."""
        made = self._calling_library(cls, *args, **kwargs)
        if type(made) is not TracedObject:
            self.trace.own[id(made)] = made
        return made

    def _looks(self, function: Any) -> Callable[..., object] | None:
        """What guards all that a function which is not converted may read of the objects that it is given; None if nothing."""
        owner = getattr(function, "__self__", None)
        is_method = type(function) is MethodType
        module = getattr(function, "__module__", None)
        if not is_method and (module == "builtins" or (module is None and home_of(type(owner)) in ("builtins", "collections"))):
            if methods := asked_by(function):
                return functools.partial(self.unseen_inside, owner, methods=methods)
            return self._look_up if isinstance(owner, (dict, set, frozenset)) else None
        if _in(function, _TRUSTED) or type(function) is operator.itemgetter:
            return None
        is_users = is_method and is_users_class(cast(Any, type(owner)))
        return functools.partial(self._look_at_all, owner) if is_users else self._look_at_all

    def _look_up(self, *given: Any) -> None:
        for x in given:
            self.hashed(x)

    def _look_at_all(self, *given: Any) -> None:
        for part in parts_of(given):
            slot = self.trace.places.get(id(part))
            if slot is not None and not isinstance(part, CONTAINERS):
                guard_state(self.trace, part, slot)

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
            made = known[id(x)] = self._made(x, dict(items)) if is_record(x) else with_items(x, items)
            self.trace.taken[id(made)] = made, x
        return known[id(x)]

    def _changing(self, function: Callable[..., Any], target: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a function of the standard library that changes its first argument."""
        _close([target])
        self.grow(target)
        self.unseen_inside(target, *args, methods=("__lt__", "__le__", "__gt__", "__ge__"))
        if type(target) is Stack:
            return target.change(function, *args, **kwargs)
        return function(target, *args, **kwargs)

    def _callback(self, argument: Any) -> Any:
        if type(argument) in (FunctionType, MethodType, functools.partial):
            return self.convert(argument)
        is_method = type(argument) in (BuiltinFunctionType, MethodWrapperType) and type(argument.__self__) is not ModuleType
        return self.conv(argument) if is_method or _is_operator(argument) else argument

    def _getattr(self, obj: Any, name: str, *default: Any) -> Any:
        if default and doubt_of(obj) is not None:
            return of_its_type(self._getattr, obj, name, *default)
        try:
            return self.attr(obj, name)
        except AttributeError:
            if default:
                return default[0]
            raise

    def _hasattr(self, obj: Any, name: str, /) -> Any:
        if type(obj) in (TracedNumber, TracedScalar):
            return of_its_type(has_attribute, obj, name)
        slot = self.trace.places.get(id(obj))
        if slot is None or type(name) is not str:
            return self._call_outside(hasattr, obj, name)
        if _is_made_up(type(obj), name) or is_gone(self.trace, obj, name):
            try:
                self.attr(obj, name)
            except AttributeError:
                return False
            return True
        has = (id(obj), name) in self.trace.stored or hasattr(obj, name)
        self.require_attribute(obj, name, slot, has)
        return has

    def require_attribute(self, obj: Any, name: str, slot: Slot, has: bool) -> None:
        """An object from outside has an attribute of this name, or not."""
        if users_method(type(obj), "__getattribute__"):
            guard_state(self.trace, obj, slot)
        elif (id(obj), name) not in self.trace.stored and not _is_made_up(type(obj), name):
            known = self.trace.watched.get(id(obj))
            has = has if known is None else hasattr(known.original, name)  # whatever has become of the copy
            text = f"hasattr({self.trace.host.name(slot)}, {name!r})"
            self.trace.host.require(load(self.trace, hasattr, slot, name, text), has)

    def _refuse_once(self, function: Any) -> NoReturn:
        unsupported(
            f"{full_name(function)}() would run only once, while the function is traced, and not at every call",
            "Debug the function as plain Python: without jit, or f.__wrapped__ of a jitted f."
            if function is breakpoint or getattr(function, "__module__", None) == "pdb"
            else "Call it outside the jitted function and pass its result as an argument.",
        )

    def _type(self, *args: Any, **kwargs: Any) -> Any:
        """`type(x)`, or a new class."""
        is_stand_in = len(args) == 1 and (is_traced(args[0]) or type(args[0]) is TracedObject)
        found = args[0].__class__ if is_stand_in else type(args[0]) if len(args) == 1 else as_written(type, args, kwargs)
        return self.own_class(found) if len(args) > 1 else found

    def _is_instance(self, x: Any, kinds: Any) -> bool:
        require_registered(self.trace, x.__class__, kinds)
        return isinstance(x, kinds)

    def _is_subclass(self, cls: Any, kinds: Any) -> bool:
        if isinstance(cls, type):
            require_registered(self.trace, cls, kinds)
        return issubclass(cls, kinds)

    def _storing(self, function: Callable[..., Any], obj: Any, *args: Any) -> None:
        """`object.__setattr__(obj, name, value)` and its like: what a `__setattr__` of the class says is passed over."""
        is_set = function.__name__ == "__setattr__"
        if type(self.own(obj)) is not Outside:
            function(*(() if hasattr(function, "__self__") else (obj,)), *args)
        elif is_set and len(args) == 2:
            self.store_attr(obj, *args, plainly=True)
        elif not is_set and len(args) == 1:
            self.delete_attr(obj, *args, plainly=True)
        else:
            self.refuse_write(obj)

    def _seeded(self, *seed: Any) -> random.Random:
        """`random.Random(3)`: a generator of the function's own, which draws the same in each call."""
        if not seed or not isinstance(seed[0], (int, float, str, bytes)) or is_traced(seed[0]):
            self._refuse_once(random.Random)
        made = random.Random(*seed)
        self.trace.own[id(made)] = made
        return made

    def _check_effects(self, function: Any, owner: Any) -> None:
        """Refuse what would happen once, while tracing, instead of at every call."""
        is_seeded = type(owner) is random.Random and id(owner) in self.trace.own
        homes = {getattr(x, "__module__", None) or "" for x in (() if is_seeded else (function, owner, type(owner)))}
        if _in(function, _FORBIDDEN) or any(h == m or h.startswith(m + ".") for h in homes for m in _IMPURE):
            self._refuse_once(function)
        if isinstance(owner, Path) and not hasattr(PurePath, function.__name__):  # it asks the file system
            self._refuse_once(function)
        is_users = type(function) is MethodType and not _is_librarys(function.__func__)  # then what it does is seen
        if getattr(function, "__name__", "") in _MUTATORS and not is_users:
            self._require_own(owner)
        if home_of(type(owner)) in ("queue", "_queue") and function.__name__ in _QUEUES_CHANGE and not is_users:
            self._require_own(owner)
        is_container = isinstance(owner, _CHANGEABLE) or type(owner).__module__ in ("builtins", "collections")
        if getattr(function, "__name__", "") in _MUTATORS and is_container and not is_users:
            self.effect(owner)
        if function is next:
            self.effect(function)
        if type(function) in (BuiltinFunctionType, MethodWrapperType):
            self.gone_through(owner)
        slot = self.trace.places.get(id(owner))
        if type(function) is BuiltinFunctionType and id(owner) in self.trace.places and _has_hidden_state(type(owner)):
            self._refuse_once(function)
        is_librarys = home_of(type(owner)).partition(".")[0] in sys.stdlib_module_names and not isinstance(owner, CONTAINERS)
        if slot is not None and not is_users and is_librarys:
            guard_state(self.trace, owner, slot)  # so that nobody goes on with a program that has changed it once


def _is_seen(function: Any) -> bool:
    """Whether all that a call does is told by hooks, or by tracers: the user's functions are converted, NumPy's compiled."""
    plain = function.__func__ if type(function) is MethodType else function
    if type(plain) is functools.partial:
        return type(plain.func) is not FunctionType or _is_seen(plain.func)  # which is looked at by itself
    if isinstance(plain, type):
        return is_made_plainly(plain)
    called = plain if type(plain) is FunctionType else inspect.getattr_static(type(plain), "__call__", None)
    if type(called) is FunctionType and not is_library(called):
        return True
    is_compiled = has_meaning(function) and getattr(function, "__module__", "") not in ("builtins", "collections")
    return is_compiled or _is_ours(function)


def _is_store(function: Any) -> bool:
    """Whether a function sets or deletes an attribute as Python does where no class says otherwise."""
    is_wrapper = type(function) in (MethodWrapperType, WrapperDescriptorType)
    return is_wrapper and function.__name__ in ("__setattr__", "__delattr__")


def _is_made_up(cls: Any, name: str) -> bool:
    """Whether converted code of the class says what an attribute is, or that there is none."""
    member = inspect.getattr_static(cls, name, None)
    return isinstance(member, property | functools.cached_property) or (member is None and bool(users_method(cls, "__getattr__")))


def _is_found_by_name(cls: type) -> bool:
    """Whether a class is its module's, and not made by a call: `namedtuple`, `make_dataclass`."""
    return getattr(sys.modules.get(home_of(cls)), cls.__qualname__.partition(".")[0], None) is not None


def _is_operator(x: Any) -> bool:
    return type(x) is BuiltinFunctionType and x in SPECIAL


def _close(given: Iterable[Any]) -> None:
    """What is not converted may look into lists as C does, and not ask them."""
    for x in given:
        if type(x) is OpenList:
            x.close()


def _has_hidden_state(cls: type) -> bool:
    """Whether objects of a class of the standard library may change in ways that nobody can see.

    Those that are equal to themselves alone, and are no containers.
    """
    home, hashed = home_of(cls).partition(".")[0], cls.__hash__
    is_plain = issubclass(cls, (type, ModuleType)) or home == "builtins" or home in _STATELESS
    return hashed is vars(object)["__hash__"] and home in sys.stdlib_module_names and not is_plain


def _is_librarys(function: Any) -> bool:
    return type(function) is FunctionType and is_library(function)


def _changes_first(function: Any) -> bool:
    """Whether a function changes its first argument: `heapq.heappush`, `list.append`."""
    name = getattr(function, "__name__", "")
    is_unbound = isinstance(getattr(function, "__objclass__", None), type) and getattr(function, "__self__", None) is None
    return (getattr(function, "__module__", ""), name) in _CHANGES_FIRST or (name in _MUTATORS and is_unbound)


def _of_memory(function: Any, *args: Any, **kwargs: Any) -> Any:
    """`memoryview(x)`, which an object cannot refuse by itself."""
    return args[0].data if args and is_traced(args[0]) else function(*args, **kwargs)


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
    return function.__name__ in _MUTATORS or (function.__name__ in _READERS and type(function.__self__) in (list, dict, deque))


def _in(x: Any, some: set[Any]) -> bool:
    return any(x is y for y in some)


def _unbound(method: Callable[..., Any], x: Any, *args: Any, **kwargs: Any) -> Any:
    """`np.ndarray.fill(x, 0)`"""
    return getattr(x, method.__name__)(*args, **kwargs) if is_traced(x) else method(x, *args, **kwargs)


class _ErrorState(ContextDecorator):
    """`np.errstate` inside a traced function: what is recorded under it ignores or demands errors as it says."""

    def __init__(self, **kinds: Any) -> None:
        self.given = kinds
        if "call" in kinds or not {"ignore", "warn", "raise", None}.issuperset(kinds.values()):
            unsupported("np.errstate calls a function or prints, which is not supported in jitted code", "Warn or raise.")
        heard: dict[str, Any] = {name: kind if kind == "ignore" else "call" for name, kind in kinds.items() if kind is not None}
        self.numpys = np.errstate(**heard)  # see trace/flags.py
        self.kinds = {name: kinds.get(name, kinds.get("all")) for name in CATEGORIES}

    def _recreate_cm(self) -> _ErrorState:
        return _ErrorState(**self.given)  # as a decorator, of a function that may call itself

    def __enter__(self) -> None:
        self.numpys.__enter__()
        root = active_trace().root
        self.before = ignored, demanded = root.error_state
        self.floating = root.floating
        for name, reaction in self.kinds.items():
            if reaction is not None:
                bit = CATEGORIES[name]
                ignored, demanded = (ignored | bit, demanded & ~bit) if reaction == "ignore" else (ignored & ~bit, demanded | bit)
                root.floating = root.floating | bit if reaction == "raise" else root.floating & ~bit
        root.error_state = (ignored, demanded)
        if root.steps is not None:
            root.steps.heed()

    def __exit__(self, *error: Any) -> None:
        self.numpys.__exit__(*error)
        root = active_trace().root
        root.error_state, root.floating = self.before, self.floating


def _is_same(x: Any, y: bool) -> Any:
    return x == y if (x.kind if type(x) is TracedNumber else type(x)) is bool else x is y


def _math(function: Callable[..., Any], *args: Any) -> Any:
    if any(type(a) is TracedNumber for a in args) and all(type(a) in (TracedNumber, int, float, bool) for a in args):
        return combine(function, *args)
    return function(*args)


def _is_ours(function: Callable[..., Any]) -> bool:
    """Whether it is one of our transforms, or what one of them has made."""
    home = function.__globals__.get("__name__", "") if type(function) is FunctionType else home_of(type(function))
    return bool(home.startswith("jitml."))
