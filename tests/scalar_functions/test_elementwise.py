"""`jitml.elementwise`: Numba's functions on arrays, and inside of kernels, against the plain function of each element."""

from __future__ import annotations

import math
import pickle
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.llvm.runtime.cpu import host_cpu
from jitml.codegen.llvm.runtime.jit import optimize, parse
from jitml.scalar_functions import numba_code

numba = pytest.importorskip("numba")
NUMBERS = np.random.default_rng(0).standard_normal(67) * 5


@jitml.elementwise
def bend(x: Any, y: Any) -> Any:
    if x > y:
        return x - y
    if x == y:
        return 0.0 * x
    return y * y


@jitml.elementwise
def collatz(n: Any) -> Any:  # does not end for 0
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


@jitml.elementwise
def root(x: Any) -> Any:
    if x < 0:
        raise ValueError("negative")
    return math.sqrt(x)


@jitml.elementwise
def both(a: Any, b: Any) -> Any:
    return a and b > 1


@jitml.elementwise
def reciprocal(x: Any) -> Any:
    return 1 / x


@jitml.jit(strict=True)
def bent(x: Any, y: Any) -> Any:
    return bend(x, y)


def one_by_one(f: Callable[..., Any], *args: Any) -> Any:
    """The plain function of each element."""
    with np.errstate(all="ignore"):
        return np.vectorize(f.__wrapped__, otypes=[float])(*args)  # type: ignore[attr-defined]  # an elementwise function


def same(found: Any, wanted: Any) -> None:
    """Equal, and of the same signs of zero."""
    np.testing.assert_array_equal(found, wanted)
    assert np.array_equal(np.signbit(np.asarray(found, float)), np.signbit(np.asarray(wanted, float)))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2,), (9,), (67,), (3, 0), (5, 13)], ids=str)
def test_any_shape_is_computed_alike_inside_and_outside_of_programs(shape: tuple[int, ...]) -> None:
    x = np.resize(NUMBERS, shape) if 0 not in shape else np.zeros(shape)
    y = -x[..., :1] if shape else 0.25
    plain, inside = bend(x, y), bent(x, y)
    assert type(plain) is type(inside) and plain.dtype == inside.dtype == np.float64
    same(plain, inside)
    if x.size:
        same(plain, one_by_one(bend, x, y))
    else:
        assert plain.shape == inside.shape == x.shape


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u4", "i8", "u8", "f4", ">f8", ">i4"])
def test_dtypes_are_those_that_numba_finds(dtype: str) -> None:
    x = NUMBERS.astype(dtype)
    double = numba.njit(lambda x: x + x)
    f = jitml.elementwise(double)
    wanted = np.array([double(v) for v in x.astype(x.dtype.newbyteorder("="))])
    for found in (f(x), jitml.jit(strict=True)(f)(x)):
        same(found, wanted)
        assert str(found.dtype) == str(double.nopython_signatures[-1].return_type)


def test_memory_of_any_layout() -> None:
    whole = np.resize(NUMBERS, (20, 30))
    for x in (whole[::2, ::3], whole.T, whole[::-1], np.asfortranarray(whole), np.broadcast_to(whole[0], (20, 30))):
        wanted = one_by_one(bend, x, 1.0)
        same(bend(x, 1.0), wanted)
        same(bent(x, 1.0), wanted)

    def shifted(x: Any) -> Any:
        x[1:] = bend(x[:-1], x[1:])
        return x

    same(jitml.jit(strict=True)(shifted)(NUMBERS.copy()), shifted(NUMBERS.copy()))


def test_special_numbers_and_no_warnings() -> None:
    x = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e308, 5e-324, -1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for found in (reciprocal(x), jitml.jit(strict=True)(reciprocal)(x)):
            with np.errstate(all="ignore"):
                same(found, 1 / x)
    same(jitml.jit(strict=True)(both)(x > 0, np.arange(8)), (x > 0) & (np.arange(8) > 1))


def test_it_stands_in_the_loop_around_it() -> None:
    def whole(x: Any) -> Any:
        t = bend(np.exp(x), 1.0)
        return t.sum() + t.max()

    f = jitml.jit(whole, strict=True)
    lowered = f.lower(NUMBERS)
    assert str(lowered.kernels).count("kernel ") == 1
    assert re.search(r"bend_\w+\(exp\(a\[i0\]\), 1\.0\)", str(lowered.kernels))
    assert f(NUMBERS) == pytest.approx(whole(NUMBERS))


def test_llvm_makes_vectors_of_what_can_be() -> None:
    lowered = jitml.jit(lambda x: bend(x, 2.0), strict=True).lower(np.ones(1000))
    texts = [
        str(optimize(parse(part.text), host_cpu(), vectors=True)) for part in lowered.module.parts if part.effort == "vectorizer"
    ]
    assert any(re.search(r"fmul <\d+ x double>", text) for text in texts)


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 31, 64, 65])
def test_lanes_that_do_not_run_are_not_computed(size: int) -> None:
    """What does not end for 0 would not end there."""
    found = jitml.jit(strict=True)(collatz)(np.arange(1, size + 1))
    assert [*found] == [collatz.__wrapped__(n) for n in range(1, size + 1)]


def test_what_may_not_end_is_not_computed_in_vain() -> None:
    def guarded(n: Any, x: Any) -> Any:
        total = 0
        for _ in range(len(x)):  # does not run
            total += collatz(n)
        return total + (collatz(n) if n > 0 else 0)

    assert jitml.jit(strict=True)(guarded)(0, np.zeros(0)) == 0
    assert jitml.jit(strict=True)(guarded)(3, np.zeros(2)) == 21

    def known(flag: Any) -> Any:
        return collatz(0) if flag else 1

    assert jitml.jit(strict=True)(known)(np.bool_(False)) == 1


def test_exceptions_are_the_callers() -> None:
    f = jitml.jit(strict=True)(lambda x: root(x) + 1)
    same(f(np.arange(20.0)), np.sqrt(np.arange(20.0)) + 1)
    for call in (root, f):
        with pytest.raises(ValueError, match=r"^negative$"):
            call(np.array([1.0] * 18 + [-1.0]))
    same(f(np.arange(20.0)), np.sqrt(np.arange(20.0)) + 1)
    with pytest.raises(ValueError, match="broadcast"):
        bend(np.ones(3), np.ones(4))
    with pytest.raises(ValueError, match="broadcast"):
        bent(np.ones(3), np.ones(4))


def attribute(x: Any) -> Any:
    y = x + 1
    return y.colour


def pair(x: Any) -> Any:
    return x, x


def sometimes(x: Any) -> Any:
    if x > 1:
        return x
    return None


@pytest.mark.loose
@pytest.mark.parametrize(
    ("f", "x", "said", "line"),
    [
        (attribute, np.ones(3), r"Numba cannot compile attribute\(float64\): .*colour", "return y.colour"),
        (pair, np.ones(3), r"pair returns UniTuple\(float64 x 2\), which is no number", "def pair"),
        (sometimes, np.ones(3), r"sometimes returns OptionalType\(float64\), which is no number", "def sometimes"),
        (attribute, np.array(["a"]), r"Numba cannot compile attribute\(<U1\)", "y = x + 1"),
        (attribute, np.array([None]), r"Numba cannot compile attribute\(object\)", "def attribute"),
    ],
)
def test_what_numba_cannot_compile_is_said_with_the_users_line(f: Any, x: Any, said: str, line: str) -> None:
    made = jitml.elementwise(f)
    for call in (made, jitml.jit(made)):
        with pytest.raises(jitml.UnsupportedError, match=said) as raised:
            call(x)
        assert raised.value.source is not None
        assert raised.value.source.file == __file__ and line in raised.value.source.text


@pytest.mark.loose
def test_what_no_kernel_can_hold_runs_between_them() -> None:
    cube = jitml.elementwise(lambda x: x * x * x)
    f = jitml.jit(lambda x: cube(x) + 1)
    same(f(np.array([1 + 2j, 3j])).real, (np.array([1 + 2j, 3j]) ** 3 + 1).real.round())

    @jitml.elementwise
    def made_of_a_list(x: Any) -> Any:
        values = [x, 2 * x]
        values.append(3 * x)
        return values[-1]

    same(jitml.jit(lambda x: made_of_a_list(x) + 1)(NUMBERS), 3 * NUMBERS + 1)


softplus = jitml.custom_jvp(jitml.elementwise(lambda x: math.log1p(math.exp(x)) if x < 30 else x))


@softplus.defjvp
def _rule(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return softplus(x), dx / (1 + np.exp(-x))


def test_derivatives_are_those_that_custom_jvp_gives() -> None:
    slope = 1 / (1 + np.exp(-NUMBERS))
    total = jitml.grad(lambda x: softplus(x).sum())
    np.testing.assert_allclose(total(NUMBERS), slope)
    np.testing.assert_allclose(jitml.jit(strict=True)(total)(NUMBERS), slope)
    second = jitml.hessian(lambda x: softplus(x).sum())(NUMBERS[:5])
    np.testing.assert_allclose(second, np.diag(slope[:5] * (1 - slope[:5])))
    with pytest.raises(jitml.DerivativeError, match="bend is to be differentiated") as raised:
        jitml.grad(lambda x: bend(x, 1.0).sum())(NUMBERS)
    assert "custom_jvp" in str(raised.value)
    with pytest.raises(jitml.DerivativeError, match="bend is to be differentiated"):
        jitml.jit(jitml.grad(lambda x: bend(x, 1.0).sum()))(NUMBERS)
    held = jitml.grad(lambda x, k: (x * bend(k, 1.0)).sum())(NUMBERS, NUMBERS)  # of what does not move it is computed
    same(held, bend(NUMBERS, 1.0))


def test_rows() -> None:
    rows = np.resize(NUMBERS, (6, 11))
    same(jitml.vmap(bend, in_axes=(0, None))(rows, 1.0), bend(rows, 1.0))
    lowest = jitml.jit(jitml.vmap(lambda r: bend(r, r[0]).min()), strict=True)
    same(lowest(rows), bend(rows, rows[:, :1]).min(axis=1))
    with pytest.raises(ValueError, match=r"^negative$"):
        jitml.vmap(root)(rows)


def test_large_arrays_by_threads() -> None:
    x = np.resize(NUMBERS, 300_001)
    same(bent(x, 0.5), bend(x, 0.5))
    n = np.arange(1, 20_001)
    found = jitml.jit(strict=True)(lambda n: collatz(n).max())(n)
    assert found == collatz(n).max()


def test_it_stands_for_the_function() -> None:
    assert bend.__name__ == "bend"
    assert pickle.loads(pickle.dumps(bend)) is bend
    assert repr(collatz) == "<elementwise collatz>"
    same(bend(y=1.0, x=2.0), 1.0)
    assert jitml.elementwise(lambda x, k=3: x * k)(2) == 6
    with pytest.raises(TypeError, match="missing a required argument"):
        bend(1.0)
    with pytest.raises(TypeError, match="takes a function, not 3"):
        jitml.elementwise(3)  # type: ignore[arg-type]  # what is wrong here
    same(jitml.elementwise(math.erf)(np.array([0.0, 0.5])), [0.0, math.erf(0.5)])


def test_functions_that_are_compiled_for_some_types_get_these() -> None:
    f = jitml.elementwise(numba.njit(["float64(float64)"])(lambda x: x / 2))
    same(f(np.arange(5)), np.arange(5) / 2)
    same(jitml.jit(strict=True)(f)(np.arange(5)), np.arange(5) / 2)


def test_another_function_by_the_same_name_is_seen() -> None:
    space: dict[str, Any] = {"f": jitml.elementwise(lambda x: x + 1)}

    def call(x: Any) -> Any:
        return space["f"](x)

    compiled = jitml.jit(call)
    same(compiled(NUMBERS), NUMBERS + 1)
    space["f"] = jitml.elementwise(lambda x: x - 1)
    same(compiled(NUMBERS), NUMBERS - 1)


def test_without_numba_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "numba", None)
    with pytest.raises(ImportError, match=r"pip install 'jitml\[numba\]'"):
        jitml.elementwise(attribute)


def test_the_code_of_a_function_is_text_alone() -> None:
    """It has no address of this process: another one may take what is made of it from the disk."""
    one, other = (numba_code.code_of(numba_code.called_by_numba(bend.__wrapped__), (np.dtype("f8"),) * 2) for _ in range(2))
    assert one == other
    assert isinstance(one, numba_code.KernelCode) and one.raises is None and one.is_total
    assert "inttoptr" not in one.value.text
