"""Regions of plain loops as one kernel: the kernel's interpreter and its machine code against the graph's interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jitml.codegen.interpreter import run
from jitml.codegen.llvm.runtime.compiler import compile_program
from jitml.fusion.fuse import DEFAULT
from jitml.fusion.scalar_loops import NotRolled
from jitml.fusion.scalar_loops.drop_unused import without_unused
from jitml.ir import ops
from jitml.ir.analysis.verify import verify
from jitml.ir.dims import Sym, as_size
from jitml.ir.graph import Graph, Value
from jitml.ir.interpret import interpret
from jitml.ir.types import F64, Aval
from jitml.kernels.ir import Const, If, Kernel, Let, Loop, Stmt, Store, Var, walk
from jitml.kernels.target import Cost, Target
from jitml.kernels.text.printer import show
from jitml.kernels.verify.program import verify_program
from jitml.memory.plan import plan
from support.fused import fuse
from support.regions import for_, get, graph_of, if_, number, put, put_window, rolled_program, size, spread, while_, window

RNG = np.random.default_rng(0)


def check(function: Callable[..., Any], *args: Any, target: Target = DEFAULT) -> Kernel:
    """The kernel, after all three have given one answer."""
    arrays = [np.asarray(a) for a in args]
    graph = verify(graph_of(function, *(Aval(a.shape, a.dtype) for a in arrays)))
    program = verify_program(rolled_program(graph, target))
    expected = interpret(graph, arrays)
    planned = plan(program)
    for got in (run(planned, [a.copy() for a in arrays]), compile_program(planned)(*[a.copy() for a in arrays])):
        for x, y in zip(got, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)
    (kernel,) = program.steps
    assert isinstance(kernel, Kernel)
    return kernel


def kinds(kernel: Kernel) -> list[str]:
    return [s.kind for s in walk(kernel.body) if isinstance(s, Loop)]


def test_a_product_reads_costly_elements_that_are_computed_once() -> None:
    def descend(t: Value, w: Value, x: Value) -> Value:
        p = ops.exp(ops.dot_general(x, w, batch=((), ()), contract=((1,), (0,))))
        return w - ops.dot_general(p, x, batch=((), ()), contract=((0,), (0,)))

    kernel = check(lambda w, x: for_(2, [w], lambda t, w: descend(t, w, x)), RNG.random(3), RNG.random((20, 3)) - 1)
    lines = show(kernel).splitlines()
    (line,) = [n for n, text in enumerate(lines) if "exp(" in text]
    assert lines[line - 1].endswith("vector {")


def test_gauss_seidel() -> None:
    def point(i: Value, j: Value, a: Value) -> Value:
        around = [get(a, i + k, j + m) for k in (0, 1, 2) for m in (0, 1, 2)]
        return put(a, sum(around[1:], around[0]) / 9.0, i + 1, j + 1)

    def sweep(t: Value, a: Value) -> Any:
        return for_(5, [a], lambda i, a: for_(6, [a], lambda j, a: point(i, j, a)))

    kernel = check(lambda a: for_(3, [a], sweep), RNG.random((7, 8)))
    assert kinds(kernel) == ["serial"] * 3
    assert kernel.updates == {"c": "a"}


def test_shortest_paths_by_elements_branches_on_the_element() -> None:
    def point(k: Value, i: Value, j: Value, d: Value) -> Any:
        new = get(d, i, k) + get(d, k, j)
        return if_(ops.lt(new, get(d, i, j)), lambda: put(d, new, i, j), lambda: d)

    def paths(d: Value) -> Any:
        return for_(6, [d], lambda k, d: for_(6, [d], lambda i, d: for_(6, [d], lambda j, d: point(k, i, j, d))))

    assert "if " in show(check(paths, RNG.random((6, 6))))


def test_shortest_paths_by_rows_are_vectors_in_place() -> None:
    def row(k: Value, i: Value, d: Value) -> Value:
        through = spread(get(d, i, k), 9) + window(d, (k, 1), (0, 9))
        return put_window(d, ops.minimum(window(d, (i, 1), (0, 9)), through), (i, 1), (0, 9))

    kernel = check(lambda d: for_(9, [d], lambda k, d: for_(9, [d], lambda i, d: row(k, i, d))), RNG.random((9, 9)))
    assert kinds(kernel) == ["serial", "serial", "vector"]
    assert "alloc" not in show(kernel)


def test_lu_sums_over_windows_of_rows_and_columns() -> None:
    n = 9

    def dot(a: Value, i: Value, j: Value, m: Any) -> Value:
        row, column = window(a, (i, 1), (0, m)), window(a, (0, m), (j, 1))
        return ops.dot_general(row, column, batch=((), ()), contract=((0,), (0,)))

    def left(i: Value, j: Value, a: Value) -> Value:
        return put(a, (get(a, i, j) - dot(a, i, j, size(j, 0, n - 1))) / get(a, j, j), i, j)

    def right(i: Value, k: Value, a: Value) -> Value:
        return put(a, get(a, i, i + k) - dot(a, i, i + k, size(i, 0, n - 1)), i, i + k)

    def row(i: Value, a: Value) -> Any:
        a = for_(i, [a], lambda j, a: left(i, j, a))
        return for_(n - i, [a], lambda k, a: right(i, k, a))

    x = RNG.normal(size=(n, n))
    check(lambda a: for_(n, [a], row), x @ x.T + n * np.eye(n))


def test_triangular_rows_end_where_their_size_says() -> None:
    def step(i: Value, k: Value, c: Value, a: Value) -> Value:
        m = size(i + 1, 1, 9)
        more = spread(get(a, i, k) * 1.5, m) * window(a, (0, m), (k, 1))
        return put_window(c, window(c, (i, 1), (0, m)) + more, (i, 1), (0, m))

    def syrk(c: Value, a: Value) -> Any:
        return for_(9, [c], lambda i, c: for_(4, [c], lambda k, c: step(i, k, c, a)))

    check(syrk, RNG.random((9, 9)), RNG.random((9, 4)))


def test_a_size_that_is_an_input_may_be_used_before_the_node_that_says_so() -> None:
    def inner(i: Value, j: Value, c: Value, a: Value) -> Value:
        sym = Sym("m", 0, 8)
        m = as_size(sym)
        c = put_window(c, window(a, (j, 1), (0, m)), (i, 1), (0, m))
        ops.bind(i, sym=sym)
        return c

    check(
        lambda c, a: for_(9, [c], lambda i, c: for_(3, [c], lambda j, c: inner(i, j, c, a))),
        RNG.random((9, 9)),
        RNG.random((3, 9)),
    )


def test_while_and_values_that_change_places() -> None:
    def one(i: Value, x: Value, y: Value) -> Value:
        a, _ = while_([get(x, i), number(12)], lambda a, b: ops.ne(b, 0), lambda a, b: (b, ops.remainder(a, b)))
        return put(y, a, i)

    check(lambda x, y: for_(9, [y], lambda i, y: one(i, x, y)), RNG.integers(0, 90, 9), np.zeros(9, np.int64))
    check(lambda y: for_(9, [number(0), number(1), y], lambda i, a, b, y: (b, a + b, put(y, a, i))), np.zeros(9, np.int64))


def test_an_overlapping_window_is_computed_before_it_is_stored() -> None:
    def shift(t: Value, a: Value) -> Value:
        return put_window(a, window(a, (0, 8)) * 2.0, (1, 8))

    assert "alloc" in show(check(lambda a: for_(3, [a], shift), RNG.random(9)))


def test_what_was_read_before_an_update_stays_as_it_was() -> None:
    def step(i: Value, a: Value, s: Value) -> Any:
        head = window(a, (0, 4)) * 2.0
        a = put(a, 7.5, i)
        total = ops.reduce_sum(head, axes=(0,))
        return put(a, total, 0), s + total

    check(lambda a, s: for_(5, [a, s], step), RNG.random(9), np.float64(1.0))


def test_rows_carried_and_swapped_need_scratch() -> None:
    def step(i: Value, p: Value, q: Value) -> Any:
        return q * 2.0, p + q

    check(lambda p, q: for_(4, [p, q], step), RNG.random(5), RNG.random(5))


def test_old_contents_that_the_update_itself_decides_about_are_kept() -> None:
    def step(i: Value, a: Value, s: Value) -> Any:
        new = put_window(a, window(a, (0, 4)) * 0.5, (1, 4))
        return new, s + ops.reduce_sum(ops.abs(new - a), axes=(0,))

    check(lambda a, s: for_(3, [a, s], step), RNG.random(6), np.float64(0))


@pytest.mark.parametrize("op", [ops.argmax, ops.argmin])
def test_positions_of_extremes(op: Any) -> None:
    def step(i: Value, a: Value, p: Value) -> Any:
        at = op(window(a, (0, 6)), axis=0)
        return put(a, 0.25, at), put(p, at, i)

    x = RNG.random(6)
    x[3] = np.nan
    check(lambda a, p: for_(6, [a, p], step), x, np.zeros(6, np.int64))


def test_branches_on_numbers_arrays_and_both() -> None:
    def step(i: Value, a: Value, n: Value) -> Any:
        x = get(a, i)
        a, n = if_(
            ops.lt(x, number(0.5, F64)),
            lambda: (put(put(a, x * 2.0, i), 0.25, 0), n + 1),
            lambda: (a, n),
        )
        row = if_(ops.lt(n, 3), lambda: window(a, (0, 3)), lambda: window(a, (2, 3)) * 3.0)
        return put(a, ops.reduce_max(row, axes=(0,)), 1), n

    check(lambda a, n: for_(8, [a, n], step), RNG.random(8), np.int64(0))


def test_an_outer_array_captured_and_changed_inside_keeps_its_contents() -> None:
    def step(i: Value, b: Value, a: Value) -> Value:
        changed = put(a, 9.0, i)
        return put(b, ops.reduce_sum(changed, axes=(0,)) + get(a, i), i)

    check(lambda b, a: for_(5, [b], lambda i, b: step(i, b, a)), np.zeros(5), RNG.random(5))


def test_gathered_and_scattered_elements_are_checked() -> None:
    def step(i: Value, h: Value, k: Value) -> Value:
        at = ops.gather(k, i, axis=0)
        return ops.scatter(h, ops.gather(h, at, axis=0) * 2.0 + 1.0, at, axis=0, combine="add")

    kernel = check(lambda h, k: for_(9, [h], lambda i, h: step(i, h, k)), RNG.random(4), RNG.integers(-4, 4, 9))
    assert "is out of bounds" in show(kernel)


def test_an_index_that_has_been_stored_anew_is_checked_again() -> None:
    def step(i: Value, k: Value, s: Value, x: Value) -> Any:
        s = s + ops.gather(x, get(k, 0), axis=0)
        k = put(k, 10 * i, 0)
        return k, s + ops.gather(x, get(k, 0), axis=0)

    def total(k: Value, s: Value, x: Value) -> Any:
        return for_(2, [k, s], lambda i, k, s: step(i, k, s, x))

    args = np.array([3]), np.float64(0), RNG.random(5)
    graph = graph_of(total, *(Aval(np.shape(a), np.asarray(a).dtype) for a in (np.zeros(2, np.int64), *args[1:])))
    with pytest.raises(IndexError, match="index 10 is out of bounds for axis 0 with size 5"):
        run(plan(verify_program(rolled_program(graph))), [np.array([3, 0]), *map(np.asarray, args[1:])])


def test_checks_that_follow_from_loops_and_branches_are_dropped() -> None:
    def sift(i: Value, x: Value) -> Value:
        """Insertion: while j >= 0 and x[j] > v"""
        v = get(x, i + 1)

        def test(j: Value, x: Value) -> Value:
            def beyond() -> Value:
                inside = ops.bit_and(ops.ge(j, 0), ops.lt(j, 9))
                return ops.gt(get(x, ops.check(j, inside, j, error="IndexError", message="{}")), v)

            first = ops.ge(j, 0)
            return if_(first, beyond, lambda: first)

        def move(j: Value, x: Value) -> Any:
            inside = ops.bit_and(ops.ge(j, 0), ops.lt(j + 1, 9))
            k = ops.check(j, inside, j, error="IndexError", message="{}")
            return k - 1, put(x, get(x, k), k + 1)

        j, x = while_([i, x], test, move)
        at = ops.check(j + 1, ops.bit_and(ops.ge(j + 1, 0), ops.lt(j + 1, 9)), error="IndexError", message="")
        return put(x, v, at)

    assert show(check(lambda x: for_(8, [x], sift), RNG.random(9))).count("check") == 1


def test_rows_exchanged_by_arrays_of_indices() -> None:
    def step(i: Value, a: Value, k: Value) -> Value:
        rows = window(k, (i, 2))
        swapped = ops.gather(a, ops.flip(rows, axes=(0,)), axis=0)
        return ops.scatter(a, swapped, rows, axis=0, combine="set")

    check(lambda a, k: for_(4, [a], lambda i, a: step(i, a, k)), RNG.random((4, 3)), RNG.integers(-4, 4, 5))


def test_literal_arrays_are_constants_of_the_program() -> None:
    def step(i: Value, s: Value, x: Value) -> Value:
        weights = ops.array(value=np.arange(3.0), shape=(3,), dtype=F64)
        return s + ops.reduce_sum(window(x, (i, 3)) * weights, axes=(0,))

    kernel = check(lambda s, x: for_(4, [s], lambda i, s: step(i, s, x)), np.float64(0), RNG.random(6))
    assert "literal0" in kernel.reads


def test_checks_that_hold_at_both_ends_stand_before_the_loop() -> None:
    def row(i: Value, y: Value, starts: Value, x: Value) -> Value:
        first, count = get(starts, i), get(starts, i + 1) - get(starts, i)

        def term(k: Value, s: Value) -> Value:
            at = first + k
            inside = ops.bit_and(ops.ge(at, 0), ops.lt(at, 9))
            at = ops.check(at, inside, at, error="IndexError", message="index {} is out of bounds")
            return s + get(x, at)

        return put(y, for_(count, [number(0.0, F64)], term), i)

    def rows(y: Value, starts: Value, x: Value) -> Any:
        return for_(4, [y], lambda i, y: row(i, y, starts, x))

    x = RNG.random(9)
    text = show(check(rows, np.zeros(4), np.array([0, 2, 2, 5, 9]), x))
    assert text.index("check") < text.index("for i1")
    graph = graph_of(rows, *(Aval(np.shape(a), np.asarray(a).dtype) for a in (x[:4], [0] * 5, x)))
    planned = plan(rolled_program(graph))
    for starts in ([0, 2, 2, 5, 10], [-1, 2, 3, 4, 5]):
        with pytest.raises(IndexError):
            run(planned, [np.zeros(4), np.array(starts), x])
    run(planned, [np.zeros(4), np.array([0, 2, 40, 5, 9])[[0, 1, 1, 3, 4]], x])
    run(planned, [np.zeros(4), np.array([0, 2, -7, 5, 9])[[0, 1, 1, 3, 4]], x])


def test_memory_that_operands_see_in_several_shapes_is_seen_flat() -> None:
    def rows(s: Value, x: Value) -> Any:
        y, z = ops.reshape(x, shape=(3, 4)), ops.reshape(x, shape=(12,))
        s = for_(3, [s], lambda i, s: s * get(y, i, i + 1) + get(z, i + 3) - get(x, i, 1))
        return s, for_(3, [x], lambda i, x: put(x, get(y, i + 0, 3) - get(z, i + 1) * get(x, i, 0), i + 1, 1))

    args = [np.array(0.5), RNG.random((6, 2))]
    graph = graph_of(rows, *(Aval(a.shape, a.dtype) for a in args))
    program = verify_program(fuse(graph, aliases={1: 1}, strides={}, target=DEFAULT))
    assert ["b: f64[12]" in show(k) for k in program.steps if isinstance(k, Kernel)] == [True, True]
    planned, expected = plan(program), interpret(graph, args)
    for got in (run(planned, [a.copy() for a in args]), compile_program(planned)(*[a.copy() for a in args])):
        for x, y in zip(got, expected, strict=True):
            np.testing.assert_allclose(x, y)


def test_threads_share_independent_rows() -> None:
    def escape(i: Value, j: Value, n: Value, c: Value) -> Value:
        point = get(c, i, j)
        _, count = while_(
            [number(0.0, F64), number(0)],
            lambda z, k: ops.bit_and(ops.le(z, 4.0), ops.lt(k, 20)),
            lambda z, k: (z * z + point, k + 1),
        )
        return put(n, count, i, j)

    def image(n: Value, c: Value) -> Any:
        return for_(40, [n], lambda i, n: for_(10, [n], lambda j, n: escape(i, j, n, c)))

    args = np.zeros((40, 10), np.int64), RNG.random((40, 10))
    assert kinds(check(image, *args, target=Target(cost=Cost(parallel_ns=1000.0)))) == ["parallel", "serial"]
    assert kinds(check(image, *args, target=Target(cost=Cost(parallel_ns=1e9)))) == ["serial", "serial"]


def program(function: Callable[..., Any], *avals: Aval) -> Graph:
    return graph_of(function, *avals)


def test_refused() -> None:
    big = Aval((300, 300), F64)
    with pytest.raises(NotRolled, match="a temporary of 90000 elements"):
        rolled_program(program(lambda a: for_(3, [a], lambda i, a: ops.transpose(a, perm=(1, 0))), big))
    with pytest.raises(NotRolled, match="sort has no form in plain loops"):
        rolled_program(program(lambda a: for_(3, [a], lambda i, a: ops.sort(a, axis=0, kind="stable")), Aval((9,), F64)))


def test_names_that_only_unused_names_use_go_too_in_any_depth() -> None:
    used = Store("y", (Const(0),), Var("a"))
    body: tuple[Stmt, ...] = (Let("a", Const(1.0)), Let("b", Var("a")), Let("c", Var("b")), used)
    for _ in range(300):  # a tree of this depth cannot be compared
        body = (If(Const(True), body),)
    body = without_unused(body)
    while isinstance(body[0], If):
        body = body[0].then
    assert body == (Let("a", Const(1.0)), used)
