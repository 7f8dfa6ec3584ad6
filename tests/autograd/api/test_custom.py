"""Rules of the user's: used wherever a derivative is taken, under jit, vmap and each other, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jitml import (
    DerivativeError,
    UnsupportedError,
    check_grads,
    checkpoint,
    checkpoint_name,
    custom_jvp,
    custom_vjp,
    grad,
    hessian,
    jacfwd,
    jit,
    jvp,
    linearize,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
)

x3 = np.array([0.3, 1.2, -0.7])
x43 = np.arange(12.0).reshape(4, 3) / 10


@pytest.fixture(params=[lambda f: f, jit], ids=["eager", "jitted"])
def finish(request: pytest.FixtureRequest) -> Any:
    return request.param


def same(got: object, expected: object) -> None:
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


@custom_jvp
def tripled(x: Any, y: Any) -> Any:
    return x * y


@tripled.defjvp
def tripled_rule(primals: Any, tangents: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    return tripled(x, y), 3 * (dx * y + x * dy)


@custom_vjp
def doubled(x: Any, y: Any) -> Any:
    return np.sin(x) * y


doubled.defvjp(lambda x, y: (doubled(x, y), (x, y)), lambda kept, ct: (2 * ct * np.cos(kept[0]) * kept[1], None))


@custom_vjp
def clipped(x: Any) -> Any:
    return x


clipped.defvjp(lambda x: (x, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))


def test_the_rule_is_used(finish: Any) -> None:
    same(finish(lambda x: tripled(x, x))(x3), x3 * x3)
    same(finish(grad(lambda x: tripled(x, 2.0).sum()))(x3), np.full(3, 6.0))
    same(finish(lambda x: jvp(lambda x: tripled(x, x), (x,), (np.ones(3),))[1])(x3), 6 * x3)
    same(finish(grad(lambda x: doubled(x, x).sum()))(x3), 2 * np.cos(x3) * x3)
    same(finish(grad(lambda x: (10 * clipped(x)).sum()))(x3), np.ones(3))
    same(finish(lambda x: vjp(clipped, x)[1](np.array([5.0, 0.5, -7.0]))[0])(x3), [1, 0.5, -1])


def test_higher_orders(finish: Any) -> None:
    """Within a rule its function is differentiated by the rule again."""
    same(finish(grad(grad(lambda x: tripled(x, x))))(2.0), 6 + 0)  # of 3 (x + x), written with plain products
    same(finish(grad(grad(lambda x: doubled(x, 1.0))))(2.0), -2 * np.sin(2.0))
    same(finish(hessian(lambda x: doubled(x, 1.0).sum()))(x3), np.diag(-2 * np.sin(x3)))

    @custom_jvp
    def f(x: Any) -> Any:
        return x**3

    f.defjvp(lambda primals, tangents: (f(primals[0]), 5 * tangents[0] * f(primals[0])))
    same(finish(grad(grad(f)))(2.0), 25 * 8)
    same(finish(grad(grad(grad(f))))(2.0), 125 * 8)


def test_rows(finish: Any) -> None:
    same(finish(vmap(grad(lambda x: tripled(x, x).sum())))(x43), 6 * x43)
    same(finish(grad(lambda x: vmap(lambda r: tripled(r, x3).sum())(x).sum()))(x43), np.tile(3 * x3, (4, 1)))
    same(finish(grad(lambda s: vmap(lambda r: tripled(r, s).sum())(x43).sum()))(2.0), 3 * x43.sum())
    same(finish(vmap(grad(lambda x: doubled(x, x).sum())))(x43), 2 * np.cos(x43) * x43)
    same(finish(grad(lambda x: vmap(lambda s: doubled(x, s).sum())(x43[:, 0]).sum()))(x3), 2 * np.cos(x3) * x43[:, 0].sum())
    same(finish(vmap(lambda x: vjp(clipped, x)[1](10 * x)[0]))(x43), np.clip(10 * x43, -1, 1))
    same(finish(vmap(grad(lambda x: clipped(10 * x).sum() if x[0] > 0.2 else x.sum())))(x43), [[1] * 3, *[[10] * 3] * 3])


def test_forward_mode_of_a_vjp(finish: Any) -> None:
    same(finish(lambda x: jvp(lambda x: doubled(x, 3.0), (x,), (np.ones(3),))[1])(x3), 6 * np.cos(x3))
    same(linearize(lambda x: doubled(x, 3.0), x3)[1](np.ones(3)), 6 * np.cos(x3))
    same(finish(jacfwd(lambda x: doubled(x, 3.0)))(x3), np.diag(6 * np.cos(x3)))
    with pytest.raises(DerivativeError, match=r"clipped has a custom vjp, which forward mode cannot use: .* is not linear"):
        jvp(clipped, (x3,), (x3,))


def test_containers_and_constants(finish: Any) -> None:
    @custom_vjp
    def f(p: dict, n: Any) -> dict:
        return {"y": p["w"] * n, "count": 3}

    def fwd(p: dict, n: Any) -> Any:
        return f(p, n), {"w": p["w"], "tag": "kept", "n": n}

    def bwd(kept: dict, ct: dict) -> Any:
        assert kept["tag"] == "kept" and ct["count"] is None
        return {"w": 7 * ct["y"], "b": None}, None

    f.defvjp(fwd, bwd)
    slopes = finish(grad(lambda p: f(p, 2)["y"].sum()))({"w": x3, "b": 1.0})
    same(slopes["w"], np.full(3, 7.0))
    same(slopes["b"], 0)


def test_nondiff_argnums(finish: Any) -> None:
    def power(n: int, x: Any) -> Any:
        return x**n

    f = custom_vjp(power, nondiff_argnums=(0,))
    f.defvjp(lambda n, x: (x**n, x), lambda n, x, ct: (100 * ct * n * x ** (n - 1),))
    same(finish(grad(lambda x: f(3, x).sum()))(x3), 300 * x3**2)
    same(finish(grad(lambda x: f(x=x, n=3).sum()))(x3), 300 * x3**2)
    g = custom_jvp(lambda x, how: how(x), nondiff_argnums=(1,))
    g.defjvp(lambda how, primals, tangents: (how(*primals), 9 * tangents[0]))
    same(finish(grad(lambda x: g(x, np.sin).sum()))(x3), np.full(3, 9.0))


def test_constants_from_around(finish: Any) -> None:
    scale = np.array([1.0, 2.0, 3.0])

    @custom_vjp
    def f(x: Any) -> Any:
        return x * scale

    f.defvjp(lambda x: (x * scale, None), lambda _, ct: (ct * scale * 10,))
    same(finish(grad(lambda x: f(x).sum()))(x3), 10 * scale)

    def outer(w: Any) -> Any:
        g = custom_jvp(lambda x: x * w)
        g.defjvp(lambda primals, tangents: (primals[0] * w, tangents[0] * w))
        return g(x3).sum()

    with pytest.raises(DerivativeError, match="lambda> uses a variable that is differentiated without being given it"):
        grad(outer)(2.0)


def test_inside_of_loops(finish: Any) -> None:
    def f(x: Any) -> Any:
        for _ in range(4):
            x = tripled(x, 1.0)
        return x.sum()

    same(finish(grad(f))(x3), np.full(3, 81.0))

    def g(x: Any) -> Any:
        total = 0.0
        for i in range(3):
            total = total + doubled(x[i], 1.0)
        return total

    same(finish(grad(g))(x3), 2 * np.cos(x3))


def test_forward_mode_inside_of_loops_and_checkpoints(finish: Any) -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for i in range(3):
            total = total + doubled(x[i], 1.0)
        return total

    for g in (f, checkpoint(f), lambda x: checkpoint(lambda x: doubled(x, 1.0))(x).sum()):
        same(finish(lambda x, g=g: jvp(g, (x,), (np.ones(3),))[1])(x3), 2 * np.cos(x3).sum())
        same(finish(hessian(g))(x3), np.diag(-2 * np.sin(x3)))


def test_plain_calls() -> None:
    assert tripled(2.0, 3.0) == 6.0
    assert tripled.__name__ == "tripled" and "tripled" in repr(tripled)
    same(jit(clipped)(x3), x3)


def rule_returning(fwd: Any, bwd: Any) -> Callable[[], Any]:
    f = custom_vjp(lambda x: x * 2)
    f.defvjp(fwd, bwd)
    return lambda: grad(lambda x: f(x).sum())(x3)


NOTHING = np.zeros(3)


def filled(out: Any, values: Any) -> Any:
    out[:2] = values[:2]
    out[2:] = values[2:]
    return out


def rule_with(tangent: Callable[[Any, Any], Any]) -> Any:
    f = custom_jvp(lambda x: x * 3)
    f.defjvp(lambda primals, tangents: (primals[0] * 3, tangent(primals[0], tangents[0])))
    return f


@pytest.mark.parametrize(
    "tangent",
    [
        lambda x, t: 3 * t + np.zeros_like(x),
        lambda x, t: np.where(x > 0, 3 * t, 0.0) + np.where(x > 0, 0, t * 3),
        lambda x, t: np.concatenate([3 * t[:1], t[1:] * 3]) - 0 * x,
        lambda x, t: np.cumsum(np.diff(t, prepend=0.0)) * 3,
        lambda x, t: 3 * t + NOTHING + (x - x),
        lambda x, t: np.concatenate([3 * t, np.ones(0)]) + np.zeros((2, 3)).sum(axis=0),
        lambda x, t: np.where(x > -9, 3 * t, np.nan),
        lambda x, t: filled(np.empty(3), 3 * t),
    ],
)
def test_a_rule_may_add_zeros_to_its_tangent(tangent: Callable[[Any, Any], Any]) -> None:
    f = rule_with(tangent)
    assert np.allclose(grad(lambda x: f(x).sum())(x3), 3)
    assert np.allclose(jvp(f, (x3,), (x3,))[1], 3 * x3)


@pytest.mark.parametrize(
    "tangent",
    [
        lambda x, t: 3 * t + 1,
        lambda x, t: x,
        lambda x, t: np.where(x > 0, t, 1.0),
        lambda x, t: np.append(t[1:], 1.0),
        lambda x, t: 3 * t + np.maximum(x, 0),
        lambda x, t: 3 * t + (x > 0),
        lambda x, t: 3 * t + np.exp(0 * x),
        lambda x, t: 3 * t + (np.arange(3) + 1),
        lambda x, t: 3 * t + np.hypot(x, 0),
    ],
)
def test_a_rule_that_adds_to_its_tangent_is_refused_in_both_modes(tangent: Callable[[Any, Any], Any]) -> None:
    f = rule_with(tangent)
    for derivative in (lambda: grad(lambda x: f(x).sum())(x3), lambda: jvp(f, (x3,), (x3,))):
        with pytest.raises(DerivativeError, match="not zero where those given are"):
            derivative()


ERRORS = [
    (rule_returning(lambda x: x, lambda r, ct: (ct,)), "the forward rule of .* returns float64.3., not a pair"),
    (rule_returning(lambda x: (x[:2], x), lambda r, ct: (ct,)), "what its forward rule returns is f64.2. where f64.3. is wanted"),
    (rule_returning(lambda x: (x, x), lambda r, ct: ct), "returns float64.3., not a tuple of 1"),
    (rule_returning(lambda x: (x, x), lambda r, ct: (ct, ct)), "returns a tuple of 2, not a tuple of 1"),
    (
        rule_returning(lambda x: (x, x), lambda r, ct: (ct[:2],)),
        "that its backward rule returns is f64.2. where f64.3. is wanted",
    ),
    (
        rule_returning(lambda x: (x, x), lambda r, ct: (ct * 1j,)),
        "that its backward rule returns is c128.3. where f64.3. is wanted",
    ),
    (
        rule_returning(lambda x: (x, x), lambda r, ct: ((ct, ct),)),
        "its backward rule returns has the structure .\\*, \\*., where \\* is",
    ),
    (lambda: grad(custom_vjp(np.sin))(1.0), "sin is to be differentiated, and has no rule"),
    (lambda: grad(custom_jvp(lambda x: "a"))(1.0), "returns a str, not numbers"),
    (lambda: grad(lambda x: custom_jvp(lambda x: x[x > 0])(x).sum())(x3), "returns an array whose size it finds in data"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[e[1][:30] for e in ERRORS])
def test_errors(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(DerivativeError, match=message):
        call()


def doubling(d: Any) -> Any:
    while np.abs(d).sum() < 10:
        d = d * 2
    return d


def counting(d: Any) -> Any:
    total = d
    for _ in range(int(np.abs(d).sum())):
        total = total + d
    return total


NOT_LINEAR = {
    "mul": lambda d: d**2,
    "abs": np.abs,
    "div": lambda d: 1 / d,
    "sort": np.sort,
    "select": lambda d: np.where(d > 0, d, -d),
    "if": lambda d: d if d.sum() > 0 else -d,
    "while": doubling,
    "a size or place": counting,
}


@pytest.mark.parametrize(("what", "slope"), NOT_LINEAR.items(), ids=NOT_LINEAR)
def test_a_rule_that_is_not_linear(finish: Any, what: str, slope: Any) -> None:
    f = custom_jvp(np.sin)
    f.defjvp(lambda primals, tangents: (np.sin(primals[0]), slope(tangents[0])))
    with pytest.raises(DerivativeError, match=rf"^{what} of a tangent is not linear.*\n  .*test_custom.py:\d+ in "):
        finish(grad(lambda x: f(x).sum()))(x3)


class Layer:
    @custom_jvp
    def act(self, x: Any) -> Any:
        return np.sin(x)

    def total(self, x: Any) -> Any:
        return self.act(x).sum()


@pytest.mark.loose
def test_rules_that_are_set_again(finish: Any) -> None:
    f, g, layer = custom_jvp(np.sin), custom_vjp(np.sin), Layer()
    slopes = [finish(grad(h)) for h in (lambda x: f(x).sum(), lambda x: g(x).sum(), layer.total)]
    for scale in (2.0, 3.0):
        f.defjvp(lambda primals, tangents, scale=scale: (np.sin(primals[0]), scale * tangents[0]))
        g.defvjp(lambda x: (np.sin(x), None), lambda _, ct, scale=scale: (scale * ct,))
        vars(Layer)["act"].defjvp(lambda primals, tangents, scale=scale: (np.sin(primals[1]), scale * tangents[1]))
        for slope in slopes:
            same(slope(x3), np.full(3, scale))


def test_parts_of_variables_are_arguments() -> None:
    """They were read where the backward rule is traced, as variables that it had not been given."""
    f = custom_vjp(np.sin)
    f.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (ct * np.cos(x),))

    def by_windows(x: Any) -> Any:
        s = f(x[1:]).sum() + f(x[::-1].reshape(3, 1)).sum()
        for i in range(2):
            s += f(x[i : i + 2]).sum()
        return s

    check_grads(by_windows, (x3,), order=2, modes=("rev",))
    np.testing.assert_allclose(jit(grad(by_windows))(x3), np.cos(x3) * [2, 4, 3], rtol=1e-12)


def written_afterwards(result_of: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        y = x * 2
        z = result_of(y)
        z[0] = 5.0
        y[1] *= 3
        return (y * y).sum() + (z * z).sum()

    return program


def parted(x: Any) -> Any:
    return x[1:]


cut = custom_jvp(parted)
cut.defjvp(lambda primals, tangents: (primals[0][1:], tangents[0][1:]))


@pytest.mark.parametrize(
    ("same_as", "slope"),
    [
        (clipped, lambda x: 8 * x * [1, 9, 1] + np.array([0, 2, -2])),
        (cut, lambda x: 8 * x * [1, 9, 1] + 8 * x * [0, 0, 1]),
        (stop_gradient, lambda x: 8 * x * [1, 9, 1]),
        (lambda y: stop_gradient({"y": [y]})["y"][0], lambda x: 8 * x * [1, 9, 1]),
        (lambda y: checkpoint_name(y, "y"), lambda x: 8 * x * [1, 9, 1] + 8 * x * [0, 1, 1]),
    ],
)
def test_arrays_that_are_handed_back_are_new_ones(same_as: Any, slope: Any, finish: Any) -> None:
    """They were the argument in plain Python, and not under jit or a derivative."""
    f = written_afterwards(same_as)
    value, found = finish(value_and_grad(f))(x3)
    same(found, slope(x3))
    same([f(x3), jit(f)(x3)], [value, value])
    z = same_as(x3)
    assert not np.shares_memory(z, x3) and (z == x3[-z.size :]).all()


def test_integers_that_are_handed_back_are_new_ones(finish: Any) -> None:
    def f(n: Any) -> Any:
        m = stop_gradient(n)
        m[0] = 9
        return n.sum() + m.sum()

    assert finish(f)(np.arange(3)) == f(np.arange(3)) == 15


def test_a_function_with_a_rule_that_writes_its_arguments(finish: Any) -> None:
    def doubling_in_place(x: Any) -> Any:
        x *= 2
        return x.sum()

    def filling(d: Any, x: Any) -> Any:
        d["a"] = x
        return x.sum()

    f, g = custom_vjp(doubling_in_place), custom_jvp(filling)
    f.defvjp(lambda x: (2 * x.sum(), None), lambda _, ct: (np.full(3, 2 * ct),))
    g.defjvp(lambda primals, tangents: (primals[1].sum(), tangents[1].sum()))
    x = x3.copy()
    assert f(x) == (2 * x3).sum() and (x == 2 * x3).all()
    with pytest.raises(UnsupportedError, match=r"doubling_in_place has .* into its argument\n.*\n +x \*= 2\nCopy it first"):
        finish(grad(lambda x: f(x + 1) * x[0]))(x3)
    with pytest.raises(UnsupportedError, match="filling has a derivative of its own, and changes a container"):
        finish(grad(lambda x: g({}, x)))(x3)


def test_defaults_are_arguments(finish: Any) -> None:
    def power(x: Any, n: Any = 3) -> Any:
        return x**n

    f = custom_vjp(power, nondiff_argnums=(1,))
    f.defvjp(lambda x, n: (x**n, x), lambda n, x, ct: (10 * ct * n * x ** (n - 1),))
    g = custom_jvp(power)
    g.defjvp(lambda primals, tangents: (power(*primals), 10 * tangents[0] * primals[1] * primals[0] ** (primals[1] - 1)))
    h = custom_jvp(lambda x, *, n=3: x**n)
    h.defjvp(lambda primals, tangents: (primals[0] ** 3, 30 * tangents[0] * primals[0] ** 2))
    for call in (f, g, h, lambda x: f(x=x), lambda x: g(x=x), lambda x: f(x, 3), lambda x: g(x, n=3)):
        same(finish(grad(call))(2.0), 120)
    with pytest.raises(DerivativeError, match=r"cannot be given arguments by keyword \(n\)"):
        grad(lambda x: h(x, n=2))(2.0)


@pytest.mark.parametrize("made", [custom_jvp, custom_vjp])
def test_nondiff_argnums_out_of_range(made: Any) -> None:
    for n in (2, -3):
        with pytest.raises(ValueError, match=f"nondiff_argnums names argument {n}, but doubled_of takes 2"):
            made(doubled_of, nondiff_argnums=n)
    f = made(lambda *xs: xs[0] * 2, nondiff_argnums=(3,))
    with pytest.raises(DerivativeError, match="nondiff_argnums names argument 3, and it is called with 1"):
        grad(f)(2.0)


def doubled_of(x: Any, y: Any) -> Any:
    return x * 2


def test_a_rule_for_each_argument(finish: Any) -> None:
    f = custom_jvp(lambda x, n, y: np.sin(x) * y**n)
    f.defjvps(
        lambda dx, out, x, n, y: 7 * np.cos(x) * y**n * dx, None, lambda dy, out, x, n, y: np.sin(x) * n * y ** (n - 1) * dy
    )
    same(finish(grad(lambda x: f(x, 2, 3.0).sum()))(x3), 63 * np.cos(x3))
    same(finish(grad(lambda y: f(x3, 2, y).sum()))(2.0), 4 * np.sin(x3).sum())
    same(finish(jacfwd(lambda y: f(y, 2, y)))(2.0), 28 * np.cos(2.0) + 4 * np.sin(2.0))
    f.defjvps(None, None, None)
    same(finish(grad(lambda x: f(x, 2, x).sum()))(x3), np.zeros(3))
    f.defjvps(None)
    with pytest.raises(DerivativeError, match="has rules for 1 arguments, and is called with 3"):
        finish(grad(lambda x: f(x, 2, x).sum()))(x3)
    with pytest.raises(ValueError, match="no place for nondiff_argnums"):
        custom_jvp(power_of, nondiff_argnums=1).defjvps(None)


def power_of(x: Any, n: Any) -> Any:
    return x**n


def test_checked() -> None:
    @custom_jvp
    def f(x: Any) -> Any:
        return np.exp(x)

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * f(*primals)))
    check_grads(f, (x3,), order=3)
