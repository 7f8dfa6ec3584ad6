"""What type checkers have to know of jitted functions: each `assert_type` holds for them, and when the file is run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, assert_type

import numpy as np
from numpy.typing import NDArray

import jitml
from jitml import jit
from jitml.typing import ArrayLike, JitOptions, Jitted

Floats = NDArray[np.float64]
Number = TypeVar("Number")

x: Floats = np.ones(3)


@jit
def scale(x: Floats, factor: float = 2.0) -> Floats:
    return np.multiply(x, factor)


@jit(fastmath=True, static_argnames="n")
def power(x: Floats, n: int) -> Floats:
    return np.power(x, n)


@jit
def same(value: Number) -> Number:
    return value


def total(x: Floats, *, weight: float = 1.0) -> float:
    return float(x.sum()) * weight


def use_parameters_and_results() -> None:
    assert_type(scale(x), Floats)
    assert_type(scale(x, factor=3.0), Floats)
    assert_type(power(x, 2), Floats)
    assert_type(power(x, n=2), Floats)
    assert_type(same(2.0), float)
    assert_type(same("text"), str)
    assert_type(scale.__name__, str)


def use_attributes() -> None:
    assert_type(scale.explain(x, factor=2.0).upper(), str)
    assert_type(jitml.explain(scale, x).upper(), str)
    assert_type(scale.lower(x, 2.0).schedules, dict[str, str])
    assert_type(scale.function(x), Floats)
    assert_type([variant.reason for variant in scale.variants], list[str])
    scale.clear_cache()


def use_calls_of_jit() -> None:
    compiled = jit(total)
    assert_type(compiled(x, weight=2.0), float)
    assert_type(jit(total, threads=1)(x), float)
    assert_type(jit(scale)(x, 2.0), Floats)
    partial(jit, fastmath=True)(total)(x)
    options: JitOptions = {"fastmath": ["contract"], "dynamic": True}
    assert_type(jit(total, **options)(x), float)
    annotated: Jitted[[Floats], float] = jit(total)
    assert_type(annotated(x), float)
    assert_type(jit(np.sin)(x), Any)
    assert_type(jit(np.sin)(1.0), Any)


def twice(f: Callable[[Floats], Floats], x: Floats) -> Floats:
    return f(f(x))


def use_as_arguments() -> None:
    assert_type(twice(scale, x), Floats)
    assert_type(jit(twice)(scale, x), Floats)
    assert_type(list(map(scale, [x, x])), list[Floats])


def as_row(x: ArrayLike) -> NDArray[Any]:
    return np.asarray(x).reshape(1, -1)


def use_array_like() -> None:
    assert_type(as_row([1.0, 2.0]), NDArray[Any])
    assert_type(as_row(x), NDArray[Any])
    assert_type(as_row(2.0), NDArray[Any])
    assert_type(jitml.asarray([1.0], device="cpu"), NDArray[Any])


def on_a_device() -> tuple[jitml.Array, NDArray[Any]]:
    y = jitml.asarray(x, device="cuda")
    assert_type(y, jitml.Array)
    assert_type(as_row(y), NDArray[Any])
    return y, as_row(y)
