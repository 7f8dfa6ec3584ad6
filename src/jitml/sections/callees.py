"""HotCallees: what a statement that runs as Python calls in place of a function: the same, compiled once it is hot.

Functions of libraries are called as they are, and so are those that functions make, often anew in each call, and those that ask
who has called them.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Collection
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

from jitml.diagnostics.tracebacks import passed_over, shorten
from jitml.dispatch.left_alone import Rented
from jitml.dispatch.renting import FEW, IN_FIRST_CALL, LONG, RUNNING, PlainTurn, Rent, Sampling
from jitml.dispatch.work import is_worth_an_early_call
from jitml.sections.watchers import is_watched
from jitml.trace.record.libraries import is_library
from jitml.trace.record.recording import current_trace

_UNKNOWN = object()
_ASK_WHO_CALLS = {"warn", "_getframe", "currentframe", "stack", "extract_stack", "findCaller"}
_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class HotCallees:
    """The functions that plain statements call.

    Args:
        jitted: `jitml.jit` of one, with the options of the function around, and what it has cost.

    Attributes:
        settled: what is called in place of functions from now on: what they have been compiled to, or they themselves.
    """

    def __init__(self, jitted: Callable[[FunctionType, Rent], Callable[..., Any]]) -> None:
        self._jitted = jitted
        self._known: dict[FunctionType, _HotCallee] = {}
        self.settled: dict[FunctionType, Callable[..., Any]] = {}

    def __call__(self, function: Any, *, is_inside: bool = True) -> Any:
        """What to call in its place.

        Args:
            is_inside: whether the call is in a loop.
        """
        if is_watched():
            return function
        kind = type(function)
        if kind is FunctionType:
            return self._callee(function, is_inside)
        if kind is MethodType and type(function.__func__) is FunctionType:
            made = self._callee(function.__func__, is_inside)
            return function if made is function.__func__ else MethodType(made, function.__self__)
        return function

    def _callee(self, function: FunctionType, is_inside: bool) -> Callable[..., Any]:
        known = self._known.get(function)
        if known is None:
            if not _is_compiled(function):
                return function
            known = self._known[function] = _HotCallee(function, self._jitted, self.settled)
        return known.next_call(is_inside)

    def may_compile(self, function: Any) -> bool:
        """Whether something else may be called in its place one day."""
        return function in self._known

    def timed(self, names: Collection[str]) -> list[_HotCallee]:
        """Those of these names that may become hot."""
        return [callee for function, callee in [*self._known.items()] if callee.is_timed and function.__name__ in names]

    def are_compiled(self, names: Collection[str]) -> bool:
        """Whether something else answers for one of these names than the function as it was written."""
        settled = [*self.settled.items()]
        return any(f.__name__ in names and f is not called and not _is_left_alone(called) for f, called in settled)


class CallSite:
    """What a call in a plain statement asks: what to call in place of what it names.

    Args:
        cell: holds this; None in it says that nothing is to be asked, since nothing else has been called for a while.
        is_inside: whether it is in a loop.
    """

    __slots__ = ("_callees", "_cell", "_is_inside", "_left", "_settled")

    def __init__(self, callees: HotCallees, cell: CellType | None, *, is_inside: bool) -> None:
        self._callees, self._cell, self._left, self._settled = callees, cell, FEW, callees.settled
        self._is_inside = is_inside

    def __call__(self, called: Any) -> Any:
        kind = type(called)
        function = called if kind is FunctionType else called.__func__ if kind is MethodType else None
        if type(function) is not FunctionType:
            return self._as_it_is(called)
        found = self._settled.get(function)
        if found is None:
            answer = self._callees(called, is_inside=self._is_inside)
            return answer if self._callees.may_compile(function) else self._as_it_is(answer)
        if found is function:
            return self._as_it_is(called)
        if is_watched():
            return called
        self._left = FEW
        return found if kind is FunctionType else MethodType(found, called.__self__)

    def _as_it_is(self, called: Any) -> Any:
        """It is none that will be compiled."""
        self._left -= 1
        if self._left <= 0 and self._cell is not None:
            self._cell.cell_contents = None
        return called


def _is_left_alone(called: Callable[..., Any]) -> bool:
    return isinstance(called, Rented) and called.alone is not None


def _is_compiled(function: FunctionType) -> bool:
    """Whether a function is compiled once it is hot."""
    code = function.__code__
    if function.__closure__ is not None or code.co_flags & _GENERATORS or "<locals>" in function.__qualname__:
        return False
    return not is_library(function) and _ASK_WHO_CALLS.isdisjoint(code.co_names)


def is_asked_for(called: ast.expr, caller: FunctionType) -> bool:
    """Whether something else may be called in place of what a call names: unless that is known, and no function of the user's."""
    found = _named(called, caller)
    found = found.__func__ if type(found) is MethodType else found
    return found is _UNKNOWN or (type(found) is FunctionType and _is_compiled(found))


def _named(called: ast.expr, caller: FunctionType) -> Any:
    """What a name, or an attribute of a module, is for a function now."""
    match called:
        case ast.Name(id=name):
            code = caller.__code__
            if name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars:
                return _UNKNOWN
            return caller.__globals__.get(name, _UNKNOWN)
        case ast.Attribute(value=value, attr=attr) if type(module := _named(value, caller)) is ModuleType:
            return vars(module).get(attr, _UNKNOWN)
    return _UNKNOWN


class _HotCallee:
    """One function: itself is called, which is timed now and then; in the end what it was compiled to, or the plain function."""

    def __init__(
        self,
        function: FunctionType,
        jitted: Callable[[FunctionType, Rent], Callable[..., Any]],
        settled: dict[FunctionType, Callable[..., Any]],
    ) -> None:
        self._function, self._jitted, self._settled = function, jitted, settled
        self._rent = Rent()
        self._sampling = Sampling(self._rent.paid)
        self._turn: PlainTurn | None = None  # the outermost call that is timed
        self._now: Callable[..., Any] = self._run_timed

    @property
    def is_timed(self) -> bool:
        return self._now == self._run_timed

    def paid(self, share: float) -> bool:
        """The function that calls it has run as it was written, for this share of its time so far; whether this is due."""
        is_due = self._rent.grow(share)
        if is_due:
            self._sampling.at_once()
        return is_due

    def next_call(self, is_inside: bool) -> Callable[..., Any]:
        """What the next call is to be of."""
        if self._sampling.passes():
            return self._function
        is_first = not is_inside and not self._rent.turns and self._now == self._run_timed and RUNNING.level == IN_FIRST_CALL
        return self._run_first if is_first else self._now

    @passed_over
    def _run_first(self, *args: Any, **kwargs: Any) -> Any:
        """In a first call, what is called once is compiled before it has run, if that is likely to be worth it."""
        if self._turn is None and current_trace() is None and is_worth_an_early_call(self._function, args, kwargs):
            self._rent.paid(LONG)
            self._decide()
        return self._now(*args, **kwargs)

    @passed_over
    def _run_timed(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself, whose outermost call is timed."""
        is_outermost = self._turn is None and current_trace() is None
        if is_outermost:
            self._rent.comes()
        turn = PlainTurn(self._pay_rent, self._rent)
        if is_outermost:
            self._turn = turn
        try:
            return self._function(*args, **kwargs)
        except BaseException as error:
            shorten(error)
            raise
        finally:
            if is_outermost:
                self._turn = None
                turn.seen()

    def _pay_rent(self, seconds: float) -> None:
        """Count a timed call towards the price of a compilation; compile when it is paid."""
        self._sampling.took(seconds)
        self._decide()

    def _decide(self) -> None:
        if self._rent.is_due(may_be_soon=True):
            self._now = self._jitted(self._function, self._rent)
        elif self._rent.is_small:
            self._now = self._function
        if not self.is_timed:
            self._sampling.at_once()
            self._settled[self._function] = self._now


__all__ = ["CallSite", "HotCallees", "is_asked_for"]
