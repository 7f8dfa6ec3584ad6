"""Where branches cannot be merged: one program for each way that calls take, tried and made as they come."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
import jitml.wiring
from jitml.trace.record import concrete_evaluation
from programs.comparing import difference, within

pytestmark = pytest.mark.filterwarnings("error::jitml.errors.UncompiledWarning")
Array = np.ndarray[Any, Any]
Function = Callable[..., Any]
UP, DOWN = [3.0, 1.0, 2.0], [-3.0, -1.0, -2.0]


def agree(function: Function, *calls: Any, variants: int, replays: int = 0) -> jitml.api.Jit:
    """Eager and jitted answers, and what they leave in their arguments, are the same for all calls."""
    compiled = jitml.jit(function)
    for values in calls:
        mine, numpys = np.array(values), np.array(values)
        got, want = compiled(mine), function(numpys)
        assert difference(got, want, within(1e-12)) is None
        assert difference(mine, numpys, within(1e-12)) is None
    assert len(compiled.variants) == variants
    assert sum(sum(variant.replays.values()) for variant in compiled.variants) == replays
    return compiled


def array_or_none(x: Array) -> Any:
    if x.sum() > 0:
        return None
    return x * 2


def another_shape(x: Array) -> Any:
    y = x[:1] if x[0] > 0 else x.reshape(1, -1)
    return y + 1


def another_type(x: Array) -> Any:
    y = x[0] > 0 and x
    return y


def another_container(x: Array) -> Any:
    pair = (x + 1, 2) if x[0] > 0 else [x]
    return len(pair), pair


def a_list_is_changed(x: Array) -> Any:
    steps = [x]
    if x[0] > 0:
        steps.append(x * 2)
    return sum(steps), len(steps)


def unlike_names(x: Array) -> Any:
    if x.min() > 0:
        name, scale = "up", 2
    else:
        name, scale = "down", np.arange(3)
    return name, x * scale


def which_is_written(x: Array) -> Any:
    y = x if x[0] > 0 else x + 1
    y[0] = 7
    return y


def unlike_operands(x: Array) -> Any:
    return max(x[0], 0, np.uint8(1)), min(x[0], np.uint8(0))


def a_recursion(x: Array) -> Any:
    return x if np.abs(x).max() < 1 else a_recursion(x / 2)


FUNCTIONS = [
    array_or_none, another_shape, another_type, another_container, a_list_is_changed, unlike_names, which_is_written,
    unlike_operands,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_both_paths(function: Function) -> None:
    agree(function, UP, DOWN, UP, UP, DOWN, DOWN, UP, variants=2)


def test_a_recursion_that_a_value_ends() -> None:
    agree(a_recursion, UP, DOWN, [0.5, 0.5, 0.5], [100.0, 0, 0], UP, variants=3)


def test_warm_calls_compile_nothing_and_bring_the_path_forward() -> None:
    compiled = agree(array_or_none, UP, DOWN, variants=2)
    first = compiled.variants[0]
    compiled(np.array(UP))
    assert compiled.variants[1] is first
    compiled(np.array(UP))
    assert compiled.variants[1] is first


def test_programs_of_one_path_are_as_before() -> None:
    compiled = agree(lambda x: x if x[0] > 0 else -x, UP, DOWN, UP, variants=1)
    assert compiled.variants[0].assumes == ()


def test_decisions_that_depend_on_others() -> None:
    def f(x: Array) -> Any:
        if x[0] > 0:
            if x[1] > 0:
                return x, "both"
            return "first"
        return None if x[1] > 0 else -x

    compiled = agree(f, [1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, 1.0], variants=4)
    assert {len(variant.assumes) for variant in compiled.variants} == {2}


def test_loops_around_a_decision_are_unrolled() -> None:
    def f(x: Array) -> Any:
        kept: list[Any] = []
        for i in range(len(x)):
            if x[i] > 0:
                kept = [*kept, x[i]]
        return kept

    agree(f, UP, DOWN, [1.0, -1.0, 1.0], UP, variants=3)


def test_a_while_with_python_state() -> None:
    def f(x: Array) -> Any:
        history = {}
        count = 0
        while x.max() > 1:
            x = x / 2
            history[count] = x[0]
            count += 1
        return history

    agree(f, UP, DOWN, [8.0, 0.0, 0.0], UP, variants=3)


def test_a_while_whose_type_settles_stays_a_loop() -> None:
    def f(x: Array) -> Any:
        state = None
        while x.max() > 1:
            state = x * 2 if state is None else state + x
            x = x / 2
        return state

    compiled = agree(f, UP, [64.0, 0.0, 0.0], [9.0, 1.0, 1.0], DOWN, UP, variants=2)
    graphs = [str(variant.traced.graph) for variant in compiled.variants]
    assert ["while_" in graph for graph in graphs] == [True, False]


def test_a_loop_as_often_as_data_say() -> None:
    def f(x: Array) -> Any:
        names = []
        for i in range(int(x[0])):
            names.append(f"step {i}")
        return names

    agree(f, [3.0, 0.0], [2.0, 1.0], [3.0, 5.0], [-1.0, 0.0], variants=1)


def test_numbers_that_python_needs() -> None:
    def f(x: Array) -> Any:
        k = int(x[0])
        table = {1: "one", 2: "two"}
        return ["zero", "one", "two"][k], table.get(k, "none"), x * k

    agree(f, [1.0, 5.0], [2.0, 7.0], [0.0, 0.0], [1.0, 6.0], variants=3)


@pytest.mark.loose
def test_which_way_a_long_loop_tells_is_pythons() -> None:
    def f(x: Array) -> Any:
        for _ in range(500_000):  # which takes too long while the function is traced
            x = x - 1
        return None if x[0] > 0 else x

    compiled = jitml.jit(f)
    for x in (10.0, 600_000.0, 10.0):
        np.testing.assert_equal(compiled(np.array([x])), f(np.array([x])))


def test_short_loops_are_run_for_what_is_decided() -> None:
    def f(previous: Array) -> Any:
        paths = []
        for v in range(len(previous)):
            path = [v]
            while previous[path[-1]] >= 0:
                path.append(previous[path[-1]])
            paths.append(path[::-1])
        return paths

    agree(f, [-1, 0, 1, 2, 3, 4, 5, 6], variants=1)
    agree(f, [-1, 0, 1, 2, 3, 4], [-1, 0, 1, 2, 3, 3], [-1, 0, 1, 2, 3, 4], variants=2)


def test_loops_of_many_iterations_are_run_for_what_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []
    compile_graph = jitml.wiring.compile_or_load

    def count(*args: Any, **options: Any) -> Any:
        compiled.append(args)
        return compile_graph(*args, **options)

    monkeypatch.setattr(jitml.wiring, "compile_or_load", count)

    def f(previous: Array) -> Any:
        total = 0.0
        for _ in range(200):
            for v in previous:
                total = total + v * v
        return None if total > 10_000 else previous

    agree(f, np.arange(-10, 30), variants=1)
    assert len(compiled) == 1


@pytest.mark.loose
def test_lists_that_loops_have_filled_are_compared() -> None:
    def f(x: Array) -> Any:
        above, far_above = [], []
        for v in x:
            if v > 0:
                above.append(v)
            if v > 1:
                far_above.append(v)
        return above == far_above, above != far_above, above == [1.0, 2.0], above == (1.0, 2.0)

    compiled = jitml.jit(f)
    for x in ([-1.0, 1.0, 2.0], [2.0, 3.0, 2.0], [-1.0, -2.0, 0.0], [-1.0, 1.0, 2.0]):
        assert compiled(np.array(x)) == f(np.array(x))


def test_keys_of_a_result_are_numbers() -> None:
    def f(x: Array) -> Any:
        return {x[0]: 1, float(x[1]): 2}, [{v: 1} for v in x]

    agree(f, [0.5, 2.25, -1.75], [0.75, 2.25, -1.75], variants=2)


def test_a_key_in_the_result_of_a_transform_is_what_it_is_in_this_call() -> None:
    """It stayed a traced value, and whoever compared it later was told so (its hash was asked for as the process ended, too)."""
    for first in (1.0, 2.0, 1.0):
        x = np.array([first, 3.0])
        for transform in (lambda x: x, jitml.jit):
            moved = transform(lambda x: jitml.jvp(lambda x: {x[0]: x.sum()}, (x,), (np.ones(2),)))
            assert moved(x) == ({first: first + 3.0}, {first: 2.0})


@pytest.mark.loose
def test_lists_that_loops_have_filled_are_changed_as_their_items_say() -> None:
    def f(x: Array) -> Any:
        ys: list[Any] = ["the first"]
        for v in x:
            ys.append(v * 2)
        ys.remove(4.0)
        if x[0] > 0:
            ys.insert(1, x[0])
        else:
            del ys[1]
        del ys[0]
        zs = ys.copy()
        zs.sort(reverse=True)
        heapq.heapify(ys)
        return ys, zs, ys < zs, x[0] == "the first", x != "the first"

    compiled = jitml.jit(f)
    for x in ([-1.0, 3.0, 2.0], [2.0, 3.0, 1.0], [-2.0, 3.0, 2.0]):
        assert repr(compiled(np.array(x))) == repr(f(np.array(x)))


def test_a_limit_grows_only_where_it_was_exceeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concrete_evaluation, "_MOST_WORK", 0)  # each guess is wrong

    def f(previous: Array) -> Any:
        paths = []
        for v in range(len(previous)):
            path = [v]
            while previous[path[-1]] >= 0:
                path.append(previous[path[-1]])
            paths.append(path[::-1])
        return paths

    compiled = agree(f, [-1, *range(10)], variants=1)
    (variant,) = compiled.variants
    limits = [a.outcome for a in variant.traced.key.path.assumptions if a.kind == "limit"]
    assert set(limits) == {1 << 16}


def stretched_by_branches(x: Array) -> Any:
    return x * x[x == 0] if x[-1] >= 0 else x


def stretched_by_a_loop(x: Array) -> Any:
    for i in range(3):
        x = x * 2 - x[x == 0] * i
    return x


def kept_by_a_loop(x: Array) -> Any:
    x /= x[x == 0] + 2
    for low, _ in zip(np.unique(x), x):
        v = low
    return v, x


ONE_OR_ALL = [
    lambda x: x - x[x == 0], lambda x: x[x == 0] + x, lambda x: np.where(x[x == 0] < 1, x, x + 1),
    lambda x: np.maximum(x, x[x == 0]),
    lambda x: np.outer(x, x)[x == 0] + np.outer(x, x), lambda x: np.squeeze(x[x == 0]) + 1,
    lambda x: np.squeeze(np.outer(x, x)[x == 0]), lambda x: np.einsum("i,i->i", x, x[x == 0]),
    lambda x: np.einsum("i,i", x[x == 0] + 1, x),
    lambda x: x[x == 0] * x[x == 0].sum() + x, stretched_by_branches,
    stretched_by_a_loop, kept_by_a_loop,
]  # fmt: skip


@pytest.mark.parametrize("function", ONE_OR_ALL)
def test_sizes_of_which_one_may_be_stretched(function: Function) -> None:
    one, other, every = [0.0, 1.0, 2.0], [5.0, 0.0, 9.0], [0.0, 0.0, 0.0]
    compiled = agree(function, one, other, every, one, every, other, variants=2)
    assert {len(variant.assumes) for variant in compiled.variants} <= {1, 2}
    agree(function, every, every, one, variants=2)


def test_sizes_that_do_not_fit_compile_nothing_more() -> None:
    def f(x: Array) -> Any:
        return x - x[x == 0]

    compiled = agree(f, [0.0, 1.0, 2.0], [0.0, 0.0, 0.0], variants=2)
    for _ in range(3):
        with pytest.raises(ValueError, match=r"operands could not be broadcast together with shapes \(3,\) \(2,\)"):
            compiled(np.array([0.0, 0.0, 1.0]))
    assert len(compiled.variants) == 2
    assert sum(sum(variant.replays.values()) for variant in compiled.variants) == 3


def test_sizes_that_are_stretched_in_some_iterations_are_numpys() -> None:
    def f(x: Array) -> Any:
        total = x * 0
        for i in range(2):
            total = total + x[x >= i] * x
        for _ in range(2):
            k = 0
            while total.all() and k < 3:
                k += 1
                last = []
                for _ in range(3):
                    last.append(x)
            x[0] = len(np.array(last))
        return total, x

    def at_once(x: Array) -> Any:
        return jitml.jit(f)(x)

    compiled = agree(f, [1.0, 3.0], [2.0, 7.0], variants=1)
    for function in (compiled, compiled, at_once):
        assert difference(function(np.array([0.5, 1.0])), f(np.array([0.5, 1.0])), within(1e-12)) is None


def test_what_is_written_before_a_wrong_path_is_undone() -> None:
    def f(x: Array) -> Any:
        x += 1
        x[0] = x.sum()
        return "positive" if x[0] > 0 else x.copy()

    agree(f, UP, DOWN, UP, DOWN, variants=2)


def test_what_is_drawn_before_a_wrong_path_is_not_drawn() -> None:
    def f(rng: np.random.Generator, x: Array) -> Any:
        y = rng.normal(size=2)
        if y[0] > 0:
            return y, rng.random()
        return x + rng.random()

    compiled = jitml.jit(f)
    mine, numpys = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(12):
        assert difference(compiled(mine, np.ones(2)), f(numpys, np.ones(2)), within(1e-12)) is None
        assert mine.bit_generator.state == numpys.bit_generator.state
    assert len(compiled.variants) == 2


def test_an_exception_on_one_path() -> None:
    def f(x: Array) -> Any:
        total = [x]
        if x[0] > 0:
            total.append(x[5])
        return total

    compiled = jitml.jit(f)
    for _ in range(2):
        with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 3"):
            compiled(np.array(UP))
        assert len(compiled(np.array(DOWN))) == 1
    assert len(compiled.variants) == 1


def test_a_check_on_one_path() -> None:
    def f(x: Array, k: Array) -> Any:
        return x[k] if x[0] > 0 else None

    compiled = jitml.jit(f)
    for _ in range(2):
        assert compiled(np.array(DOWN), np.array([9])) is None
        with pytest.raises(IndexError, match="index 9 is out of bounds"):
            compiled(np.array(UP), np.array([9]))
        assert compiled(np.array(UP), np.array([1])) == [1.0]


def test_a_loop_without_end_on_the_other_path() -> None:
    def f(x: Array) -> Any:
        if x[0] > 0:
            while x[1] < 100:
                x = x + x[0]
            return x
        return None

    agree(f, UP, DOWN, [5.0, 1.0], [-5.0, 1.0], [0.0, 0.0], variants=4)  # two lengths


def test_derivatives_of_the_path() -> None:
    def f(x: Array) -> Any:
        parts = [x**2]
        if x[0] > 0:
            parts.append(x**3)
        return sum(parts).sum()

    compiled = jitml.jit(jitml.grad(f))
    for values in (UP, DOWN, UP):
        x = np.array(values)
        expected = 2 * x + (3 * x**2 if x[0] > 0 else 0)
        np.testing.assert_allclose(compiled(x), expected)
        np.testing.assert_allclose(jitml.grad(f)(x), expected)


def padded(x: Array) -> Any:
    y = np.zeros(int(x.sum()))
    y[: x.size] = x
    return y


def test_a_size_beyond_its_guessed_limit_has_a_program_for_more() -> None:
    calls = [[1.0, n] for n in (3.0, 50.0, 1e3, 2e5, 20.0, 3e6, 1e3)]
    compiled = agree(padded, *calls, variants=4)
    assert [variant.assumes[0].split()[-1] for variant in compiled.variants][-1] == "128"


def test_explain_names_the_path() -> None:
    compiled = agree(array_or_none, UP, DOWN, variants=2)
    report = jitml.explain(compiled, np.array(UP))
    assert "in array_or_none `if x.sum() > 0:` is true" in report
    assert "another path: " in report
    assert [variant.assumes[0].split()[-1] for variant in compiled.variants] == ["false", "true"]


def test_threads_on_different_paths() -> None:
    compiled = jitml.jit(array_or_none)
    wrong: list[Any] = []

    def work(values: Any) -> None:
        x = np.array(values)
        for _ in range(50):
            if difference(compiled(x), array_or_none(x), within(1e-12)) is not None:
                wrong.append(values)

    threads = [threading.Thread(target=work, args=(values,)) for values in (UP, DOWN, UP, DOWN)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(compiled.variants) == 2
