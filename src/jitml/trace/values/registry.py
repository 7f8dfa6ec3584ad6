"""Function registry: what does a NumPy function mean for traced values?

`FUNCTIONS`: the implementation of each, by the function itself.

`jitml.numpy` fills the table; the tracers' methods, operators and protocols look up here, and so does the call
converter. A ufunc's methods have their own keys (`np.add.reduce`), methods of arrays without a function of the same
meaning are keyed by `np.ndarray.name`, indexing by `operator.getitem` and `operator.setitem`, and `**`, which is not
np.power in every NumPy, by `operator.pow`.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any, Protocol, TypeVar

import numpy as np

from jitml.errors import UnsupportedError
from jitml.forks import InterruptSafeLock, hold_at_fork
from jitml.interrupts import uninterrupted
from jitml.process import importing
from jitml.trace.record.libraries import home_of_function
from jitml.trace.record.recording import Attempt, current_trace, home_of
from jitml.trace.rewrite.driver_protocol import OpenType, WantsArray
from jitml.trace.values.python_arithmetic import hand_on
from jitml.trace.values.type_unions import DTYPES, doubt_of, in_doubt, of_known_type, own_type, seen_by, types_of

F = TypeVar("F", bound=Callable[..., Any])


class _Meanings(dict[Callable[..., Any], Callable[..., Any]]):
    """Implementations by function; those of further topics come in when one of NumPy's functions is looked for in vain."""

    def __contains__(self, function: object) -> bool:
        if super().__contains__(function):
            return True
        REGISTRY.look_further(function)
        return super().__contains__(function)

    def get(self, function: Any, default: Any = None) -> Any:
        return super().get(function, default) if function in self else default


FUNCTIONS = _Meanings()
# What fills the table, and joins the layers above; imported before the first trace, for which `import jitml` does not wait.
FILLED_BY = ("jitml.numpy", "jitml.api")
_OF_SCALARS: dict[Callable[..., Any], str] = {  # what NumPy's scalars compute by themselves, and what they call it when they warn
    operator.add: "add", operator.sub: "subtract", operator.mul: "multiply", operator.truediv: "divide", operator.pow: "power",
    operator.floordiv: "floor_divide", operator.mod: "remainder", operator.neg: "negative", operator.abs: "absolute",
}  # fmt: skip
_NOT_SCALARS = (np.ndarray, list, tuple)


_OF_COMPLEX = (operator.add, operator.sub, operator.mul, operator.truediv, operator.eq, operator.ne)
_FLOATS = {np.float64, float, int, bool}


def implements(*functions: Callable[..., Any]) -> Callable[[F], F]:
    """Register the decorated function as the traced meaning of each given one; a second one is refused."""

    def register(implementation: F) -> F:
        for function in functions:
            if dict.__contains__(FUNCTIONS, function):  # no further topic is looked into: this may be the import of one
                raise ValueError(f"{function!r} has an implementation already")
            FUNCTIONS[function] = implementation
        if isinstance(implementation, FunctionType) and functions:  # none, where this NumPy lacks the function
            # Python's own messages about arguments name the function by this.
            implementation.__qualname__ = full_name(functions[0])
        return implementation

    return register


_CACHED: Any = type(lru_cache(abs))


def has_meaning(function: Any) -> bool:
    """Whether a function has an implementation."""
    return isinstance(function, Hashable) and function in FUNCTIONS


def uncached(function: Any) -> Any:
    """What `functools.lru_cache` has wrapped, which computes the same."""
    return function.__wrapped__ if type(function) is _CACHED else function


def meaning_of(function: Any) -> Any:
    """What library code is given to call in place of a function that it is given."""
    return partial(call, function) if has_meaning(function) else function


class Fallback(Protocol):
    """What to do with a function that has no implementation, or whose implementation has refused."""

    def __call__(
        self, refusal: UnsupportedError | None, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any: ...


class ForEachType(Protocol):
    """What to do with a function that sees the type of a number which only the compiled program knows."""

    def __call__(self, found: OpenType, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...


class ToArrays(Protocol):
    """What makes arrays of the lists among arguments that hold what is traced."""

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]: ...


class FinishCall(Protocol):
    """What finishes the result that an implementation has made."""

    def __call__(self, function: Callable[..., Any], result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None: ...


class Registry:
    """What calls need of rooms above this one. `jitml/numpy/__init__.py` wires it, once, and fills the table."""

    fallback: Fallback
    for_each_type: ForEachType
    to_arrays: ToArrays
    finish_call: FinishCall

    def __init__(self) -> None:
        self.homes: dict[Hashable, str] = {}  # modules of functions that do not name their own
        self._is_filled = False
        self._further: dict[str, None] = {}  # modules that fill the table when a function is looked for in vain
        self._knowing: dict[str, list[str]] = {}  # a function's full name, or where it is from -> those that know it
        self._is_completing = False
        self._pending: dict[str, Callable[[ModuleType], None]] = {}
        self._lock = InterruptSafeLock()
        hold_at_fork(self._lock)

    def wire(
        self,
        *,
        fallback: Fallback,
        for_each_type: ForEachType,
        to_arrays: ToArrays,
        finish_call: FinishCall,
        further: Mapping[str, tuple[str, ...]],
    ) -> None:
        """Say who answers; `further` are modules that know more functions: these by name, or all from somewhere."""
        self.fallback, self.for_each_type = fallback, for_each_type
        self.to_arrays, self.finish_call = to_arrays, finish_call
        self._further = dict.fromkeys(further)
        for module, names in further.items():
            for name in names:
                self._knowing.setdefault(name, []).append(module)

    def when_imported(self, module: str) -> Callable[[Callable[[ModuleType], None]], Callable[[ModuleType], None]]:
        """Let the decorated function register the functions of a module that only some programs import."""

        def remember(register: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
            self._pending[module] = register
            return register

        return remember

    def register_imported(self) -> None:
        """Bring in what waits for the first trace, or for a module that has been imported by now."""
        if not self._is_filled or any(name in sys.modules for name in self._pending):  # of thousands few are waited for
            uninterrupted(self._register)

    def look_further(self, function: Any) -> None:
        """Have the table know this function, if it is one of a further module."""
        if not self._further or home_of(type(function)).partition(".")[0] not in ("builtins", "numpy"):
            return  # an object of the user's may answer anything
        is_ufuncs = isinstance(getattr(function, "__self__", None), np.ufunc)
        home = "numpy.ufunc" if is_ufuncs else f"{_home(function)}.{getattr(function, '__name__', '')}"
        while home:
            if any(module in self._further for module in self._knowing.get(home, ())):
                self.complete(home)
                if dict.__contains__(FUNCTIONS, function):
                    return
            home = home.rpartition(".")[0]

    def complete(self, home: str | None = None) -> None:
        """Bring in what waits for a function that the table lacks: of this home, or all."""
        uninterrupted(partial(self._complete, home))

    def _complete(self, home: str | None) -> None:
        with self._lock:
            if self._is_completing:  # what fills the table looks into it
                return
            self._is_completing = True
            try:
                for module in [*self._further] if home is None else self._knowing[home]:
                    if module in self._further:
                        self._import(module)
                        del self._further[module]
            finally:
                self._is_completing = False

    def _import(self, module: str) -> None:
        """If that fails, nothing has come into the table: it will be tried again."""
        known, there = set(FUNCTIONS), {name for name in self._further if name in sys.modules}
        try:
            import_module(module)
        except BaseException:
            for function in set(FUNCTIONS) - known:
                del FUNCTIONS[function]
            for unfinished in (
                self._further.keys() - there
            ):  # those that it has brought fill the table when they are imported again
                sys.modules.pop(unfinished, None)
            raise

    def _register(self) -> None:
        with self._lock:  # a second thread must not trace before the first has filled the table
            if not self._is_filled:
                with importing():
                    for module in FILLED_BY:
                        import_module(module)
                self._is_filled = True
            for module in [name for name in self._pending if name in sys.modules]:
                known = set(FUNCTIONS)
                self._pending.pop(module)(sys.modules[module])
                self.homes.update(dict.fromkeys(set(FUNCTIONS) - known, module))


REGISTRY = Registry()


def call_for_each_type(number: Any, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A function of a number that may be Python's or NumPy's, of each type apart."""
    return REGISTRY.for_each_type(OpenType(number), function, args, kwargs)


def of_its_type(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What tells the type of its first argument, or None, and asks for neither: `type`, `isinstance`, `hasattr`."""
    if args and doubt_of(args[0]) is not None:
        return call_for_each_type(args[0], of_its_type, function, *args, **kwargs)
    return function(*args, **kwargs)


def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The traced meaning of a NumPy function, applied: its implementation, else a host call.

    Where NumPy would make an array of a list, nested or not, in which something is traced, the function is given that array.
    """
    trace = current_trace()
    if trace is None or not _has_sequence(args, kwargs) or not _is_librarys(function):
        return _call_implementation(function, *args, **kwargs)
    if type(function) is np.ufunc and function not in FUNCTIONS:
        outs = {name: x for name, x in kwargs.items() if name == "out"}  # a tuple of arrays, one for each result
        args, kwargs = REGISTRY.to_arrays(args, {name: x for name, x in kwargs.items() if name != "out"})
        kwargs |= outs
    operation, attempt = trace.operation, Attempt()
    outer, operation.takes_lists = operation.takes_lists, True
    try:
        return _call_implementation(function, *args, **kwargs)
    except WantsArray:
        if not attempt.undo():
            raise
    finally:
        operation.takes_lists = outer
    arrays, named_arrays = REGISTRY.to_arrays(args, kwargs)
    return _call_implementation(function, *arrays, **named_arrays)


def _has_sequence(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    kinds = {*map(type, args), *map(type, kwargs.values())}
    return list in kinds or tuple in kinds


def _is_librarys(function: Any) -> bool:
    """Whether a function is NumPy's or SciPy's, which takes lists for arrays; Python's own take them for what they are."""
    return isinstance(function, np.ufunc) or _home(function).partition(".")[0] in ("numpy", "scipy")


def _home(function: Any) -> str:
    """The module of a function, or of what it is a method of."""
    owner = getattr(function, "__self__", None)
    if owner is None:  # a traced list's truth would be asked
        owner = getattr(function, "__objclass__", None)
    home = getattr(function, "__module__", None)
    return home if isinstance(home, str) and home else home_of(owner if isinstance(owner, type) else type(owner))


def _call_implementation(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    implementation = FUNCTIONS.get(function)
    if implementation is None:
        return REGISTRY.fallback(None, function, args, kwargs)
    attempt = Attempt()
    operation = attempt.trace.operation if attempt.trace is not None and type(function) is np.ufunc else None
    if operation is not None and operation.name:  # part of something else
        operation = None
    if operation is not None:
        operation.name = function.__name__
    try:
        result = implementation(*args, **kwargs)
        REGISTRY.finish_call(function, result, args, kwargs)
        return of_known_type(result, args)
    except OpenType as found:
        if attempt.trace is None or attempt.trace.operation.is_operator:
            raise
        found.is_undone = attempt.undo()
        open_type = found
    except UnsupportedError as refusal:
        if not attempt.undo():
            raise
        number = in_doubt((args, kwargs))
        if number is None:
            return REGISTRY.fallback(refusal, function, args, kwargs)
        open_type = OpenType(number)
    finally:
        if operation is not None:
            operation.name = ""
    return REGISTRY.for_each_type(open_type, partial(call, function), args, kwargs)


@contextmanager
def named(operation: str) -> Iterator[None]:
    """What is recorded here NumPy calls by this name when it warns, unless it is part of something that it does."""
    trace = current_trace()
    computed = trace.operation if trace is not None and not trace.operation.name else None
    if computed is not None:
        computed.name = operation
    try:
        yield
    finally:
        if computed is not None:
            computed.name = ""


def compute_themselves(*operands: Any) -> bool:
    """Whether NumPy's scalars compute by themselves: where the result has the dtype of one of them. Else the ufunc does."""
    types = [own_type(x) for x in operands if not isinstance(x, _NOT_SCALARS)]
    if len(types) < len(operands) or None in types or types[0] is np.bool_:
        return False
    kinds = [np.dtype(which) if issubclass(which, np.generic) else DTYPES[which].type(0).item() for which in types if which]
    return np.result_type(*kinds) in kinds


def divided(x: Any, y: Any) -> tuple[Any, Any]:
    """`divmod`, of which NumPy makes both parts at once."""
    with named("scalar divmod" if compute_themselves(x, y) else "divmod"):
        return x // y, x % y


def operate(function: Callable[..., Any], python: Callable[..., Any], *operands: Any) -> Any:
    """The same of an operator, `python`, of which a NumPy function says what it does to arrays and NumPy scalars."""
    attempt = Attempt()
    if attempt.trace is None:
        return call(function, *operands)
    seen = seen_by(python, operands)
    if seen is not None:
        return call_for_each_type(seen, python, *operands)
    if operands[-1] is None and python in (operator.eq, operator.ne):
        return python is operator.ne  # a number of NumPy's is not None
    if python in _OF_COMPLEX and own_type(operands[0]) is complex and own_type(operands[1]) is np.float64:
        if types_of(operands[1]) <= _FLOATS:  # np.float64 is a float, with which Python's complex computes itself
            return python(operands[0], call(float, operands[1]))
    operation = attempt.trace.operation
    outer, operation.is_operator = (operation.is_operator, operation.name), True
    if not operation.name and python in _OF_SCALARS and not any(isinstance(x, _NOT_SCALARS) for x in operands):
        operation.name = ("scalar " if compute_themselves(*operands) else "") + _OF_SCALARS[python]
    try:
        return hand_on(call(function, *operands), python, operands)
    except OpenType as found:
        found.is_undone = attempt.undo()
        open_type = found
    finally:
        operation.is_operator, operation.name = outer
    return REGISTRY.for_each_type(open_type, python, operands, {})


def _name_in(module: str, x: object) -> str:
    """What a module calls an object, as `norm`, or else its class."""
    names = vars(sys.modules[module]).items() if module in sys.modules else ()
    return next((name for name, value in names if value is x), getattr(x, "__name__", type(x).__name__))


def full_name(function: Any) -> str:
    """How users write a function: `np.linalg.norm`, `math.sin`, `ndarray.choose`.

    >>> import numpy as np
    >>> full_name(np.add), full_name(np.add.reduce), full_name(np.linalg.norm)
    ('np.add', 'np.add.reduce', 'np.linalg.norm')
    """
    if isinstance(function, np.vectorize):
        return f"np.vectorize({getattr(function.pyfunc, '__name__', '')})"
    owner = getattr(function, "__self__", None)
    name = getattr(function, "__name__", None) or type(function).__name__
    if isinstance(owner, np.ufunc):
        return f"{full_name(owner)}.{name}"
    if isinstance(function, np.ufunc):
        special = sys.modules.get("scipy.special")  # its ufuncs do not say where they are from
        homes = {"np.": np, "scipy.special.": special}
        return next((home for home, module in homes.items() if getattr(module, name, None) is function), "") + str(name)
    if type(owner).__name__ == "getset_descriptor":  # `np.ndarray.shape.__set__`: a store into the attribute
        return full_name(owner)
    home = getattr(function, "__objclass__", None)
    if home is not None:
        return f"{home.__name__}.{name}"
    known = REGISTRY.homes.get(function) if isinstance(function, Hashable) else None
    if (
        known is None
        and getattr(function, "__module__", None) is None
        and owner is not None
        and not isinstance(owner, ModuleType)
    ):
        kind = owner if isinstance(owner, type) else type(owner)
        if not kind.__module__.startswith("numpy"):
            return (
                f"{kind.__module__}.{kind.__qualname__}.{name}"
                if kind.__module__ != "builtins"
                else f"{kind.__qualname__}.{name}"
            )
    module = known or home_of_function(function) or "numpy"
    if module == "builtins":
        return str(name)
    if module.startswith("_") and module.lstrip("_") in sys.stdlib_module_names:  # `_decimal`, where it is written in C
        module = module.lstrip("_")
    public = [part for part in module.split(".") if not part.startswith("_") and part != "mtrand"]
    if public[:1] == ["scipy"] and owner is not None and not isinstance(owner, ModuleType):
        public.append(_name_in(".".join(public), owner))
    return ".".join(["np" if part == "numpy" else part for part in public] + [name])
