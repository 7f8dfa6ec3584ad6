"""How does a function see its globals, closures, attributes and callees as tracers?  `convert`, and the hooks it plants.

`convert(function)` is the function with rewritten code (`rewrite.py`) and its own globals, cells and defaults; the hooks
run while it is traced. What they load from outside is entered in the host program and guarded (`outside.py`), so that
nothing that the compiled code depends on goes stale. Library code is never rewritten; functions without source rely on
NumPy's protocols alone.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from jitml.trace.context import Trace, active_trace, current_trace, is_users, unsupported
from jitml.trace.host import Const, Slot
from jitml.trace.numbers import TracedNumber, combine
from jitml.trace.outside import CONTAINERS, guard_state, load, observe, place_of
from jitml.trace.registry import FUNCTIONS, call, full_name
from jitml.trace.rewrite import HOOKS, rewrite
from jitml.trace.source import find
from jitml.trace.tracers import TracedArray, is_traced, lift

# Modules whose functions give another answer at each call: traced once, they would be frozen.
_IMPURE = ("random", "time", "os", "datetime", "secrets", "uuid", "io", "_io", "posix", "numpy.random")
_FORBIDDEN = {print, input, open, exec, eval, globals, vars, id, np.seterr, np.seterrcall}
_MUTATORS = {
    "append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update", "setdefault", "popitem", "add",
    "discard", "appendleft", "popleft",
}  # fmt: skip
_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

_codes: dict[tuple[str, CodeType], CodeType | None] = {}
_made: set[int] = set()  # ids of code objects that are converted already, all kept alive by `_codes`


def convert(function: Callable[..., Any]) -> Callable[..., Any]:
    """What to call in place of `function` while tracing: the function itself where there is nothing to convert."""
    kind = type(function)
    if kind is FunctionType:
        return _convert_function(function)  # type: ignore[arg-type]  # its type says so
    if kind is MethodType:
        return MethodType(convert(function.__func__), function.__self__)  # type: ignore[attr-defined]  # a method
    if kind is functools.partial:
        return functools.partial(convert(function.func), *function.args, **function.keywords)  # type: ignore[attr-defined]  # a partial
    if isinstance(function, type):
        return _convert_class(function)
    call = inspect.getattr_static(kind, "__call__", None)
    if isinstance(call, FunctionType) and not _is_library(call):
        return MethodType(convert(call), function)
    return function


def _is_library(function: FunctionType) -> bool:
    file = function.__code__.co_filename
    return not is_users(file) and file != "<string>"  # exec'd code has no source, but its globals are guarded


def _convert_function(function: FunctionType) -> Callable[..., Any]:
    trace = current_trace()
    code = function.__code__
    if trace is None or id(code) in _made or _is_library(function):
        return function
    if code.co_flags & _GENERATORS:
        unsupported(f"{function.__qualname__} is a generator or a coroutine, which cannot be compiled", "Build a list instead.")
    known = trace.root.converted
    if function not in known:
        known[function] = _with_hooks(trace.root, function)
    return known[function]


def _with_hooks(trace: Trace, function: FunctionType) -> FunctionType:
    code = function.__code__
    key = (code.co_filename, code)
    if key not in _codes:
        found = find(function)
        _codes[key] = rewrite(found, code) if found is not None else None
        _remember(_codes[key])
    new = _codes[key]
    hooks = Hooks(trace, function)
    trace.host.require_same(load(trace, getattr, Const(function), "__code__", f"{function.__name__}.__code__"), code)
    if new is None:
        trace.sourceless.add(code)
        hooks.guard_all()
        return function
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    cells[HOOKS] = CellType(hooks)
    closure = tuple(cells[name] for name in new.co_freevars)
    made = FunctionType(new, function.__globals__, function.__name__, None, closure)
    made.__defaults__ = hooks.part("__defaults__")
    made.__kwdefaults__ = hooks.part("__kwdefaults__")
    made.__qualname__, made.__doc__ = function.__qualname__, function.__doc__
    return made


def _remember(code: CodeType | None) -> None:
    if code is not None:
        _made.add(id(code))
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                _remember(constant)


def _convert_class(cls: type) -> Callable[..., Any]:
    """A class is called as ever, but its own `__init__` sees tracers, and the new object is known to be the function's own."""
    if cls.__module__ == "builtins":
        return cls
    init, new = inspect.getattr_static(cls, "__init__"), inspect.getattr_static(cls, "__new__")
    by_us = type(cls) is type and new is vars(object)["__new__"] and type(init) is FunctionType and not _is_library(init)

    def construct(*args: Any, **kwargs: Any) -> Any:
        trace = active_trace().root
        instance: Any = object.__new__(cls) if by_us else cls(*args, **kwargs)
        trace.own[id(instance)] = instance
        if by_us:
            convert(init)(instance, *args, **kwargs)
        return instance

    return construct


class Hooks:
    """What converted code calls: `__jm`. One for each function and trace."""

    __slots__ = ("function", "trace")
    slice = staticmethod(slice)

    def __init__(self, trace: Trace, function: FunctionType) -> None:
        self.trace = trace  # the root
        self.function = function

    def name(self, value: Any, name: str) -> Any:
        """A global or closure variable was loaded."""
        if is_traced(value):
            return value
        slot = self._place(name)
        return value if slot is None else observe(self.trace, value, slot, name)

    def _place(self, name: str) -> Slot | None:
        function = self.function
        if name in function.__code__.co_freevars:
            cell = (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
            return load(self.trace, getattr, Const(cell), "cell_contents", name)
        if name in function.__globals__:
            return load(self.trace, operator.getitem, Const(function.__globals__), name, name)
        return None  # a builtin

    def part(self, attribute: str) -> Any:
        """The function's defaults, with arrays lifted."""
        value = getattr(self.function, attribute)
        if value is None:
            return None
        slot = load(self.trace, getattr, Const(self.function), attribute, f"{self.function.__name__}.{attribute}")
        return observe(self.trace, value, slot, f"{self.function.__name__}.{attribute}")

    def guard_all(self) -> None:
        """No source: everything the function could load by name is guarded at once; its arrays stay what they are."""
        function = self.function
        for name in (*function.__code__.co_freevars, *function.__code__.co_names):
            slot = self._place(name)
            if slot is not None:
                value = self._value_of(name)
                if isinstance(value, np.ndarray):
                    lift(value, slot)
                    self.trace.host.require_same(slot, value)
                else:
                    observe(self.trace, value, slot, name)

    def _value_of(self, name: str) -> Any:
        function = self.function
        if name in function.__code__.co_freevars:
            return (function.__closure__ or ())[function.__code__.co_freevars.index(name)].cell_contents
        return function.__globals__[name]

    def attr(self, obj: Any, name: str) -> Any:
        """`obj.name` was loaded."""
        kind = type(obj)
        if is_traced(obj):
            return getattr(obj, name)
        if kind is super:
            return self._super_attr(obj, name)
        if kind is np.ndarray:
            return getattr(lift(obj), name)
        if kind is ModuleType:
            return self._module_attr(obj, name)
        descriptor = inspect.getattr_static(kind, name, None)
        if isinstance(descriptor, property | functools.cached_property):
            self._require_member(kind, name, descriptor)
        if isinstance(descriptor, property) and type(descriptor.fget) is FunctionType:
            return convert(descriptor.fget)(obj)
        if isinstance(descriptor, functools.cached_property) and name not in vars(obj):
            return convert(descriptor.func)(obj)
        value = getattr(obj, name)
        slot = place_of(self.trace, obj)
        if is_traced(value) or slot is None:
            return lift(value) if type(value) is np.ndarray else value
        if type(value) is MethodType or isinstance(value, BuiltinFunctionType):
            if type(descriptor) is FunctionType and not _is_library(descriptor):
                self._require_member(kind, name, descriptor)
            return value
        text = f"{self.trace.host.name(slot)}.{name}"
        place = load(self.trace, getattr, slot, name, text)
        if type(value) is float:  # a hyper-parameter that changes between calls is no reason to compile again
            self.trace.host.require_type(place, float)
            return TracedNumber(self.trace, place, value)
        return observe(self.trace, value, place, text)

    def _super_attr(self, obj: Any, name: str) -> Any:
        value = getattr(obj, name)
        function = getattr(value, "__func__", None)
        for cls in type(obj.__self__).__mro__:
            if isinstance(function, FunctionType) and not _is_library(function) and vars(cls).get(name) is function:
                self._require_member(cls, name, function)
        return value

    def _require_member(self, cls: type, name: str, member: object) -> None:
        """A class still has this method or property."""
        self.trace.host.require_same(load(self.trace, getattr, Const(cls), name, f"{cls.__name__}.{name}"), member)

    def _module_attr(self, module: ModuleType, name: str) -> Any:
        value = getattr(module, name)
        file = getattr(module, "__file__", None) or ""
        if not file or not is_users(file):
            return lift(value) if type(value) is np.ndarray else value
        text = f"{module.__name__}.{name}"
        return observe(self.trace, value, load(self.trace, getattr, Const(module), name, text), text)

    def item(self, obj: Any, index: Any) -> Any:
        """`obj[index]` was loaded."""
        if type(obj) is np.ndarray:
            obj = lift(obj)
        if type(obj).__module__ == "numpy.lib._index_tricks_impl" and obj in FUNCTIONS:
            return FUNCTIONS[obj](index)
        method = inspect.getattr_static(type(obj), "__getitem__", None)
        if isinstance(method, FunctionType) and not _is_library(method) and not is_traced(obj):
            self._require_member(type(obj), "__getitem__", method)
            return convert(method)(obj, index)
        if type(obj).__module__ == "os":
            unsupported("os.environ would be read only once, while the function is traced", "Pass what it says as an argument.")
        value = obj[index]
        return lift(value) if type(value) is np.ndarray else value

    def own(self, obj: Any) -> Any:
        """`obj.name = v` or `obj[index] = v` is about to happen."""
        if type(obj) is np.ndarray:
            return lift(obj)
        if not is_traced(obj) and place_of(self.trace, obj) is not None:
            self._refuse_write(obj)
        return obj

    def _refuse_write(self, obj: Any) -> None:
        name = self.trace.host.name(self.trace.places[id(obj)])
        unsupported(
            f"{name} ({type(obj).__name__}) is from outside the jitted function and is changed in it",
            "Return the new value instead; writing into an array that it holds, as in obj.w -= g or obj.w[...] = v, is fine.",
        )

    def aug_attr(self, obj: Any, name: str, operation: str, value: Any) -> None:
        """`obj.name += value`"""
        before = self.attr(obj, name)
        after = getattr(operator, operation)(before, value)
        if after is not before or type(after) is not TracedArray:
            setattr(self.own(obj), name, after)

    def aug_item(self, obj: Any, index: Any, operation: str, value: Any) -> None:
        """`obj[index] += value`"""
        if type(obj) is np.ndarray:
            obj = lift(obj)
        if _updates_by_mask(obj, index, value):
            # x[mask] has a size that depends on data, but what becomes of x does not: computed everywhere, kept where true.
            updated = getattr(operator, operation)(obj.copy(), value)
            where = index.reshape((*index.shape, *(1,) * (obj.ndim - index.ndim)))
            call(np.copyto, obj, updated, where=where)
            return
        before = self.item(obj, index)
        after = getattr(operator, operation)(before, value)
        if after is before and type(after) is TracedArray:
            if type(obj) is not TracedArray or after.storage is obj.storage:
                return  # written in place, through the view or in the container's own array
        self.own(obj)[index] = after

    def outer_write(self, name: str) -> None:
        """A global or nonlocal name is about to be bound."""
        unsupported(f"the jitted function assigns the global or nonlocal name {name!r}", "Return the value instead.")

    def conv(self, function: Any) -> Any:
        """A function is about to be called."""
        owner = getattr(function, "__self__", None)
        if is_traced(owner) or (isinstance(owner, np.ufunc) and function not in FUNCTIONS):
            return function
        try:
            implementation = FUNCTIONS.get(function)
        except TypeError:  # unhashable callables
            implementation = None
        if implementation is not None:
            return implementation
        if type(function) is FunctionType and not _is_library(function):
            return convert(function)
        if function is getattr:
            return self._getattr
        if function is type:
            return lambda *args: args[0].__class__ if len(args) == 1 and is_traced(args[0]) else type(*args)
        if function is np.errstate:
            return _errstate
        if function in (float, int):
            return functools.partial(_number, function)
        self._check_effects(function, owner)
        module = getattr(function, "__module__", None) or ""
        if module == "math":
            return functools.partial(_math, function)
        converted = convert(function)
        if converted is not function or module.startswith("jitml") or _in(function, {isinstance, issubclass, callable}):
            return converted
        if isinstance(function, type) and function not in (map, filter) and not module.startswith("numpy"):
            return function
        # map, sorted(key=...), functools.reduce: what they call is the user's.
        return functools.partial(self._call_outside, function)

    def _call_outside(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function that is not converted: those it is given are, the objects it may look into are guarded."""
        looks = function is hasattr or getattr(function, "__module__", None) != "builtins"  # others call special methods only
        for argument in (*args, *kwargs.values()) if looks else ():
            slot = self.trace.places.get(id(argument))
            if slot is not None and not isinstance(argument, CONTAINERS):
                guard_state(self.trace, argument, slot)
        value = function(*map(_callback, args), **{name: _callback(arg) for name, arg in kwargs.items()})
        return lift(value) if type(value) is np.ndarray else value

    def _getattr(self, obj: Any, name: str, *default: Any) -> Any:
        try:
            return self.attr(obj, name)
        except AttributeError:
            if default:
                if (slot := place_of(self.trace, obj)) is not None:
                    guard_state(self.trace, obj, slot)
                return default[0]
            raise

    def _check_effects(self, function: Any, owner: Any) -> None:
        """Refuse what would happen once, while tracing, instead of at every call."""
        homes = {getattr(x, "__module__", None) or "" for x in (function, owner, type(owner))}
        if _in(function, _FORBIDDEN) or any(h == m or h.startswith(m + ".") for h in homes for m in _IMPURE):
            unsupported(
                f"{full_name(function)}() would run only once, while the function is traced, and not at every call",
                "Call it outside the jitted function and pass its result as an argument.",
            )
        if id(owner) in self.trace.places and getattr(function, "__name__", "") in _MUTATORS:
            self._refuse_write(owner)


def _in(x: Any, some: set[Any]) -> bool:
    return any(x is y for y in some)


def _callback(argument: Any) -> Any:
    return convert(argument) if type(argument) in (FunctionType, MethodType, functools.partial) else argument


def _updates_by_mask(obj: Any, index: Any, value: Any) -> bool:
    """Whether `obj[index] op= value` has a traced mask, and one value for every element or row that it picks."""
    if type(obj) is not TracedArray or type(index) is not TracedArray or index.dtype != np.bool_:
        return False
    return index.shape == obj.shape[: index.ndim] and np.ndim(value) <= obj.ndim - index.ndim


def _errstate(**kinds: Any) -> Any:
    """`np.errstate` that silences is fine, for compiled code never warns; one that shall raise would not."""
    for kind, reaction in kinds.items():
        if reaction not in (None, "ignore", "warn"):
            unsupported(
                f"np.errstate({kind}={reaction!r}) is not supported: jitted code does not look for floating-point errors",
                "Look at the result instead, with np.isfinite.",
            )
    return np.errstate(**kinds)


def _math(function: Callable[..., Any], *args: Any) -> Any:
    if any(type(a) is TracedNumber for a in args) and all(type(a) in (TracedNumber, int, float, bool) for a in args):
        return combine(function, *args)
    return function(*args)


def _number(kind: Any, *args: Any) -> Any:
    """`float(n)` and `int(n)` of a Python number stay traced."""
    if len(args) == 1 and type(args[0]) is TracedNumber:
        return args[0] if args[0].kind is kind else combine(kind, args[0])
    return kind(*args)
