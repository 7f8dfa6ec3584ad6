"""Function conversion: how does a function see its globals, closures, attributes and callees as tracers?

`convert` gives it hooks.

`convert(function)` is the function with rewritten code (`rewrite/function.py`) and its own globals, cells and defaults; the hooks
(`assignments.py`, `calls.py`, `control_flow.py`) run while it is traced. What they load from outside is entered in the host
program and guarded (`guarded_loads.py`), so that nothing that the compiled code depends on goes stale. Library code is never
rewritten; functions without source are refused (`sourceless.py`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from enum import Enum
from types import CellType, CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from jitml.errors import LifetimeError
from jitml.functions import FunctionLike
from jitml.imports.late import late
from jitml.trace.environment.class_guards import require_bases, require_class
from jitml.trace.environment.guarded_loads import CalledArguments, load
from jitml.trace.environment.name_lookup import base_of, is_made_plainly
from jitml.trace.hooks.calls import Hooks
from jitml.trace.record.libraries import is_library
from jitml.trace.record.recording import Trace, active_trace, current_trace, refuse, unsupported
from jitml.trace.record.user_code import as_written, note_inner
from jitml.trace.regions.drivers import made
from jitml.trace.rewrite import code_cache
from jitml.trace.rewrite.driver_protocol import HOOKS
from jitml.trace.speculation.modes import decisions
from jitml.trace.values.registry import FUNCTIONS, call, has_meaning, uncached

if TYPE_CHECKING:
    from jitml.trace.environment import sourceless
    from jitml.trace.rewrite import function as rewriting
    from jitml.trace.rewrite import generated_methods, source, source_texts
else:
    rewriting, source = late("jitml.trace.rewrite.function"), late("jitml.trace.rewrite.source")
    sourceless = late("jitml.trace.environment.sourceless")
    generated_methods, source_texts = late("jitml.trace.rewrite.generated_methods"), late("jitml.trace.rewrite.source_texts")

_COROUTINES = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

_codes: dict[tuple[str, CodeType], CodeType | source.Missing] = {}
_made: set[int] = set()  # ids of code objects that are converted already, all kept alive by `_codes`


def convert(function: Callable[..., Any]) -> Callable[..., Any]:
    """What to call in place of `function` while tracing: the function itself where there is nothing to convert."""
    kind = type(function)
    if kind is FunctionType:
        return _convert_function(function)  # type: ignore[arg-type]  # its type says so
    if kind is MethodType:
        made = convert(function.__func__)  # type: ignore[attr-defined]  # a method
        return function if made is function.__func__ else MethodType(made, function.__self__)  # type: ignore[attr-defined]  # the same
    if kind is functools.partial:
        return functools.partial(convert(function.func), *function.args, **function.keywords)  # type: ignore[attr-defined]  # a partial
    if isinstance(function, FunctionLike) and function.traced_as is not None:
        return convert(function.traced_as)
    if current_trace() is not None and has_meaning(plain := uncached(function)):
        return functools.partial(call, plain)
    if isinstance(function, type):
        return _convert_class(function)
    own = inspect.getattr_static(kind, "__call__", None)
    if isinstance(own, FunctionType) and not is_library(own):
        if (trace := current_trace()) is not None:
            require_class(trace, kind)
        return MethodType(convert(own), function)
    return function


def _convert_function(function: FunctionType) -> Callable[..., Any]:
    trace = current_trace()
    code = function.__code__
    if trace is None:
        return function
    if id(code) in _made:  # made inside, by converted code: it may call itself for ever
        decisions().step()
        return function
    if is_library(function):
        # SciPy's functions know nothing of tracers.
        return functools.partial(call, function) if function in FUNCTIONS else function
    if code.co_flags & _COROUTINES:
        unsupported(
            f"{function.__qualname__} is a coroutine, which cannot be compiled",
            "Compile the numeric part as a plain function and call it from there.",
        )
    decisions().step()
    known = trace.functions.converted
    if function not in known:
        known[function] = _with_hooks(trace.root, function)
    return known[function]


def _with_hooks(trace: Trace, function: FunctionType) -> Callable[..., Any]:
    code = function.__code__
    key = (code.co_filename, code)
    if key not in _codes:
        _read(function, key)
    new = _codes[key]
    hooks = Hooks(trace, function, convert)
    base = base_of(trace, function)
    trace.host.require_same(load(trace, getattr, base, "__code__", f"{function.__name__}.__code__"), code)
    if function in trace.call[CalledArguments]:
        place = load(trace, getattr, base, "__globals__", f"{function.__name__}.__globals__")
        trace.host.require_same(place, function.__globals__)
    if not isinstance(new, CodeType):
        if not sourceless.is_namedtuples(function):
            sourceless.refuse_unread(function, new.reason)
        return function
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    cells[HOOKS] = CellType(hooks)
    closure = tuple(cells[name] for name in new.co_freevars)
    made = FunctionType(new, function.__globals__, function.__name__, None, closure)
    made.__defaults__ = hooks.part("__defaults__")
    made.__kwdefaults__ = hooks.part("__kwdefaults__")
    made.__qualname__, made.__doc__ = function.__qualname__, function.__doc__
    return made


def _read(function: FunctionType, key: tuple[str, CodeType]) -> None:
    code = function.__code__
    place = code_cache.key_of(code)
    known = code_cache.load(place)
    if known is None:
        found = source.find(function)
        if isinstance(found, source.Missing):
            _codes[key] = found
            return
        known = rewriting.rewrite(found, code)
        if found.file == code.co_filename:
            code_cache.keep(place, known)
    _codes[key] = known
    _remember(known)
    note_inner(known)


def _remember(code: CodeType) -> None:
    _made.add(id(code))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _remember(constant)


def _users_new(cls: type) -> FunctionType | None:
    """A `__new__` of the user's, beside an `__init__` in Python or none; arrays and containers are filled in their own way."""
    new, init = inspect.getattr_static(cls, "__new__"), inspect.getattr_static(cls, "__init__")
    is_plain = type(cls) is type and (type(init) is FunctionType or init is vars(object)["__init__"])
    maker = new.__func__ if isinstance(new, staticmethod) else new
    return maker if is_plain and type(maker) is FunctionType and not is_library(maker) else None


def _made_by(cls: type, maker: FunctionType, init: Any, *args: Any, **kwargs: Any) -> Any:
    """What `__new__` gives: an object that is new, or one that a class keeps."""
    trace = active_trace().root
    require_class(trace, cls)
    instance = convert(maker)(cls, *args, **kwargs)
    if isinstance(instance, cls) and type(init) is FunctionType:
        convert(init)(instance, *args, **kwargs)
    return instance


def _convert_class(cls: type) -> Callable[..., Any]:
    """A class is called as ever, but its own `__init__` sees tracers, and the new object is known to be the function's own."""
    if cls.__module__ == "builtins":
        return cls
    init = inspect.getattr_static(cls, "__init__")
    if type(inspect.getattr_static(cls, "__del__", None)) is FunctionType:
        message = f"{cls.__qualname__}.__del__ would run when the function has been traced, and not at every call"
        refuse(LifetimeError(message))
    by_us = is_made_plainly(cls)
    if (maker := _users_new(cls)) is not None and not issubclass(cls, np.ndarray):
        return functools.partial(_made_by, cls, maker, init)

    def construct(*args: Any, **kwargs: Any) -> Any:
        trace = active_trace().root
        require_class(trace, cls)
        if issubclass(cls, BaseException):  # a handler may ask for one that it inherits from
            require_bases(trace, cls)
        instance: Any = object.__new__(cls) if by_us else as_written(cls, args, kwargs)
        if not isinstance(instance, Enum):  # a class keeps its members: each is one object
            trace.outside.own[id(instance)] = instance
        if by_us:
            made(instance)
            generated_methods.keep_generated(cls)
            convert(init)(instance, *args, **kwargs)
        return instance

    return construct
