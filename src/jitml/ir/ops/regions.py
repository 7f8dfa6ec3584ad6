"""Regions: nodes that hold graphs and run them again and again, or not at all; and what ties programs to run-time facts.

A body is a `Graph` of its own: its inputs are what it carries and what it uses from around it (`captured`), nothing else is
visible inside. Every `Sym` that a graph mentions is bound in that graph.

    loop     (trip: i64[], *carried, *captured)   body(index: i64[], *carried, *captured) -> *carried
                                                  `repeat`: a derivative runs it again rather than save what happens in it;
                                                  `segments`: it saves some states and runs again what lies between
    while_   (*carried, *captured)                test(*carried, *captured) -> bool[]; body(*carried, *captured) -> *carried
                                                  `repeat`, `segments`: as of a loop
    cond     (which: bool[], *captured)           then(*captured) -> *results; orelse(*captured) -> *results
    bind     (n: i64[]) {sym}                     from here on `sym` is n
    check    (x, ok: bool[], *values: i64[])      x; the program ends with an error if `ok` is false
    observe  (x)                                  all of x is computed, though it may not be needed, for the errors that come up
"""

from __future__ import annotations

import builtins
from functools import cache
from typing import Any

import numpy as np

from jitml.errors import (
    BeyondLimit,
    DerivativeError,
    DTypeError,
    FailedCheck,
    MoreIterations,
    OtherSizes,
    RaisingBranch,
    RowsDiffer,
    ShapeError,
    UnsupportedError,
    WrongPath,
)
from jitml.ir.dims import Sym
from jitml.ir.graph import Graph
from jitml.ir.interpret import interpret_outputs, iterate
from jitml.ir.op import Op
from jitml.ir.types import BOOL, I64, Aval

_INDEX, _TRUTH = Aval((), I64), Aval((), BOOL)


def _require(what: str, got: tuple[Aval, ...], wanted: tuple[Aval, ...]) -> None:
    if got != wanted:
        raise ShapeError(f"{what}: {got} where {wanted} is wanted")


def _loop_aval(
    trip: Aval, *operands: Aval, body: Graph, carried: int, repeat: bool = False, segments: bool = False
) -> tuple[Aval, ...]:
    _require("loop: number of iterations", (trip,), (_INDEX,))
    _require("loop: inputs of the body", body.in_avals, (_INDEX, *operands))
    _require("loop: carried", body.out_avals, operands[:carried])
    return operands[:carried]


def _evaluate_loop(
    trip: Any, *operands: Any, body: Graph, carried: int, repeat: bool = False, segments: bool = False
) -> tuple[Any, ...]:
    state, captured = list(operands[:carried]), operands[carried:]
    for index in range(int(trip)):
        state = iterate(body, [np.int64(index), *state, *captured], index, body.inputs[0])
    return tuple(state)


def _while_aval(
    *operands: Aval, test: Graph, body: Graph, carried: int, repeat: bool = False, segments: bool = False
) -> tuple[Aval, ...]:
    _require("while: inputs of the test", test.in_avals, operands)
    _require("while: the test", test.out_avals, (_TRUTH,))
    _require("while: inputs of the body", body.in_avals, operands)
    _require("while: carried", body.out_avals, operands[:carried])
    return operands[:carried]


def _evaluate_while(
    *operands: Any, test: Graph, body: Graph, carried: int, repeat: bool = False, segments: bool = False
) -> tuple[Any, ...]:
    state, captured = list(operands[:carried]), operands[carried:]
    number = 0
    while interpret_outputs(test, [*state, *captured])[0]:
        state = iterate(body, [*state, *captured], number)
        number += 1
    return tuple(state)


def _cond_aval(which: Aval, *captured: Aval, then: Graph, orelse: Graph) -> tuple[Aval, ...]:
    _require("cond: the condition", (which,), (_TRUTH,))
    _require("cond: inputs", then.in_avals, captured)
    _require("cond: inputs", orelse.in_avals, captured)
    _require("cond: results of the branches", orelse.out_avals, then.out_avals)
    return then.out_avals


def _evaluate_cond(which: Any, *captured: Any, then: Graph, orelse: Graph) -> tuple[Any, ...]:
    return tuple(interpret_outputs(then if which else orelse, captured))


loop = Op("loop", "regions", _loop_aval, _evaluate_loop, has_bodies=True)
while_ = Op("while_", "regions", _while_aval, _evaluate_while, has_bodies=True)
cond = Op("cond", "regions", _cond_aval, _evaluate_cond, has_bodies=True)


def _bind_aval(n: Aval, *, sym: Sym) -> tuple[Aval, ...]:
    _require(f"bind {sym}", (n,), (_INDEX,))
    return ()


# Whoever runs a graph node by node (`ir.interpret`, lowering) takes note of the size. Dead once nothing mentions the sym.
bind = Op("bind", "regions", _bind_aval, lambda n, *, sym: ())


_SPECIAL = (BeyondLimit, DerivativeError, MoreIterations, OtherSizes, RaisingBranch, RowsDiffer, UnsupportedError, WrongPath)
_OWN: dict[str, type[Exception]] = {kind.__name__: kind for kind in _SPECIAL}


def exception_named(name: str) -> type[Exception]:
    """A built-in exception, one of NumPy's (LinAlgError), or what says that a program answers other calls than this one."""
    if name in _OWN:
        return _OWN[name]
    found: type[Exception] | None = getattr(builtins, name, None) or getattr(np.linalg, name, None)
    if found is None:
        raise UnsupportedError(f"no exception is named {name}")
    return found


@cache
def failed_check(name: str) -> Any:
    """A failed check that is also the exception of that name, so that `except IndexError` works as in NumPy."""
    kind = exception_named(name)
    if issubclass(kind, FailedCheck):
        return kind
    return type(kind.__name__, (FailedCheck, kind), {"__module__": "jitml.errors"})


def _check_aval(x: Aval, ok: Aval, *values: Aval, error: str, message: str) -> Aval:
    _require("check: the claim", (ok,), (_TRUTH,))
    if any(v != _INDEX for v in values):
        raise DTypeError(f"check: the message's values must be i64[], not {values}")
    exception_named(error)
    return x


def _evaluate_check(x: Any, ok: Any, *values: Any, error: str, message: str) -> Any:
    if not ok and not issubclass(exception_named(error), Warning):  # x is right, but whoever runs the program wants to know
        raise exception_named(error)(message.format(*map(int, values)))
    return x


# x, but only if `ok`: what relies on the claim reads the result, and so comes after it. `error` names an exception. A claim
# that always holds, of a DerivativeError, is one that x has no tangent: whoever differentiates raises, and others drop it.
check = Op("check", "regions", _check_aval, _evaluate_check, has_effect=True)


def _observe_aval(x: Aval) -> tuple[Aval, ...]:
    return ()


# For floating-point errors, which NumPy reports of what it computes in vain, too.
observe = Op("observe", "regions", _observe_aval, lambda x: (), has_effect=True)
