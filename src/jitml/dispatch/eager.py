"""Transforms outside `jit`: how does a transform run that is called outside `jit`?

Traced once for the kind of its arguments, then run by NumPy.

No compiler is waited for: the graph runs by NumPy (`numpy_execution.py`), behind the same guards as compiled code has. What is
kept belongs to the user's function by its code, so that a lambda that is written in a loop, and made anew each time, is traced
once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, wraps
from types import FunctionType, MethodType
from typing import Any, TypeVar

import numpy as np
import optree

from jitml.dispatch.entry import MISS, bind
from jitml.dispatch.numpy_execution import every_node, executed, executed_once_watched
from jitml.errors import (
    FailedCheck,
    JitmlError,
    MoreIterations,
    RaisingBranch,
    RowsDiffer,
    UnsupportedError,
    WrongPath,
)
from jitml.forks import lock
from jitml.interrupts import contained, pass_on, unset
from jitml.ir import ops
from jitml.ir.capacity import learn, learning
from jitml.ir.execute.debug_nans import is_debugging
from jitml.ir.graph import Graph
from jitml.trace.asynchronous import is_aside
from jitml.trace.environment.arguments import Callee, require_countable
from jitml.trace.environment.transformed import Transformed
from jitml.trace.record.libraries import is_library
from jitml.trace.record.pytree import flatten, is_nested, unflatten
from jitml.trace.record.recording import current_trace, outside_trace
from jitml.trace.speculation.exceptions import Handler, Steps, raising, raising_now
from jitml.trace.speculation.paths import Path, other_paths
from jitml.trace.trace import trace
from jitml.trace.values.python_arithmetic import unheard

Array = np.ndarray[Any, Any]
Program = TypeVar("Program", bound=Callable[..., Any])
Failed = list[tuple[Path, WrongPath]]  # paths that a call does not take

_MOST_FUNCTIONS = 256
_MOST_VARIANTS = 16


@dataclass(frozen=True, slots=True, eq=False)
class _EagerVariant:
    """One specialisation; `program` is what was traced, with what it has learned on the way."""

    enter: Callable[[Sequence[Any]], Any]
    program: Any
    path: Path
    handlers: tuple[Handler, ...]


_variants: OrderedDict[Hashable, tuple[_EagerVariant, ...]] = OrderedDict()
_counted: set[Hashable] = set()  # groups of calls whose arguments could be counted
_lock = lock()


# Told of each transform that runs outside of any trace: what it is, the function and the arguments that this is called with.
Witness = Callable[[Hashable, Callable[..., Any], tuple[Any, ...], Mapping[str, Any]], None]
_witness: ContextVar[Witness | None] = ContextVar("jitml_witness", default=None)


@contextmanager
def witnessed(witness: Witness | None) -> Iterator[None]:
    """Tell `witness` of the transforms that run inside the block; None: nobody."""
    token = _witness.set(witness)
    try:
        yield
    finally:
        unset(_witness, token)


def run(
    key: Hashable,
    make: Callable[[], Program],
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    positional: Sequence[Any] | None = None,
) -> tuple[Any, Program]:
    """The result of `program(f, *args, **kwargs)`, and the program that gave it when it was traced.

    Inside a trace the program records; outside any, what it records is run. Where that raises, `f` itself is called on copies of
    its arguments, for an exception from its own line, with the text that it has there.

    Args:
        key: what the program is, but for f.
        make: makes a program, a function that works inside a trace.
        positional: how f is called by position; as the program is, if not given.
    """
    if current_trace() is not None and is_aside():
        with outside_trace():
            return run(key, make, f, args, kwargs, positional)
    witness = _witness.get()
    if witness is not None and current_trace() is None:
        witness(key, f, args if positional is None else tuple(positional), kwargs)
    handlers: list[Handler] = []
    try:
        return attempt(key, make, f, args, kwargs, handlers)
    except Exception as error:
        pass_on(error)
        may_be_handled = bool(handlers) and isinstance(error, RowsDiffer)
        if current_trace() is not None or not (is_programs_own(error) or may_be_handled):
            raise
        failure = error
    refusal: JitmlError | None = None
    if handlers:
        try:
            return contained(partial(_step_by_step, make, f, args, kwargs, handlers))
        except JitmlError as error:
            refusal = error
        except Exception as error:  # f does not handle it, or the derivative raises it
            pass_on(error)
            failure = error
    replay(f, args if positional is None else positional, kwargs, handlers)
    if refusal is not None and not isinstance(failure, RowsDiffer):
        raise _handled(failure, handlers, refusal) from failure
    raise failure  # of the derivative alone


def _step_by_step(
    make: Callable[[], Program],
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    handlers: Sequence[Handler],
) -> tuple[Any, Program]:
    """The same result of a function that handles an exception in this call, by a program for it alone."""
    heeds = bool(raising_now()) and any(handler.hears_floating for handler in handlers)
    given: tuple[Any, ...] = (Callee(f), *args)
    failed: Failed = []
    leaves, _ = _taken_apart(given, kwargs)
    while True:
        program = make()
        path = other_paths(failed)[-1] if failed else Path()
        steps = Steps(raising_now(), all_plain=heeds)
        traced = trace(_unheard_of(program), given, kwargs, path=path, rooted=True, steps=steps)
        try:
            result = bind(traced, executed(traced, heeds=False))(leaves)
        except WrongPath as failure:
            failed.append((traced.path, failure))
        except Exception as error:
            pass_on(error)
            if not heeds:  # a long loop has not been run to its end
                heeds, failed = True, []
            elif steps.is_blind:
                raise UnsupportedError("what raises depends on random numbers, or on what a region makes") from error
            else:
                raise
        else:
            if result is MISS:
                raise UnsupportedError("what the function depends on changes while it is traced")
            return result, program


def _handled(failure: Exception, handlers: Sequence[Handler], refusal: JitmlError) -> UnsupportedError:
    """The refusal of a function that handles an exception."""
    places = list(dict.fromkeys(str(handler.source) for handler in handlers))
    first = failure.message if isinstance(failure, JitmlError) else f"{type(failure).__name__}: {failure}"
    return UnsupportedError(
        f"the function handles an exception in this call, and cannot be transformed with it ({first}): {refusal.message}",
        source=handlers[0].source,
        remedy="Ask for the condition before, with np.where or an `if`, in place of the "
        + ("`try`." if len(places) == 1 else f"`try`, here or at {', '.join(places[1:])}."),
    )


def is_programs_own(error: Exception) -> bool:
    """Whether an exception may be one that the plain function raises, too."""
    return isinstance(error, FailedCheck) or not isinstance(error, (JitmlError, MemoryError))


def replay(f: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], handlers: Sequence[Handler]) -> Any:
    """What the plain function answers, for copies of its arrays: transforms do not write into the caller's, nor do they warn."""
    leaves, spec = flatten((tuple(args), dict(kwargs)))
    passed, named = unflatten(spec, [leaf.copy("K") if isinstance(leaf, np.ndarray) else leaf for leaf in leaves])
    with heeded(handlers):
        return f(*passed, **named)


def heeded(handlers: Sequence[Handler]) -> np.errstate:
    """Floating-point errors, of which a transform says nothing, are exceptions where the caller wants it and f may handle it."""
    return raising(raising_now() if any(handler.hears_floating for handler in handlers) else 0)


def attempt(
    key: Hashable,
    make: Callable[[], Program],
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    handlers: list[Handler],
) -> tuple[Any, Program]:
    """`run`, with exceptions as they come out of a trace, or of a graph: without the user's lines, perhaps without a text.

    Args:
        handlers: takes the statements by which the program that has been tried last may handle exceptions.
    """
    if current_trace() is not None:
        program = make()
        return _unheard_of(program)(f, *args, **kwargs), program
    leaves: Sequence[Any]
    if is_debugging():
        given = (Callee(f), *args)
        leaves, _ = _taken_apart(given, kwargs)
        variant, result = contained(partial(_traced_for, leaves, make, given, kwargs, [], handlers))
        return result, variant.program
    leaves = (Callee(f), *args, *kwargs.values())
    group: Hashable = (key, _identity(f), len(args), *kwargs)
    failed: Failed = []
    found = _call(group, leaves, failed, handlers)
    if found is None:
        if group not in _counted:  # once: warm calls do not pay for it
            require_countable(f, args, kwargs)
            _note_counted(group)
        leaves, spec = _taken_apart((leaves[0], *args), kwargs)
        if is_nested(spec):
            group = (key, _identity(f), spec)
            found = _call(group, leaves, failed, handlers)
    if found is None:
        variant, result = contained(partial(_traced_for, leaves, make, (leaves[0], *args), kwargs, failed, handlers))
        _keep(group, variant)
        found = result, variant.program
    return found


def _taken_apart(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[list[Any], optree.PyTreeSpec]:
    """What is handed to a traced function: the leaves of the arguments and, where there are containers, these themselves."""
    given = args, dict(kwargs)
    leaves, spec = flatten(given)
    return [*leaves, given] if is_nested(spec) else leaves, spec


def _unheard_of(program: Callable[..., Any]) -> Callable[..., Any]:
    """A program whose records ignore floating-point errors, as `executed` does: compiled or not, a transform does not warn."""

    @wraps(program)
    def unheard_of(*args: Any, **kwargs: Any) -> Any:
        with unheard():
            return program(*args, **kwargs)

    return unheard_of


def _identity(f: Any) -> Hashable:
    """Functions of the same code are told apart by what they load, which is guarded, and so are those that are made of them."""
    if isinstance(f, Transformed):
        return Transformed, f.key, _identity(f.__wrapped__)
    if type(f) is MethodType:
        return MethodType, id(f.__self__), _identity(f.__func__)
    if type(f) is partial:
        return partial, _identity(f.func), len(f.args), *f.keywords
    return f.__code__ if type(f) is FunctionType and not is_library(f) else id(f)


def _call(group: Hashable, leaves: Sequence[Any], failed: Failed, handlers: list[Handler]) -> Any:
    for variant in _variants.get(group, ()):
        handlers[:] = variant.handlers
        try:
            result = variant.enter(leaves)
        except WrongPath as failure:
            failed.append((variant.path, failure))
            continue
        except MoreIterations as failure:
            learn(failure)
            _forget(group, variant)
            continue
        if result is not MISS:
            return result, variant.program
    return None


def _traced_for(
    leaves: Sequence[Any],
    make: Callable[[], Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    failed: Failed,
    handlers: list[Handler],
) -> tuple[_EagerVariant, Any]:
    """A new variant, of the path that this call takes, and its result."""
    while True:
        program = make()
        try:
            path = other_paths(failed)[-1] if failed else Path()
            with learning():
                traced = trace(_unheard_of(program), args, kwargs, path=path, rooted=True, handlers=handlers)
            if _is_once_only(traced.graph):
                program = make()
                traced = trace(_unheard_of(program), args, kwargs, path=path, rooted=True, handlers=handlers)
        except MoreIterations as failure:  # of what is computed while it is traced
            learn(failure)
            continue
        except FailedCheck as failure:  # nothing but the program itself answers here: what it has raised
            raise failure.__cause__ or failure from None
        except UnsupportedError as error:
            raised = next((failure for _, failure in failed if isinstance(failure, RaisingBranch)), None)
            if raised is None or isinstance(error, RowsDiffer):
                raise
            raise raised from error
        execute = executed_once_watched(traced, getattr(program, "residuals", range(0))) if is_debugging() else executed(traced)
        variant = _EagerVariant(bind(traced, execute), program, traced.path, traced.handlers)
        try:
            result = variant.enter(leaves)
        except WrongPath as failure:
            failed.append((traced.path, failure))
        except MoreIterations as failure:
            learn(failure)
        else:
            break
    if result is MISS:
        raise UnsupportedError(
            "the function changed, while it was traced, something that it also depends on (a global, a list, an attribute)",
            remedy="Compute from arguments alone, and return what is new.",
        )
    return variant, result


def _is_once_only(graph: Graph) -> bool:
    """Whether a call that has run out of room cannot be made again: it has drawn random numbers, or called out."""
    nodes = list(every_node(graph))
    learns = any(node.op is ops.check and node.params["error"] == MoreIterations.__name__ for node in nodes)
    return learns and any(node.op.has_effect and node.op not in (ops.check, ops.observe) for node in nodes)


def _forget(group: Hashable, variant: _EagerVariant) -> None:
    with _lock:
        if group in _variants:
            _variants[group] = tuple(v for v in _variants[group] if v is not variant)


def _note_counted(group: Hashable) -> None:
    if len(_counted) >= _MOST_FUNCTIONS:
        _counted.clear()
    _counted.add(group)


def _keep(group: Hashable, variant: _EagerVariant) -> None:
    with _lock:
        _variants[group] = (variant, *_variants.get(group, ())[: _MOST_VARIANTS - 1])
        _variants.move_to_end(group)
        while len(_variants) > _MOST_FUNCTIONS:
            _variants.popitem(last=False)
