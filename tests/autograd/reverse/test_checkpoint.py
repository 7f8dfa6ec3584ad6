"""`checkpoint` changes what is kept, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitml import check_grads, checkpoint, checkpoint_name, grad, hessian, jit, jvp, value_and_grad, vjp, vmap
from jitml.autograd.arguments.point import trace_point
from jitml.autograd.reverse.linearize import linearize
from jitml.ir import ops
from jitml.trace.record.recording import Trace, activate
from jitml.trace.values.boxing import fresh

rng = np.random.default_rng(0)
w = rng.normal(size=(3, 3))
x3 = rng.normal(size=3)
POLICIES: list[Any] = [None, "nothing", "dots", ["hidden"], 24, 0, 10**9]


@pytest.fixture(params=[lambda f: f, jit], ids=["eager", "jitted"])
def finish(request: pytest.FixtureRequest) -> Any:
    return request.param


def layer(x: Any) -> Any:
    h = checkpoint_name(np.tanh(w @ x), "hidden")
    out = np.zeros(3)
    out[1:] = np.sin(h[:2]) * h[1:]
    return out + np.exp(h)


TRANSFORMS: list[Any] = [
    (lambda f: grad(lambda x: f(f(x)).sum()), x3),
    (lambda f: hessian(lambda x: f(x).sum()), x3),
    (lambda f: lambda x: jvp(f, (x,), (x,))[1], x3),
    (lambda f: f, x3),
    (lambda f: vmap(grad(lambda x: f(x).sum())), w),
    (lambda f: grad(lambda xs: vmap(f)(xs).sum()), w),
]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_derivatives_are_the_same(policy: Any, finish: Any) -> None:
    f = checkpoint(layer, policy=policy)
    for transform, x in TRANSFORMS:
        np.testing.assert_allclose(finish(transform(f))(x), transform(layer)(x), rtol=1e-12)


def residuals(f: Any) -> list[str]:
    """What the forward part hands to the backward part, computed by what."""
    with activate(Trace()):
        x = fresh(ops.full(value=1.0, shape=(3,), dtype=np.dtype(float)))
        point = trace_point("grad", f, (x,), {}, [0], has_aux=False)
        derivative = linearize(point.graph, point.wrt)
    makers = derivative.forward.producers()
    kept = derivative.forward.outputs[derivative.outputs :]
    return sorted(makers[v].op.name if v in makers else "input" for v in kept)


def test_what_is_kept() -> None:
    def f(x: Any) -> Any:
        y = checkpoint_name(np.exp(np.sin(x) @ w), "y")
        return np.tanh(y * np.cos(x))

    assert len(residuals(f)) > 4
    assert residuals(checkpoint(f)) == ["input", "input"]  # x and w
    assert residuals(checkpoint(f, policy="dots")) == ["dot_general", "input", "input"]
    assert residuals(checkpoint(f, policy=["y"])) == ["input", "input", "keep"]
    assert residuals(checkpoint(f, policy=["z"])) == ["input", "input"]
    assert residuals(checkpoint(f, policy=23)) == ["input", "input"]
    assert len(residuals(checkpoint(f, policy=24))) == 3
    assert residuals(checkpoint(lambda x: f(f(x)))) == ["input", "input"]


def test_work_is_repeated_and_memory_saved() -> None:
    """A chain of layers, each of several products: passes do not share what is computed again with what it was."""
    w = rng.normal(size=(64, 64))

    def block(x: Any) -> Any:
        for _ in (1, 2, 3, 4):
            x = np.tanh(x @ w)
        return x

    def chain(block: Any) -> Any:
        def program(x: Any) -> Any:
            for _ in (1, 2, 3, 4, 5, 6, 7, 8):
                x = block(x)
            return x.sum()

        return jit(grad(program)).lower(np.ones((64, 64)))

    plain, again = chain(block), chain(checkpoint(block))
    assert str(plain.graph).count("tanh ") == 32 and str(again.graph).count("tanh ") > 56
    assert again.program.arena_size < 0.6 * plain.program.arena_size


def attention(x: Any) -> Any:
    s = x @ x.T / np.sqrt(x.shape[1])
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return x + (e / e.sum(axis=1, keepdims=True)) @ x


def four_layers(x: Any) -> Any:
    for _ in (1, 2, 3, 4):
        x = attention(x)
    return (x * x).sum()


def lowered(rows: int, columns: int) -> Any:
    return jit(grad(lambda x: four_layers(x))).lower(rng.normal(size=(rows, columns)))  # noqa: PLW0108  # traced anew


def test_what_swells_is_computed_again_where_that_is_cheaper(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scores of each layer of attention: N² numbers from N rows, of which one at a time is there."""
    monkeypatch.setattr("jitml.autograd.reverse.recompute.saved_bytes", lambda: 1 << 30)
    again, dear = lowered(512, 4), lowered(512, 128)
    assert str(again.graph).count("exp ") == 8 and str(dear.graph).count("exp ") == 4
    assert again.program.arena_size < 10 * 512 * 512 * 4 < dear.program.arena_size
    monkeypatch.setattr("jitml.autograd.reverse.recompute.saved_bytes", lambda: 1 << 20)
    scarce = lowered(512, 128)
    assert str(scarce.graph).count("exp ") == 8
    assert scarce.program.arena_size < 0.7 * dear.program.arena_size


def test_what_is_computed_again_is_the_same() -> None:
    x = rng.normal(size=(512, 4)) * 0.3
    dx, size = rng.normal(size=x.shape), 1e-5
    expected = (four_layers(x + size * dx) - four_layers(x - size * dx)) / (2 * size)
    assert (jit(grad(four_layers))(x) * dx).sum() == pytest.approx(expected, rel=1e-6)
    assert (grad(four_layers)(x) * dx).sum() == pytest.approx(expected, rel=1e-6)


def test_as_decorator(finish: Any) -> None:
    @checkpoint(policy="dots")
    def f(x: Any, *, n: int = 2) -> Any:
        return (w @ x) ** n

    assert f.__name__ == "f"
    np.testing.assert_allclose(f(x3), (w @ x3) ** 2)
    np.testing.assert_allclose(finish(grad(lambda x: f(x, n=3).sum()))(x3), w.T @ (3 * (w @ x3) ** 2))


def test_loops_and_branches_inside(finish: Any) -> None:
    @checkpoint
    def f(x: Any) -> Any:
        for i in range(3):
            x = np.sin(x) * (i + 1)
        if x.sum() > 0:
            x = x * 2
        else:
            x = x * 3
        return x

    plain = f.__wrapped__
    np.testing.assert_allclose(finish(grad(lambda x: f(x).sum()))(x3), grad(lambda x: plain(x).sum())(x3))


def test_inside_of_loops(finish: Any) -> None:
    def total(f: Any) -> Any:
        def program(x: Any) -> Any:
            for _ in range(5):
                x = f(x)
            return x.sum()

        return program

    np.testing.assert_allclose(finish(grad(total(checkpoint(layer))))(x3), grad(total(layer))(x3), rtol=1e-12)


@pytest.mark.parametrize("inner", [layer, checkpoint(layer)], ids=["names", "calls"])
@pytest.mark.parametrize("transform", [lambda f: lambda x: jvp(f, (x,), (x,))[1], grad, hessian])
def test_around_loops_that_hold_more_of_it(inner: Any, transform: Any, finish: Any) -> None:
    def total(x: Any) -> Any:
        for _ in range(5):
            x = inner(x)
        return x.sum()

    np.testing.assert_allclose(finish(transform(checkpoint(total)))(x3), transform(total)(x3), rtol=1e-12)


def test_closures_are_differentiated(finish: Any) -> None:
    def loss(w: Any) -> Any:
        f = checkpoint(lambda x: np.tanh(w @ x))
        return f(f(x3)).sum()

    def plain(w: Any) -> Any:
        return np.tanh(w @ np.tanh(w @ x3)).sum()

    np.testing.assert_allclose(finish(grad(loss))(w), grad(plain)(w))
    check_grads(loss, (w,), order=2)
    _, pull = vjp(checkpoint(layer), x3)
    np.testing.assert_allclose(pull(x3)[0], vjp(layer, x3)[1](x3)[0])


def added(s: Any, x: Any) -> Any:
    s += x
    return (s**2).sum()


def writes_an_argument(x: Any, again: Any) -> Any:
    s, total = np.zeros(3), 0.0
    for _ in range(3):
        total += again(added)(s, x)
    return total + s[0]


def writes_a_view(x: Any, again: Any) -> Any:
    y = x * 2
    again(lambda row: row.__setitem__(0, row[1] ** 2))(y[1:])
    return (y * y).sum()


def returns_a_view(x: Any, again: Any) -> Any:
    y = x * 2
    h = again(lambda v: v[1:])(y)
    h[0] = x[0] * x[1]
    return (y * y).sum()


def returns_a_view_at(x: Any, again: Any) -> Any:
    y = np.zeros(3)
    for i in range(2):
        h = again(lambda v, i: v[i : i + 2])(y, i)
        h += np.sin(x[i])
    return (y * y).sum()


def returns_its_argument(x: Any, again: Any) -> Any:
    y = x * 2
    h = again(lambda v: v)(y)
    y[0] = x[1] ** 2
    return (h * y).sum() if h is y else 0.0


def fills_a_dict(x: Any, again: Any) -> Any:
    made: dict[str, Any] = {}

    def fill(d: Any, x: Any) -> Any:
        d["a"] = x * x
        return x.sum()

    return (again(fill)(made, x) * made["a"]).sum()


def fills_a_list(x: Any, again: Any) -> Any:
    made: list[Any] = []

    def fill(x: Any) -> Any:
        made.append(np.sin(x))
        return x * 2

    return (again(fill)(x) * made[0]).sum()


class Cell:
    value: Any = None


def sets_an_attribute(x: Any, again: Any) -> Any:
    cell = Cell()

    def fill(x: Any) -> None:
        cell.value = np.sin(x)

    again(fill)(x)
    return (x * cell.value).sum()


def in_the_test_of_a_while(x: Any, again: Any) -> Any:
    s = np.zeros(3)
    while again(added)(s, x) < 20:
        s *= 1.5
    while again(lambda s: (s * s).sum())(s) < 40:
        s *= again(lambda x: x[0] + 1)(x)
    return s.sum()


def nested(x: Any, again: Any) -> Any:
    s = np.zeros(3)

    def outer(s: Any, x: Any) -> Any:
        t = again(added)(s, np.exp(x))
        s[1:] *= 2
        return again(np.sin)(s * t)

    return (outer(s, x) + again(outer)(s, x) * s).sum()


def sizes_from_data(x: Any, again: Any) -> Any:
    return (again(lambda x: x[x > 0])(x) ** 3).sum()


def sizes_from_data_in_a_loop(x: Any, again: Any) -> Any:
    y, total = np.ones(3), 0.0

    def step(y: Any, i: Any) -> Any:
        y[i] += np.sin(x[i])
        return np.exp(y[y > 0])

    for i in range(3):
        z = again(step)(y, i)
        total += (z * len(z)).sum()
    return total


@pytest.mark.parametrize(
    "program",
    [
        writes_an_argument, writes_a_view, returns_a_view, returns_a_view_at, returns_its_argument, fills_a_dict, fills_a_list,
        sets_an_attribute, in_the_test_of_a_while, nested, sizes_from_data, sizes_from_data_in_a_loop,
    ],
)  # fmt: skip
@pytest.mark.parametrize("policy", [None, "dots", 64])
def test_what_a_function_does_besides_returning(program: Any, policy: Any, finish: Any) -> None:
    x = np.array([0.3, 0.7, -1.1])
    value, slope = finish(value_and_grad(lambda x: program(x, lambda f: checkpoint(f, policy=policy))))(x)
    plain = program(x, lambda f: f)
    np.testing.assert_allclose([value, finish(lambda x: program(x, checkpoint))(x), program(x, checkpoint)], plain, rtol=1e-12)
    np.testing.assert_allclose(slope, grad(lambda x: program(x, lambda f: f))(x), rtol=1e-12)
    moved = [program(x + 1e-6 * e, lambda f: f) - program(x - 1e-6 * e, lambda f: f) for e in np.eye(3)]
    np.testing.assert_allclose(slope, np.array(moved) / 2e-6, rtol=1e-5, atol=1e-8)


def test_what_is_written_is_not_kept() -> None:
    def f(x: Any) -> Any:
        s = np.sin(x)
        checkpoint(lambda s: s.__setitem__(slice(None), np.exp(np.cos(s))))(s)
        return s

    assert residuals(f) == ["cos", "sin"]
    assert residuals(checkpoint(f)) == ["input"]


@pytest.mark.parametrize("draw", [lambda rng: rng.random(3), lambda rng: rng.triangular(0, 1, 2, size=3)])
def test_what_happens_once_is_not_done_again(draw: Any, finish: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Random numbers, in loops too, and what is printed."""

    def noisy(rng: Any, x: Any) -> Any:
        y = np.sin(x) * draw(rng)
        for _ in range(3):
            y = np.tanh(y + draw(rng) * x)
        print("drawn")
        return y

    ours, theirs = np.random.default_rng(3), np.random.default_rng(3)
    again = finish(value_and_grad(lambda x: checkpoint(noisy)(ours, x).sum()))
    plain = finish(value_and_grad(lambda x: noisy(theirs, x).sum()))
    for _ in range(3):
        capsys.readouterr()
        (value, slope), (expected, expected_slope) = again(x3), plain(x3)
        assert capsys.readouterr().out == "drawn\n" * 2
        np.testing.assert_allclose(value, expected)
        np.testing.assert_allclose(slope, expected_slope)
        assert ours.random() == theirs.random()


def sizes_after_draws(rng: Any, x: Any) -> Any:
    y = x[x > rng.random()]
    z = y * rng.random()
    return np.sort(np.append(z[z > 0.01], y))


def test_sizes_that_draws_decide(finish: Any) -> None:
    ours, theirs = np.random.default_rng(3), np.random.default_rng(3)
    again = finish(value_and_grad(lambda x: (checkpoint(sizes_after_draws)(ours, x) ** 2).sum()))
    plain = finish(value_and_grad(lambda x: (sizes_after_draws(theirs, x) ** 2).sum()))
    for x in (x3, x3 + 1, -x3):
        for got, expected in zip(again(x), plain(x)):
            np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_mistakes() -> None:
    for policy in ("everything", 1.5, True):
        with pytest.raises(ValueError, match=f"checkpoint: no policy {policy!r}: there are"):
            checkpoint(layer, policy=policy)  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(ValueError, match="checkpoint: a budget of -1 bytes"):
        checkpoint(layer, policy=-1)
