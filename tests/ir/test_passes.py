"""Passes: the rules of `simplify` keep every bit, and what a pass costs or remembers. See tests/golden for what each makes."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

import numpy as np
import pytest

from jitml.errors import JitmlError
from jitml.ir import ops
from jitml.ir.analysis.verify import verify
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.interpret import interpret
from jitml.ir.passes import PASSES, run_passes
from jitml.ir.passes.bodies import everywhere
from jitml.ir.passes.cse import share_common
from jitml.ir.passes.observe import observe_errors
from jitml.ir.passes.simplify import RULES, simplify
from jitml.ir.passes.trim import trim_heard_regions, trim_regions
from jitml.ir.printer import show
from jitml.ir.rewrite import Producers, sweep
from jitml.ir.text.parser import parse


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_rule_keeps_every_bit(rule) -> None:
    """Both sides of each rule on special values, in each kind of dtype that it claims."""
    specials = [0.0, -0.0, 1.0, -1.0, 3.5, np.inf, -np.inf, np.nan, 1e-310, 2.0]
    names = sorted(set(re.findall(r"\b([a-z])\b", rule.left)))
    for kind in rule.kinds:
        dtype = {"f": "f64", "i": "i64", "u": "u8", "b": "bool"}[kind]
        dtype = f"{kind}{8 * rule.itemsize}" if rule.itemsize else dtype
        head = ", ".join(f"{n}: {'bool' if n == 'c' else dtype}[1000]" for n in names)
        graph = left_side(rule.left, head, dtype)
        if graph is None:
            continue  # the left side is not defined for this dtype
        column = np.array(specials if kind == "f" else [0, 1, -1, 5, 7, 100, -100, 2, 3, 9])
        rng = np.random.default_rng(0)
        args = [rng.choice(column, 1000).astype(a.dtype) for a in graph.in_avals]
        (before,), (after,) = interpret(graph, args), interpret(run_passes(graph, (simplify,)), args)
        assert show(simplify(graph)) != show(graph), "the rule did not fire"
        np.testing.assert_array_equal(before, after)
        if kind == "f":
            keep = ~np.isnan(before)
            np.testing.assert_array_equal(np.signbit(before[keep]), np.signbit(after[keep]))


def left_side(text: str, head: str, dtype: str) -> Graph | None:
    """The left side of a rule as a graph over arrays of 100, or None where an op refuses the dtype."""
    lines: list[str] = []

    def emit(node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return node.id
        name = f"v{len(lines)}"
        if isinstance(node, ast.Call):
            args = [emit(a) for a in node.args]
            name = f"v{len(lines)}"
            kind = "bool" if node.func.id == "bit_not" and args == ["c"] else dtype
            lines.append(f"{name}: {kind}[1000] = {node.func.id} {' '.join(args)}")
        else:
            lines.append(f"{name}: {dtype}[1000] = full {{value={ast.unparse(node)}, shape=(1000,), dtype={dtype}}}")
        return name

    out = emit(ast.parse(text, mode="eval").body)
    graph = parse(f"graph({head}) {{\n" + "\n".join(lines) + f"\nreturn {out} }}")
    try:
        return verify(graph)
    except JitmlError:
        return None


def test_sharing_keeps_the_nodes_that_it_does_not_share() -> None:
    """What is recorded anew costs the passes behind it as much as a new graph."""
    graph = parse("graph(a: f64[4]) { b: f64[4] = exp a; c: f64[4] = exp a; d: f64[4] = sin b; e: f64[4] = mul c d; return e }")
    shared = share_common(graph)
    assert shared.nodes[:2] == (graph.nodes[0], graph.nodes[2])
    assert len(shared.nodes) == 3


def test_sizes_that_are_one_value_have_one_name() -> None:
    """But not where they lie between other limits."""
    text = """
        graph(k: i64[]) {{
          bind k {{sym=n[0:9]}}
          a: f64[n] = full {{dtype=f64, shape=(n,), value=0.5}}
          bind k {{sym={other}}}
          b: f64[m] = full {{dtype=f64, shape=(m,), value=0.5}}
          c: f64[m] = sin b
          d: f64[n] = cos a
          return c d
        }}
        """
    shared = share_common(parse(text.format(other="m[0:9]")))
    assert [node.op.name for node in shared.nodes] == ["bind", "full", "sin", "cos"]
    assert shared.outputs[0].shape == shared.outputs[1].shape
    for k in range(10):
        got = interpret(shared, (np.array(k),))
        np.testing.assert_array_equal(got[0], np.sin(np.full(k, 0.5)))
        np.testing.assert_array_equal(got[1], np.cos(np.full(k, 0.5)))
    assert len(share_common(parse(text.format(other="m[0:8]"))).nodes) == 6


def test_what_a_pass_has_nothing_to_do_with_is_the_same_graph() -> None:
    """Then nobody needs to verify it. What looks at each region writes it anew."""
    graph = parse(
        """
        graph(a: i64[], b: f64[4]) {
          c: f64[4] = loop a b {carried=1} body(i: i64[], b: f64[4]) { d: f64[4] = exp b; return d }
          e: f64[4] = sin c
          return e
        }
        """
    )
    for apply in PASSES:
        if apply not in (observe_errors, trim_regions, trim_heard_regions):
            assert everywhere(apply)(graph) is graph, apply.__name__


def test_a_node_without_results_may_give_way_to_another() -> None:
    """The graph has as many nodes as before, of which none is replaced: it is another one all the same."""
    graph = parse("graph(a: f64[4], b: f64[4]) { observe a; c: f64[4] = exp b; return c }")

    def visit(node: Node, producers: Producers) -> tuple[Value, ...] | None:
        if node.op is not ops.observe:
            return None
        ops.observe(graph.inputs[1])
        return ()

    after = sweep(graph, visit)
    assert [node.inputs for node in after.nodes] == [(graph.inputs[1],)] * 2


def test_a_while_is_trimmed_for_its_own_test() -> None:
    """Another pass may have changed the test alone."""

    def until(value: str, limit: int) -> Graph:
        return parse(
            f"""
            graph(a: i64[], b: i64[], c: i64[]) {{
              d: i64[], e: i64[], f: i64[] = while_ a b c {{carried=3}} test(a: i64[], b: i64[], c: i64[]) {{
                d: i64[] = full {{dtype=i64, shape=(), value={limit}}}
                e: bool[] = lt {value} d
                return e
              }} body(a: i64[], b: i64[], c: i64[]) {{
                one: i64[] = full {{dtype=i64, shape=(), value=1}}
                d: i64[] = add a one
                e: i64[] = add b d
                f: i64[] = add c one
                return d e f
              }}
              return d
            }}
            """
        )

    first, second = until("a", 5), until("c", 9)
    (node,), (other,) = first.nodes, second.nodes
    changed = replace(first, nodes=(replace(node, params={**node.params, "test": other.params["test"]}),))
    for graph, end in ((first, 5), (changed, 9)):
        assert interpret(trim_regions(graph), [np.int64(0)] * 3) == [end]
