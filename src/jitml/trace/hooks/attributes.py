"""Attribute and item hooks: `AttributeHooks`, planted where converted code loads or stores an attribute or an item.

What comes from outside is entered in the host program and guarded (`loads.py`); arrays become tracers; properties and
`__getitem__` of the user's classes are converted. Stores into what came from outside are refused.
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys
from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from importlib.util import resolve_name
from types import BuiltinFunctionType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Any, NoReturn

import numpy as np

from jitml.trace.carried.containers import effect, kept
from jitml.trace.carried.outer_lists import OpenList
from jitml.trace.effects.attributes import delete, holder_of, is_gone, of_class, require_not_made_up, store
from jitml.trace.effects.inheritance import NOTHING, by_super, from_class
from jitml.trace.effects.side_effects import own_parts
from jitml.trace.environment.class_guards import require_class
from jitml.trace.environment.dispatchers import chosen
from jitml.trace.environment.loads import load, observe, observe_changing, place_of, require_unset
from jitml.trace.environment.names import NameHooks
from jitml.trace.environment.outer_names import OuterNames
from jitml.trace.environment.process_state import from_environ
from jitml.trace.environment.tracked_copies import entries, watch_no_more
from jitml.trace.environment.understood import PLAIN, Way, way_of
from jitml.trace.environment.unseen_reads import guard_librarys, is_librarys
from jitml.trace.hooks.context_managers import Manager
from jitml.trace.hooks.stores import Outside, Sparse, Storing, sets_itself, stores_itself, takes_items
from jitml.trace.host_calls.effects import STREAMS
from jitml.trace.host_calls.generators import TracedGenerator
from jitml.trace.host_calls.objects import TracedObject, arrays_apart, attribute_of, method_of, original_of, outer_of
from jitml.trace.host_calls.staleness import is_computed, is_of_its_memory, require_unchanged
from jitml.trace.record.guards import HostConst, Slot
from jitml.trace.record.libraries import is_library, is_sparse
from jitml.trace.record.loaded_modules import found_in, modules_of
from jitml.trace.record.pytree import is_record
from jitml.trace.record.recording import active_trace, home_of, is_users, unsupported
from jitml.trace.regions.drivers import made, shared_write
from jitml.trace.storage.storage import Storage
from jitml.trace.values.boxing import TracedArray, TracedScalar, is_traced, lift
from jitml.trace.values.numbers import TracedNumber
from jitml.trace.values.registry import FUNCTIONS, call, call_for_each_type, has_meaning, of_its_type
from jitml.trace.values.type_unions import doubt_of, has_attribute, types_of

# Methods by which `obj += v` and its like change an object.
_IN_PLACE = frozenset(f"__i{name.strip('_')}__" for name in vars(operator) if f"i{name.strip('_')}" in operator.__all__)
_CONSTANT = {"numpy", "scipy", "math", "cmath", "jitml"}  # modules that nobody changes


class AttributeHooks(NameHooks):
    """The hooks of attributes and subscripts; `calls.Hooks` has them too."""

    __slots__ = ()
    effect = staticmethod(effect)
    shared_write = staticmethod(shared_write)
    slice = staticmethod(slice)
    conv: Callable[[Any], Any]  # of `calls.Hooks`
    in_place: Callable[[str, Any, Any], Any]  # of `special_methods.Specials`
    require_attribute: Callable[[Any, str, Slot, bool], None]  # of `calls.Hooks`

    def attr(self, obj: Any, name: str) -> Any:
        """`obj.name` was loaded."""
        kind = type(obj)
        if kind in (TracedNumber, TracedScalar):
            return self._attr_of_number(obj, name)
        if kind is TracedObject and outer_of(obj) is not None:
            return self._attr_of_lent(obj, name)
        if is_traced(obj) or kind in (TracedGenerator, TracedObject, OpenList):
            return getattr(obj, name)
        if kind is super:
            return self._super_attr(obj, name)
        if kind is np.ndarray:
            return getattr(lift(obj), name)
        if kind is ModuleType:
            return self._module_attr(obj, name)
        if kind is MethodType and id(obj.__func__) in self.trace.places and not hasattr(MethodType, name):
            obj, kind = obj.__func__, FunctionType
        descriptor = inspect.getattr_static(kind, name, None)
        if isinstance(descriptor, property | functools.cached_property):
            self._require_member(kind, name, descriptor)
        if _is_written(descriptor) and not (is_librarys(obj) and is_library(descriptor.fget)):
            return self.convert(descriptor.fget)(obj)
        if isinstance(descriptor, functools.cached_property) and (name not in vars(obj) or is_gone(self.trace, obj, name)):
            return self.cached(obj, name, descriptor)
        if isinstance(descriptor, functools.singledispatchmethod):
            return functools.partial(self._dispatched_method, descriptor, obj, kind)
        getter = inspect.getattr_static(type(descriptor), "__get__", None)
        if (
            type(getter) is FunctionType
            and not is_library(getter)
            and (hasattr(type(descriptor), "__set__") or name not in getattr(obj, "__dict__", ()))
        ):
            require_class(self.trace, type(descriptor))
            return self.convert(getter)(descriptor, obj, kind)
        if isinstance(obj, tuple) and name in getattr(kind, "_fields", ()):
            return self.item(obj, kind._fields.index(name))  # whose items have been seen when the tuple was
        if (id(obj), name) in self.trace.stored:
            return of_class(self, obj, name) if is_gone(self.trace, obj, name) else self.trace.stored[id(obj), name]
        if (holder := holder_of(self.trace, obj, name)) is not None:
            return self.trace.stored[id(holder), name]
        fallback = inspect.getattr_static(kind, "__getattr__", None) if descriptor is None else None
        if type(fallback) is FunctionType and not is_library(fallback) and name not in getattr(obj, "__dict__", (name,)):
            return self._missing(obj, name, fallback)
        try:
            value = getattr(obj, name)
        except AttributeError:
            if (refuse := self.trace.withheld.get(id(obj), {}).get(name)) is not None:
                refuse()
            if (slot := place_of(self.trace, obj)) is not None:
                self.require_attribute(obj, name, slot, False)
            raise
        return self._as_seen(obj, name, value, descriptor)

    def _as_seen(self, obj: Any, name: str, value: Any, descriptor: Any) -> Any:
        """What Python has found as an attribute, as the function shall see it."""
        if id(obj) in self.trace.watched and is_record(obj) and name in dict(entries(obj)):
            return lift(value) if type(value) is np.ndarray else value
        slot = place_of(self.trace, obj)
        if slot is None and (found := from_class(self, obj, name, descriptor)) is not NOTHING:
            return found
        if is_traced(value) or slot is None:
            if type(value) is np.ndarray:
                return _of_object(obj, value) if is_librarys(obj) else lift(value)
            # What neither the class nor the object shows is in memory of the object's that C alone knows.
            is_hidden = descriptor is None and name not in getattr(obj, "__dict__", ())
            own_parts(self.trace, [value], (obj, value) if is_hidden else (obj,))
            return value
        if isinstance(value, (MethodType, BuiltinFunctionType, MethodWrapperType)) and not _is_kept(obj, name, value):
            if type(value) is MethodType and value.__self__ is obj:
                # Of the bound method, so that a function put in its place is seen, in the class or in the instance.
                method = load(self.trace, getattr, slot, name, f"{self.trace.host.name(slot)}.{name}")
                function = load(self.trace, getattr, method, "__func__", f"{name}.__func__")
                self.trace.host.require_same(function, value.__func__)
                self.trace.places.setdefault(id(value.__func__), function)
                if hasattr(obj, "__dict__"):  # where another object's method may be put
                    owner = load(self.trace, getattr, method, "__self__", f"{name}.__self__")
                    self.trace.host.require_identity(owner, slot, True)
                if name in getattr(obj, "__dict__", ()):  # this very one, and no new one
                    self.trace.objects[method] = value
            return value
        if _is_written(descriptor) and is_librarys(obj) and is_computed(obj, name, value):
            guard_librarys(self.trace, obj)
        if _is_written(descriptor) and is_librarys(value):  # it makes a new one each time
            guard_librarys(self.trace, obj)
            return value
        text = f"{self.trace.host.name(slot)}.{name}"
        require_not_made_up(self.trace, obj, name, descriptor)
        place = load(self.trace, getattr, slot, name, text)
        if type(value) is float:  # a hyper-parameter that changes between calls is no reason to compile again
            self.trace.host.require_type(place, float)
            return TracedNumber(self.trace, place, value)
        if name == "__dict__":
            return self._namespace(obj, value, place, text)
        return observe(self.trace, value, place, text)

    def _attr_of_lent(self, obj: TracedObject, name: str) -> Any:
        """An attribute of an object that is taken at run time: methods are called then, all else is loaded before."""
        original, trace = original_of(obj), self.trace
        slot = trace.places[id(obj)]
        if (id(original), name) in trace.stored:
            return trace.stored[id(original), name]
        try:
            found = getattr(original, name)
        except AttributeError:
            self.require_attribute(original, name, slot, False)
            raise
        if getattr(found, "__self__", None) is original:
            if not has_meaning(found):
                return method_of(obj, name)
            trace.host.require_same(slot, original)
            return found
        text = f"{trace.host.name(slot)}.{name}"
        if is_computed(original, name, found):
            if arrays_apart(obj):
                return attribute_of(obj, name)
            require_unchanged(text, obj)
        return observe_changing(trace, found, load(trace, getattr, slot, name, text), text)

    def _item_of_lent(self, obj: TracedObject, index: Any) -> Any:
        """`obj[index]` of such an object."""
        if not all(
            isinstance(x, PLAIN) and not isinstance(x, (frozenset, slice)) for x in (index if type(index) is tuple else [index])
        ):
            return obj[index]
        slot = self.trace.places[id(obj)]
        text = f"{self.trace.host.name(slot)}[{index!r}]"
        found = original_of(obj)[index]
        if not is_of_its_memory(found, original_of(obj)):
            if arrays_apart(obj):
                return obj[index]
            require_unchanged(text, obj)
        return observe_changing(self.trace, found, load(self.trace, operator.getitem, slot, index, text), text)

    def _attr_of_number(self, x: Any, name: str) -> Any:
        """An attribute that numbers of some types have, and stand-ins of others must not show; it may itself tell the type."""
        if doubt_of(x) is not None:
            if all(inspect.isroutine(getattr(which, name, None)) for which in types_of(x)):
                return functools.partial(call_for_each_type, x, lambda y, *args, **kwargs: self.attr(y, name)(*args, **kwargs), x)
            return of_its_type(self.attr, x, name) if hasattr(None, name) else call_for_each_type(x, self.attr, x, name)
        if type(x) is TracedNumber and not has_attribute(x, name):
            raise AttributeError(f"'{x.kind.__name__}' object has no attribute '{name}'")
        return getattr(x, name)

    def _namespace(self, obj: Any, value: Any, place: Slot, name: str) -> Any:
        """`obj.__dict__`, which may be read as long as the object does not change."""
        if any(owner == id(obj) for owner, _ in self.trace.stored):
            self.refuse_write(obj)
        seen = observe(self.trace, value, place, name)
        if id(seen) in self.trace.watched:
            watch_no_more(self.trace, seen)
        return seen

    def cached(self, obj: Any, name: str, member: functools.cached_property[Any]) -> Any:
        """A cached property of an object that has not kept its value yet."""
        if (id(obj), name) in self.trace.stored and not is_gone(self.trace, obj, name):
            return self.trace.stored[id(obj), name]
        value = self.convert(member.func)(obj)
        if active_trace() is self.trace or active_trace().is_body:  # what is differentiated computes it each time
            slot = place_of(self.trace, obj)
            if slot is not None and not is_gone(self.trace, obj, name):
                require_unset(self.trace, slot, name)
            kept(obj, name)
            setattr(self.own(obj), name, value)
        return value

    def _dispatched_method(self, method: Any, obj: Any, kind: Any, *args: Any, **kwargs: Any) -> Any:
        """A method that is chosen by the class of its first argument."""
        found = chosen(self.trace, method.dispatcher.dispatch, method.func.__name__, args)
        return self.conv(found.__get__(obj, kind))(*args, **kwargs)

    def _missing(self, obj: Any, name: str, fallback: FunctionType) -> Any:
        """An attribute that the class makes up, by `__getattr__`."""
        self._require_member(type(obj), "__getattr__", fallback)
        slot = place_of(self.trace, obj)
        if slot is not None:
            require_unset(self.trace, slot, name)
        return self.convert(fallback)(obj, name)

    def manager(self, obj: Any) -> Any:
        """`with obj`: a context manager of the user's sees tracers."""
        kind = type(obj)
        if home_of(kind) in ("_thread", "threading") or getattr(obj, "func", None) is inspect.unwrap(np.printoptions):
            name = "np.printoptions" if home_of(kind) == "contextlib" else f"a {kind.__name__}"
            unsupported(
                f"{name} would be entered only once, while the function is traced, and not at every call",
                "Put the `with` around the call of the jitted function.",
            )
        begin, end = (inspect.getattr_static(kind, name, None) for name in ("__enter__", "__exit__"))
        if type(begin) is not FunctionType or type(end) is not FunctionType or is_library(begin) or is_library(end):
            return obj
        self._require_member(kind, "__enter__", begin)
        self._require_member(kind, "__exit__", end)
        return Manager(obj, self.convert(begin), self.convert(end))

    def _super_attr(self, obj: Any, name: str) -> Any:
        if name in self.trace.set_in_classes:
            self.refuse_write(obj.__thisclass__)
        return by_super(self, obj, name)

    def _require_member(self, cls: type, name: str, member: object) -> None:
        """A class still has this method or property."""
        self.trace.host.require_same(load(self.trace, getattr, HostConst(cls), name, f"{cls.__name__}.{name}"), member)

    def _module_attr(self, module: ModuleType, name: str) -> Any:
        if module is sys and name in STREAMS:
            return STREAMS[name]
        if (id(vars(module)), name) in self.trace.stored:
            return self.trace.stored[id(vars(module)), name]
        value = found_in(self.trace, module, name) if _is_changeable(module) else getattr(module, name)
        if not _is_changeable(module):
            home = module.__name__.partition(".")[0]
            if value is sys.modules:
                return modules_of(self.trace)
            if home in _CONSTANT or way_of(value) is Way.ITSELF:
                return lift(value) if type(value) is np.ndarray else value
        text = f"{module.__name__}.{name}"
        return observe(self.trace, value, load(self.trace, getattr, HostConst(module), name, text), text)

    def imported(self, value: Any, name: str, module: str, level: int) -> Any:
        """`from module import name` has given this."""
        if level:
            module = resolve_name("." * level + module, self.function.__globals__["__package__"])
        home = sys.modules.get(module)
        if type(home) is not ModuleType or not hasattr(home, name):
            return value
        self.module(home, module)
        return self._module_attr(home, name)

    def module(self, value: Any, name: str) -> Any:
        """`import name` has given this."""
        if type(value) is ModuleType and sys.modules.get(name) is value and _is_changeable(value):
            _ = modules_of(self.trace)[name]  # so that another one in its place is seen
        return value

    def item(self, obj: Any, index: Any) -> Any:
        """`obj[index]` was loaded."""
        if type(obj) is np.ndarray:
            obj = lift(obj)
        if type(obj) is TracedObject and outer_of(obj) is not None:
            return self._item_of_lent(obj, index)
        if type(obj).__module__ == "numpy.lib._index_tricks_impl" and obj in FUNCTIONS:
            return FUNCTIONS[obj](index)
        method = inspect.getattr_static(type(obj), "__getitem__", None)
        if isinstance(method, FunctionType) and not is_library(method) and not is_traced(obj):
            self._require_member(type(obj), "__getitem__", method)
            return self.convert(method)(obj, index)
        if type(obj).__module__ == "os":
            return from_environ(self.trace, index)
        if isinstance(obj, dict) and type(obj) is not dict and _inserts(obj) and index not in obj:
            missing = inspect.getattr_static(type(obj), "__missing__")
            if isinstance(missing, FunctionType) and not is_library(missing):
                self._require_member(type(obj), "__missing__", missing)
                return self.convert(missing)(obj, index)
            self.grow(obj)
            if isinstance(obj, defaultdict) and obj.default_factory is not None:
                obj[index] = self.conv(obj.default_factory)()
        value = obj[index]
        return lift(value) if type(value) is np.ndarray else value

    def _set_item(self, obj: Any, index: Any, value: Any) -> None:
        """`operator.setitem`"""
        self.own(obj)[index] = value

    def own(self, obj: Any) -> Any:
        """`obj.name = v` or `obj[index] = v` is about to happen."""
        if type(obj) is np.ndarray:
            return lift(obj)
        if type(obj) is TracedObject and outer_of(obj) is not None:
            obj = original_of(obj)
        elif is_traced(obj) or type(obj) is TracedObject:
            return obj
        if id(obj) in self.trace.watched:
            self._require_outermost(obj)
        elif place_of(self.trace, obj) is not None:
            self._require_outermost(obj)
            self.effect(obj)
            return Outside(self, obj)
        if isinstance(obj, list) or not home_of(type(obj)).startswith("jitml."):  # x.flat[i] = v writes a traced array
            self.effect(obj)
        return Storing(self, obj) if stores_itself(obj) else Sparse(obj) if is_sparse(type(obj)) else obj

    def grow(self, obj: Any) -> None:
        """`obj += v` is about to happen: a list or its like changes, all else is bound anew."""
        if isinstance(obj, (list, dict, set, deque, bytearray, array)):
            self._require_own(obj)
            self.effect(obj)
        elif id(obj) in self.trace.places and any(_changes_unseen(type(obj), name) for name in _IN_PLACE):
            self.refuse_write(obj)

    def _require_own(self, obj: Any) -> None:
        """A container that is changed is the function's own, or a copy that is watched."""
        if id(obj) in self.trace.watched:
            self._require_outermost(obj)
        elif id(obj) in self.trace.places:
            self.refuse_write(obj)

    def _require_outermost(self, obj: Any) -> None:
        """Something from outside is changed by the jitted function itself, and not by one that it differentiates."""
        if active_trace().root is not active_trace() and not active_trace().is_body:
            self.refuse_write(obj)

    def store_attr(self, obj: Any, name: str, value: Any, *, plainly: bool = False) -> None:
        """`obj.name = value` of an object from outside, which happens after the call has succeeded.

        Args:
            plainly: whatever the class's `__setattr__` does.
        """
        store(self, obj, name, value, plainly=plainly)

    def delete_attr(self, obj: Any, name: str, *, plainly: bool = False) -> None:
        """`del obj.name` of an object from outside, likewise."""
        delete(self, obj, name, plainly=plainly)

    def store_item(self, obj: Any, index: Any, value: Any) -> None:
        """`obj[index] = value` of an object from outside."""
        method = inspect.getattr_static(type(obj), "__setitem__", None)
        if not isinstance(method, FunctionType) or is_library(method):
            self.refuse_write(obj)
        self._require_member(type(obj), "__setitem__", method)
        self.convert(method)(obj, index, value)

    def refuse_write(self, obj: Any) -> NoReturn:
        place = self.trace.places.get(id(obj))
        name = self.trace.host.name(place) if place is not None else f"a {type(obj).__name__}"
        unsupported(
            f"{name} ({type(obj).__name__}) is from outside the jitted function and is changed in it",
            "Return the new value instead; writing into an array that it holds, as in obj.w -= g or obj.w[...] = v, is fine.",
        )

    def aug_attr(self, obj: Any, name: str, operation: str) -> Callable[[Any], None]:
        """`obj.name += value`, as a function of the value, which is evaluated after the target has been loaded."""
        before = self.attr(obj, name)

        def store(value: Any) -> None:
            after = self.in_place(operation, before, value)
            if after is not before or type(after) is not TracedArray or sets_itself(obj, name):
                setattr(self.own(obj), name, after)

        return store

    def aug_item(self, obj: Any, index: Any, operation: str) -> Callable[[Any], None]:
        """`obj[index] += value`, likewise."""
        if type(obj) is np.ndarray:
            obj = lift(obj)
        if _is_mask(obj, index):
            return functools.partial(self._aug_where, obj, index, operation)
        return functools.partial(self._aug_loaded, obj, index, operation, self.item(obj, index))

    def _aug_loaded(self, obj: Any, index: Any, operation: str, before: Any, value: Any) -> None:
        if not is_traced(before):
            self.grow(before)
        after = self.in_place(operation, before, value)
        if after is before and type(after) is TracedArray and takes_items(obj):
            if type(obj) is not TracedArray or after.storage is obj.storage:
                return  # written in place, through the view or in the container's own array
        own: Any = obj if isinstance(obj, tuple) else self.own(obj)  # a tuple raises, wherever it is from
        own[index] = after

    def _aug_where(self, obj: TracedArray, mask: TracedArray, operation: str, value: Any) -> None:
        if np.ndim(value) > obj.ndim - mask.ndim:
            return self._aug_loaded(obj, mask, operation, self.item(obj, mask), value)
        # x[mask] has a size that depends on data, but what becomes of x does not: computed everywhere, kept where true.
        updated = self.in_place(operation, obj.copy(), value)
        where = mask.reshape((*mask.shape, *(1,) * (obj.ndim - mask.ndim)))
        call(np.copyto, obj, updated, where=where)

    def own_class(self, cls: Any) -> Any:
        """A class that has just been made, or what a decorator has made of it, is the function's own."""
        if isinstance(cls, type):
            self.trace.own[id(cls)] = made(cls)
        return cls

    @property
    def outer(self) -> OuterNames:
        """What stands on the left where a global or nonlocal name is about to be bound."""
        return OuterNames(self)


def _is_changeable(module: ModuleType) -> bool:
    """Whether a module is the user's, who may change it."""
    file = getattr(module, "__file__", None)
    return is_users(file) if file else module.__name__.partition(".")[0] not in sys.stdlib_module_names


def _is_written(descriptor: Any) -> bool:
    """Whether it is a property that is written in Python."""
    return isinstance(descriptor, property) and type(descriptor.fget) is FunctionType


def _of_object(obj: Any, array: np.ndarray[Any, Any]) -> TracedArray:
    """An array of an object of the function's own whose methods are a library's: they would not see what is written there.

    It is another one at each call, as the object is, unless the object has it from its class.
    """
    lifted = active_trace().root.lifted
    if id(array) in lifted and lifted[id(array)].storage.of_object:
        return lifted[id(array)]
    is_new = id(array) not in lifted and any(part is array for part in getattr(obj, "__dict__", {}).values())
    found = lift(array)
    view: TracedArray = found[...]
    if is_new:
        storage = Storage(active_trace().root, found.storage.value, strides=found.layout)
        view = lifted[id(array)] = TracedArray(storage, (), found.aval, found.layout, False)
        storage.of_object = True
    view.writeable = False
    return view


def _is_kept(obj: Any, name: str, function: Any) -> bool:
    """Whether an attribute is this function, which others may replace, and no method that is made when it is loaded."""
    return function.__self__ is not obj and getattr(obj, name) is function


def _changes_unseen(cls: Any, name: str) -> bool:
    """Whether a class has a method of this name that is not converted."""
    member = inspect.getattr_static(cls, name, None)
    return member is not None and (not isinstance(member, FunctionType) or is_library(member))


def _inserts(obj: Any) -> bool:
    """Whether a dict gets a key that it lacks when that is looked up, as a defaultdict does."""
    method = getattr(type(obj), "__missing__", None)
    return method is not None and method is not Counter.__missing__


def _is_mask(obj: Any, index: Any) -> bool:
    """Whether `obj[index]` is chosen by a traced mask."""
    if type(obj) is not TracedArray or type(index) is not TracedArray or index.dtype != np.bool_:
        return False
    return index.shape == obj.shape[: index.ndim]
