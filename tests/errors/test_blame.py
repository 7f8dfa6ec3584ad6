"""Every refusal of other tests' tables leads to a statement of the function that is traced, by its stack or by a name."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from tests.errors.test_messages import OURS
from tests.numpy.test_host_calls import REFUSED as HOST_CALLS
from tests.trace.environment.test_live_views import REFUSED as LIVE
from tests.trace.environment.test_understood import REFUSED as UNDERSTOOD
from tests.trace.host_calls.test_callbacks import PROGRAMS as CALLBACKS
from tests.trace.host_calls.test_made_objects import PROGRAMS as MADE
from tests.trace.host_calls.test_made_objects import X as POINTS

import jitml
from jitml.errors import Cause, JitmlError
from jitml.trace.rewrite.source import Found, find

Case = tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]


def _some() -> tuple[Any, ...]:
    return (np.arange(1.0, 6.0),)


CASES: dict[str, Case] = {
    **{f"ours: {what}": (f, lambda args=args: args) for what, f, args, *_ in OURS},
    **{f"host calls: {what}": (f, lambda args=args: args) for what, (f, args, _) in HOST_CALLS.items()},
    **{f"live: {what}": (f, _some) for what, f in LIVE.items()},
    **{f"understood: {what}": (f, lambda make=make: (make(), np.ones(3))) for what, (f, make, _) in UNDERSTOOD.items()},
    **{f"callbacks: {f.__name__}": (f, _some) for f in CALLBACKS},
    **{f"made: {f.__name__}": (f, lambda: (POINTS,)) for f in MADE},
}
# What is traced is a transform of jitml's, and no function with statements.
CASES = {what: case for what, case in CASES.items() if type(case[0]) is FunctionType}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_refusal_leads_to_a_statement(case: Case) -> None:
    function, make = case
    with pytest.raises(JitmlError) as caught:
        jitml.jit(function)(*make())
    refused = caught.value
    found = find(function)
    assert isinstance(found, Found)
    # No statement need read a parameter that cannot be taken in.
    is_unread = refused.argument in function.__code__.co_varnames and not refused.stack
    assert is_unread or _statement(refused, function, found.node) is not None, (refused.stack, refused.argument, refused.result)
    assert refused.cause is not Cause.OTHER


def _statement(refused: JitmlError, function: FunctionType, node: Any) -> ast.AST | None:
    """The innermost statement of the function that a refusal is about; of a lambda, which has none, its value."""
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    nodes = [x for top in body for x in ast.walk(top) if isinstance(x, ast.stmt) or x is node.body]
    code = function.__code__
    for frame in refused.stack:
        if (frame.file, frame.function, frame.first_line) == (code.co_filename, code.co_qualname, code.co_firstlineno):
            there = [x for x in nodes if x.lineno <= frame.line <= (x.end_lineno or x.lineno)]
            return max(there, key=lambda x: x.lineno, default=None)
    names = [(x, y) for x in nodes for y in ast.walk(x) if isinstance(y, ast.Name)]
    reads = (x for x, y in names if y.id == refused.argument and isinstance(y.ctx, ast.Load))
    return next(reads, None)
