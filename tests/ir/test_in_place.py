"""What NumPy may write to while it runs a graph."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.ir import ops
from jitml.ir.execute.in_place import _Analysis, carried_in_place, in_place
from jitml.ir.execute.to_python import straight
from jitml.ir.graph import Graph, Value
from jitml.ir.interpret import interpret
from jitml.ir.text.parser import parse
from jitml.ir.types import F64, Aval
from support import regions


def updates(text: str, owned: frozenset[int] = frozenset()) -> int:
    return len(in_place(parse(text), owned).updates)


HEAD = "graph(a: f64[4], b: f64[2]) { "
WRITE = "d: f64[4] = update_slice c b {start=(0,), step=(1,)}"


def test_a_callers_array_is_copied_and_the_copy_written_to() -> None:
    first = HEAD + "c: f64[4] = update_slice a b {start=(2,), step=(1,)}"
    once, twice = f"{first}; return c }}", f"{first}; {WRITE}; return d }}"
    assert updates(once) == 0 and updates(once, frozenset([0])) == 1 and updates(twice) == 1


@pytest.mark.parametrize(
    "rest",
    [
        f"{WRITE}; return c d",
        f"e: f64[2] = slice c {{start=(0,), step=(1,), stop=(2,)}}; {WRITE}; return d e",
        f"e: f64[2,2] = reshape c {{shape=(2, 2)}}; {WRITE}; f: f64[2,2] = exp e; return d f",
    ],
    ids=["read later", "a view is returned", "a view is read later"],
)
def test_what_is_still_needed_is_not_written_to(rest: str) -> None:
    assert updates(HEAD + "c: f64[4] = exp a; " + rest + " }") == 0


@pytest.mark.parametrize("size", ["n", 2])
def test_a_window_of_what_is_written_to_is_copied(size: str | int) -> None:
    """A window of unknown size, or of a large array, as of a stack: the array is not copied for its sake."""
    rest = (
        "g: i64[] = full {dtype=i64, shape=(), value=2}; bind g {sym=n[0:100]}; h: i64[] = full {dtype=i64, shape=(), value=0};"
    )
    rest += f"c: f64[4,100] = exp a; e: f64[{size},100] = dynamic_slice c h h {{sizes=({size}, 100), step=(1, 1)}};"
    rest += f"d: f64[4,100] = update_slice c b {{start=(0, 0), step=(1, 1)}}; f: f64[{size},100] = exp e; return d f"
    graph = parse("graph(a: f64[4,100], b: f64[2,100]) { " + rest + " }")
    assert len(in_place(graph).updates) == 1
    x, y = np.ones((4, 100)), np.zeros((2, 100))
    for found, expected in zip(straight(graph)(x, y), interpret(graph, (x, y)), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("op, dtype", [("bits", "i64"), ("stop_gradient", "f64")])
def test_what_reads_the_same_memory_otherwise_makes_none(op: str, dtype: str) -> None:
    rest = f"c: {dtype}[4] = {op} a; d: {dtype}[2] = slice c {{start=(0,), step=(1,), stop=(2,)}};"
    rest += f"e: {dtype}[4] = update_slice c d {{start=(2,), step=(1,)}}; return c e }}"
    found = in_place(parse(HEAD + rest))
    assert not found.updates and found.owned == [False, True]


def test_a_loop_writes_into_what_it_carries() -> None:
    graph = parse(
        """
        graph(a: f64[9], b: i64[]) {
          c: f64[9] = loop b a {carried=1} body(a: i64[], b: f64[9]) {
            c: f64[1] = dynamic_slice b a {sizes=(1,), step=(1,)}
            d: f64[1] = exp c
            e: f64[9] = dynamic_update_slice b d a {step=(1,)}
            return e
          }
          return c
        }
        """
    )
    (node,) = graph.nodes
    assert carried_in_place(node) == {0}
    assert in_place(graph).moved[node] == frozenset() and in_place(graph, frozenset([0])).moved[node] == {0}
    x = np.zeros(9)
    (result,) = straight(graph)(x, np.int64(9))
    assert (x == 0).all() and (result == 1).all()


@pytest.mark.parametrize("results, written", [("e e", frozenset()), ("c e", {0, 1})], ids=["one in two places", "two that swap"])
def test_what_is_written_to_is_written_to_wherever_it_goes(results: str, written: frozenset[int]) -> None:
    graph = parse(
        f"""
        graph(a: f64[4], b: f64[4], c: i64[], d: f64[1]) {{
          e: f64[4], f: f64[4] = loop c a b d {{carried=2}} body(a: i64[], b: f64[4], c: f64[4], d: f64[1]) {{
            e: f64[4] = dynamic_update_slice b d a {{step=(1,)}}
            return {results}
          }}
          return e f
        }}
        """
    )
    assert carried_in_place(graph.nodes[0]) == written
    given = np.zeros(4), np.ones(4), np.int64(4), np.full(1, 9.0)
    expected = interpret(graph, [np.array(x) for x in given])
    np.testing.assert_array_equal(straight(graph)(*given), expected)
    np.testing.assert_array_equal(given[:2], [[0] * 4, [1] * 4])


def drawn(seed: int) -> Graph:
    """Arrays that loops and branches write to, view, and hand on in any order."""
    rng = random.Random(seed)

    def place(i: Value | None) -> Any:
        return rng.randrange(4) if i is None or rng.random() < 0.4 else i

    def statements(arrays: list[Value], i: Value | None, depth: int) -> None:
        for _ in range(rng.randrange(1, 9 if depth == 0 else 6)):
            statement(arrays, i, depth)

    def statement(arrays: list[Value], i: Value | None, depth: int) -> None:
        x, y = rng.choices(arrays, k=2)
        kinds = ("add", "put", "put", "put", "shift", "view", "spread", *(("loop", "branch") if depth < 3 else ()))
        match rng.choice(kinds):
            case "add":
                arrays.append(ops.add(x, y))
            case "put":
                arrays.append(regions.put(x, regions.get(y, place(i)), place(i)))
                if len(arrays) > 2 and rng.random() < 0.6:
                    arrays.remove(x)
            case "shift":
                part = ops.slice(y, start=(0,), stop=(2,), step=(1,))
                if rng.random() < 0.5:
                    part = ops.add(ops.slice(x, start=(1,), stop=(3,), step=(1,)), part)
                arrays.append(ops.update_slice(x, part, start=(1,), step=(1,)))
            case "view":
                arrays.append(ops.reshape(ops.transpose(ops.reshape(x, shape=(2, 2)), perm=(1, 0)), shape=(4,)))
            case "spread":
                arrays.append(regions.spread(regions.get(x, place(i)), 4))
            case "loop":
                carried = rng.choices(arrays, k=rng.randrange(1, 4))
                found = regions.for_(rng.randrange(5), carried, lambda k, *given: inside([*given], k, arrays, depth))
                arrays += [found] if isinstance(found, Value) else found
            case "branch":
                which = ops.lt(regions.get(x, place(i)), regions.get(y, place(i)))
                sides = [lambda: inside([x, y], i, arrays, depth)] * 2
                arrays += regions.if_(which, *sides)

    def inside(given: list[Value], i: Value | None, arrays: list[Value], depth: int) -> list[Value]:
        own = [*given, *(x for x in arrays if rng.random() < 0.3)]
        statements(own, i, depth + 1)
        return [rng.choice(own) for _ in given]

    def program(a: Value, b: Value) -> list[Value]:
        arrays = [a, b]
        statements(arrays, None, 0)
        return rng.choices(arrays, k=3)

    return regions.graph_of(program, *[Aval((4,), F64)] * 2)


def test_drawn_loops_write_to_nothing_that_somebody_reads() -> None:
    for seed in range(200):
        graph, given = drawn(seed), np.random.default_rng(seed).normal(size=(2, 4))
        expected = [np.array(x) for x in interpret(graph, list(given.copy()))]
        for owned in (frozenset[int](), frozenset([0]), frozenset([0, 1])):
            mine = given.copy()
            np.testing.assert_array_equal(straight(graph, owned)(*mine), expected, f"{seed} {owned}")
            assert owned or (mine == given).all(), seed


def in_a_branch(x: Any) -> Any:
    for i in range(1, 2000):
        if x[i] > 0:
            x[i] = x[i - 1] * x[i]
    return x.sum()


def beside_an_open_size(x: Any) -> Any:
    kept = x[:50][x[:50] > 0]
    for i in range(1, 2000):
        x[i] = x[i - 1] * kept[i % 50]
    return x.sum()


def at_open_places(x: Any) -> Any:
    places = np.flatnonzero(x[:50] > 0)
    for _ in range(300):
        np.add.at(x, places, x[places])
    return x.sum()


@pytest.mark.parametrize("run", [in_a_branch, beside_an_open_size, at_open_places])
def test_an_eager_loop_costs_what_it_writes(run: Any) -> None:
    def seconds(n: int) -> float:
        x = np.ones(n)
        jitml.jvp(run, (x,), (x,))
        start = time.perf_counter()
        jitml.jvp(run, (x,), (x,))
        jitml.grad(run)(x)
        return time.perf_counter() - start

    assert seconds(1 << 20) < 6 * seconds(1 << 11)  # copies would take 100 times as long


def nest(depth: int) -> str:
    """A loop around a loop around ..., of which each exchanges two arrays."""
    inside = nest(depth - 1) if depth else "c: f64[4] = exp a; d: f64[4] = exp b"
    body = f"body(n: i64[], a: f64[4], b: f64[4], m: i64[]) {{ {inside}; return d c }}"
    return f"c: f64[4], d: f64[4] = loop m a b m {{carried=2}} {body}"


def test_a_nest_costs_as_much_for_each_level(monkeypatch: pytest.MonkeyPatch) -> None:
    def analysed(depth: int) -> int:
        graphs: list[Graph] = []
        run = _Analysis.run
        with monkeypatch.context() as patch:
            patch.setattr(_Analysis, "run", lambda self: graphs.append(self.graph) or run(self))
            in_place(parse(f"graph(m: i64[], a: f64[4], b: f64[4]) {{ {nest(depth)}; return c d }}"))
        return len(graphs)

    assert analysed(8) - analysed(6) == analysed(6) - analysed(4)


def test_results_that_may_be_any_operand_lie_in_one_memory() -> None:
    inputs, outputs = "a: f64[4], b: f64[4], c: f64[4]", "d: f64[4], e: f64[4], f: f64[4]"
    side = f"({inputs}) {{ return b c a }}"
    graph = parse(f"graph(p: bool[], {inputs}) {{ {outputs} = cond p a b c then{side} orelse{side}; return d e f }}")
    analysis = _Analysis(graph, frozenset())
    assert analysis.run().owned == [False] * 3
    # One set, and not one for each: a thousand truths that a branch hands on took minutes.
    assert len({id(analysis.memory[v]) for v in graph.outputs}) == 1
