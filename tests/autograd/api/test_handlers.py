"""Functions that handle exceptions run on a tape in such a call: the handler is differentiated where it is entered."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import signal

import jitml
from jitml.errors import UnsupportedError
from support.effort import named, pairs

Function = Callable[..., Any]
Array = np.ndarray[Any, Any]


def a_cholesky_factor(x: Any) -> Any:
    try:
        L = np.linalg.cholesky(np.outer(x, x) - np.eye(3))
    except np.linalg.LinAlgError:
        L = np.linalg.cholesky(np.outer(x, x) + np.eye(3))
    return L.sum()


def an_inverse(x: Any) -> Any:
    try:
        y = np.linalg.inv(np.diag(np.floor(x) * x)).sum()
    except np.linalg.LinAlgError:
        y = (x**3).sum()
    return y * x[0]


def an_index(x: Any) -> Any:
    try:
        return x[int(x[0])] ** 2
    except IndexError:
        return (x**2).sum()


def an_index_in_a_loop(x: Any) -> Any:
    s = 0.0
    for i in range(5):
        try:
            s = s + x[i] ** 2 * (i + 1)
        except IndexError:
            s = s + 10 * x[0]
    return s


def an_index_from_data_in_a_loop(x: Any) -> Any:
    s = 0.0
    for i in range(3):
        try:
            s = s + x[int(x[i])] ** 2
        except IndexError:
            s = s * x[i]
    return s


def around_a_loop(x: Any) -> Any:
    s = x[0]
    try:
        for i in range(3):
            s = s * x[int(x[i])]
    except IndexError:
        s = s**2
    return s


def an_infinite_integer(x: Any) -> Any:
    try:
        n = int(x[0] * np.inf)
    except OverflowError:
        return x.sum() ** 2
    return x[0] * n


def a_division_of_pythons(x: Any) -> Any:
    try:
        return 1.0 / float(x[0] - x[0]) * x[1]
    except ZeroDivisionError:
        return (x**2).sum()


def a_floating_point_error(x: Any) -> Any:
    with np.errstate(all="raise"):
        try:
            y = np.log(x - x[0]).sum()
        except FloatingPointError:
            return (x**2).sum()
    return y


def a_floating_point_error_of_the_caller(x: Any) -> Any:
    try:
        y = np.log(x - x[0]).sum()
    except FloatingPointError:
        return (x**2).sum()
    return y


def a_root_of_pythons(x: Any) -> Any:
    try:
        y = math.sqrt(-x[0])
    except ValueError:
        y = x[0] ** 3
    return y * x[1]


def a_power_of_pythons(x: Any) -> Any:
    try:
        y = float(x[0]) ** 1e5
    except OverflowError:
        y = x[0] ** 3
    return y * x[1]


def helper(x: Any) -> Any:
    return np.linalg.cholesky(np.outer(x, x) - np.eye(3))


def what_a_helper_raises(x: Any) -> Any:
    try:
        L = helper(x)
    except Exception:
        L = x * 2
    return L.sum() ** 2


def what_a_manager_suppresses(x: Any) -> Any:
    y = x * x
    with contextlib.suppress(np.linalg.LinAlgError):
        y = np.linalg.cholesky(np.outer(x, x) - np.eye(3))
    return y.sum()


def in_a_branch(x: Any) -> Any:
    if x[0] > 0:
        try:
            y = x[int(x[0]) + 7]
        except IndexError:
            y = x[1] ** 2
    else:
        y = x[2]
    return y * 3


def what_the_function_raises(x: Any) -> Any:
    try:
        if x[0] > 0:
            raise ValueError(f"{x[0]}")
        y = x[1]
    except ValueError:
        y = x[0] ** 2
    return y * x[0]


def through_a_finally(x: Any) -> Any:
    try:
        try:
            y = x[int(x[0]) + 7]
        finally:
            x = x * 2
    except IndexError:
        y = x[1] ** 2
    return y * 3


def after_writes(x: Any) -> Any:
    y = np.zeros(3)
    try:
        for i in range(5):
            y[i] = x[i % 3] ** 2
    except IndexError:
        y[0] = y[2] * x[0]
    return y.sum()


def an_assert(x: Any) -> Any:
    try:
        assert x[0] < 0, "m"
        y = x[0]
    except AssertionError as e:
        y = x[1] ** 2 * (2 if str(e).startswith("m") else 1)
    return y


def raised_again(x: Any) -> Any:
    try:
        y = x[int(x[0]) + 7]
    except IndexError as e:
        raise ValueError(f"bad {x[0]}") from e
    return y


def a_floating_point_error_in_a_loop(x: Any) -> Any:
    s = 0.0
    with np.errstate(over="raise", divide="raise"):
        for i in range(3):
            try:
                s = s + 1.0 / (x[i] - x[1]) * x[0]
            except FloatingPointError:
                s = s + x[i] ** 2
    return s


def a_floating_point_error_in_a_branch(x: Any) -> Any:
    y = x[1]
    with np.errstate(all="raise"):
        try:
            if x[0] > 0:
                y = x[0] * 1e300 * 1e300
            y = y * 1.0
        except FloatingPointError:
            y = x[0] ** 2
    return y


def a_logarithm_of_pythons_in_a_loop(x: Any) -> Any:
    s = x[0]
    for i in range(3):
        try:
            s = s + math.log(x[i] - x[1]) * x[2]
        except ValueError:
            s = s * x[i]
    return s


def beside_a_long_loop(x: Any) -> Any:
    s = x[0]
    for _ in range(4000):  # more operations than loops are unrolled to, and than Python goes deep
        s = s * 0.9995 + 1e-3
    try:
        y = x[int(x[0]) + 7]
    except IndexError:
        y = x[1] ** 2
    return y * s


def around_a_long_loop(x: Any) -> Any:
    s, i = x[0], 0
    try:
        for i in range(300):
            s = s * 0.99 + x[i // 100]
    except IndexError:
        pass
    return s * i


PROGRAMS: list[Function] = [
    a_cholesky_factor,
    an_inverse,
    an_index,
    an_index_in_a_loop,
    an_index_from_data_in_a_loop,
    around_a_loop,
    an_infinite_integer,
    a_division_of_pythons,
    a_floating_point_error,
    a_floating_point_error_of_the_caller,
    a_root_of_pythons,
    a_power_of_pythons,
    what_a_helper_raises,
    what_a_manager_suppresses,
    in_a_branch,
    what_the_function_raises,
    through_a_finally,
    after_writes,
    an_assert,
    raised_again,
    a_floating_point_error_in_a_loop,
    a_floating_point_error_in_a_branch,
    a_logarithm_of_pythons_in_a_loop,
    beside_a_long_loop,
    around_a_long_loop,
]

POINTS = [np.array([1.5, 2.5, 0.5]), np.array([-0.7, 1.2, 5.4]), np.array([3.3, 1.2, 5.4])]


def both(value: Any, slope: Any) -> tuple[Any, Any]:
    return value, slope


def pushed(f: Function) -> Function:
    return lambda x: (jitml.jvp(f, (x,), (x,))[0], np.array([jitml.jvp(f, (x,), (d,))[1] for d in np.eye(3)]))


def pulled(x: Any, f: Function) -> tuple[Any, Any]:
    y, pull = jitml.vjp(f, x)
    return y, pull(1.0)[0]


TRANSFORMS: dict[str, Callable[[Function], Function]] = {
    "value_and_grad": jitml.value_and_grad,
    "jit value_and_grad": lambda f: jitml.jit(jitml.value_and_grad(f)),
    "value_and_grad in jit": lambda f: jitml.jit(lambda x: both(*jitml.value_and_grad(f)(x))),
    "value_and_grad checkpoint": lambda f: jitml.value_and_grad(jitml.checkpoint(f)),
    "jvp": pushed,
    "vjp": lambda f: lambda x: pulled(x, f),
    "vmap": lambda f: lambda x: (jitml.vmap(f)(np.stack([x, x]))[1], jitml.vmap(jitml.grad(f))(np.stack([x, x]))[0]),
    "grad vmap": lambda f: lambda x: (f(x), jitml.grad(lambda z: jitml.vmap(f)(np.stack([z, z])).sum())(x) / 2),
}


CASES = pairs(PROGRAMS, TRANSFORMS, each=3)


def by_differences(f: Function, x: Array) -> tuple[Any, Array]:
    steps = 1e-6 * np.eye(3)
    return f(x), np.array([(f(x + step) - f(x - step)) / 2e-6 for step in steps])


def outcome(f: Function, x: Array) -> Any:
    try:
        return f(x)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.loose
@pytest.mark.parametrize(("program", "name"), CASES, ids=named(CASES))
def test_handlers_are_differentiated_where_they_are_entered(program: Function, name: str) -> None:
    transformed = TRANSFORMS[name](program)
    is_of_caller = program is a_floating_point_error_of_the_caller
    for x in (*POINTS, POINTS[0]):
        with np.errstate(all="raise" if is_of_caller else "ignore"):
            wanted = outcome(lambda x: by_differences(program, x), x)
            found = outcome(transformed, x)
        if isinstance(wanted[0], type):
            assert found == wanted
        else:
            np.testing.assert_allclose(found[0], wanted[0])
            np.testing.assert_allclose(found[1], wanted[1], rtol=1e-4, atol=1e-5)


@pytest.mark.loose
def test_what_happens_beside_a_handled_exception_happens_once(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        print("before")
        try:
            y = x[int(x[0]) + 7]
        except IndexError as error:
            print("handled", error)
            y = x[1]
        return y * y

    assert jitml.grad(f)(POINTS[0]).tolist() == [0.0, 5.0, 0.0]
    assert capsys.readouterr().out == "before\nhandled index 8 is out of bounds for axis 0 with size 3\n"


def test_what_cannot_be_followed_names_the_try() -> None:
    def f(x: Any) -> Any:
        s = x[0]
        try:
            for i in range(60_000):
                s = s * 0.999 + x[i // 19_999]
        except IndexError:
            s = s * 2
        return s

    for transformed in (jitml.grad(f), jitml.jit(jitml.grad(f))):
        with pytest.raises(UnsupportedError, match="exceptions may be handled") as found:
            transformed(POINTS[0])
        assert found.value.source is not None
        assert found.value.source.text == "try:"


def a_filter(x: Any) -> Any:
    try:
        h = signal.firwin(5, x[0])[2]
    except ValueError:
        h = 100.0
    return h + x[1]


def eigenvalues(x: Any) -> Any:
    try:
        h = np.linalg.eig(np.outer(x, np.array([1.0, 2.0, 3.0])))[0].real.max()
    except np.linalg.LinAlgError:
        h = 100.0
    return h + x[1]


@pytest.mark.loose
@pytest.mark.parametrize(
    ("program", "good", "bad"),
    [(a_filter, [0.3, 2.0, 0.5], [-1.0, 2.0, 0.5]), (eigenvalues, [1.0, 2.0, 3.0], [np.nan, 2.0, 3.0])],
)
@pytest.mark.parametrize("transform", [jitml.jit, lambda f: lambda x: jitml.vmap(f)(x[None])[0]])
def test_what_is_raised_while_tracing_is_handled_in_that_call_alone(
    program: Function, good: Any, bad: Any, transform: Callable[[Function], Function]
) -> None:
    for points in ((bad, good, bad), (good, bad, good)):
        transformed = transform(program)
        for x in map(np.array, points):
            np.testing.assert_allclose(transformed(x), program(x))
