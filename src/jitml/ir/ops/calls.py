"""Calls: nodes that hold the graph of what they compute, so that a transform to come finds it whole.

They stand where a user has said how a function is to be differentiated, or what of it is to be kept. Once no transform is to
come they are inlined (`ir/passes/inline.py`); no layer below has heard of them, but for `fused`. Graphs are closed: their inputs
are the operands, then what is named here.

    custom_jvp  (*operands)  call(*operands) -> *results; rule(*operands, *tangents of `varying`) -> *results, *their tangents
    custom_vjp  (*operands)  call; forward(*operands) -> *results, *residuals;
                             backward(*residuals, *cotangents) -> *cotangents of `varying`
    pull_back   (*residuals, *tangents)   the linear map whose transpose is `backward`
    checkpoint  (*operands)  call; `policy` says what of it derivatives may keep
    again       (*operands, *tangents)    linear(*operands, *tangents) -> *tangents; `known` operands are no tangents
    keep        (x)          x, by the name that a policy knows
    barrier     (x)          x, but what is computed of it is not what has been computed of x before
    fused       (*operands)  call, of which nothing but the results is to lie in memory (`fusion/prepare/fused_products.py`);
                             of chained products, with the extents of the `tiles` that it is done by (`chained_products.py`)

Only floats have tangents; results that are none are left out of them.
"""

from __future__ import annotations

from typing import Any

from jitml.errors import ShapeError
from jitml.ir.graph import Graph
from jitml.ir.interpret import interpret_outputs
from jitml.ir.op import Op
from jitml.ir.types import Aval

Ints = tuple[int, ...]


def floats(avals: tuple[Aval, ...]) -> tuple[Aval, ...]:
    """Those that have tangents."""
    return tuple(aval for aval in avals if aval.dtype.kind in "fc")


def _require(what: str, got: tuple[Aval, ...], wanted: tuple[Aval, ...]) -> None:
    if got != wanted:
        raise ShapeError(f"{what}: {got} where {wanted} is wanted")


def _evaluate_call(*operands: Any, call: Graph, **params: Any) -> tuple[Any, ...]:
    return tuple(interpret_outputs(call, operands))


def _custom_jvp_aval(*operands: Aval, call: Graph, rule: Graph, varying: Ints, name: str) -> tuple[Aval, ...]:
    _require("custom_jvp: operands", operands, call.in_avals)
    _require("custom_jvp: inputs of the rule", rule.in_avals, (*operands, *(operands[n] for n in varying)))
    _require("custom_jvp: results of the rule", rule.out_avals, (*call.out_avals, *floats(call.out_avals)))
    return call.out_avals


def _custom_vjp_aval(*operands: Aval, call: Graph, forward: Graph, backward: Graph, varying: Ints, name: str) -> tuple[Aval, ...]:
    _require("custom_vjp: operands", operands, call.in_avals)
    _require("custom_vjp: inputs of forward", forward.in_avals, operands)
    count = len(call.outputs)
    _require("custom_vjp: results of forward", forward.out_avals[:count], call.out_avals)
    residuals = forward.out_avals[count:]
    _require("custom_vjp: inputs of backward", backward.in_avals, (*residuals, *floats(call.out_avals)))
    _require("custom_vjp: results of backward", backward.out_avals, tuple(operands[n] for n in varying))
    return call.out_avals


def _pull_back_aval(*operands: Aval, backward: Graph, residuals: int, name: str) -> tuple[Aval, ...]:
    _require("pull_back: residuals", operands[:residuals], backward.in_avals[:residuals])
    _require("pull_back: tangents", operands[residuals:], backward.out_avals)
    return backward.in_avals[residuals:]


def _evaluate_pull_back(*operands: Any, backward: Graph, residuals: int, name: str) -> tuple[Any, ...]:
    raise AssertionError("a pull_back is transposed, or expanded, before a graph leaves autograd")


def _checkpoint_aval(*operands: Aval, call: Graph, policy: Any) -> tuple[Aval, ...]:
    _require("checkpoint: operands", operands, call.in_avals)
    return call.out_avals


def _fused_aval(*operands: Aval, call: Graph, tiles: Ints = ()) -> tuple[Aval, ...]:
    _require("fused: operands", operands, call.in_avals)
    return call.out_avals


def _again_aval(*operands: Aval, linear: Graph, known: int) -> tuple[Aval, ...]:
    _require("again: operands", operands, linear.in_avals)
    return linear.out_avals


custom_jvp = Op("custom_jvp", "calls", _custom_jvp_aval, _evaluate_call)
custom_vjp = Op("custom_vjp", "calls", _custom_vjp_aval, _evaluate_call)
pull_back = Op("pull_back", "calls", _pull_back_aval, _evaluate_pull_back)
checkpoint = Op("checkpoint", "calls", _checkpoint_aval, _evaluate_call)
again = Op("again", "calls", _again_aval, lambda *operands, linear, known: tuple(interpret_outputs(linear, operands)))
keep = Op("keep", "calls", lambda x, *, name: x, lambda x, *, name: x)
barrier = Op("barrier", "calls", lambda x: x, lambda x: x)
fused = Op("fused", "calls", _fused_aval, _evaluate_call)
