"""Linear algebra and Fourier transforms in programs on an emulated device: views, stacks, dtypes, loops, errors, derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.config import CONFIG
from support.cuda_emulation import has_compiler
from support.cuda_emulation.device import emulated
from support.effort import FULL

pytestmark = pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")

RNG = np.random.default_rng(11)
A, B = RNG.standard_normal((12, 12)) + 5 * np.eye(12), RNG.standard_normal((12, 3))
STACK = RNG.standard_normal((4, 5, 5)) + 4 * np.eye(5)
Z = RNG.standard_normal(24) + 1j * RNG.standard_normal(24)


def _views(a: Any, b: Any, s: Any) -> Any:
    halves = np.linalg.solve(a[::2, ::-2], b[::2]), np.linalg.inv(a.T), np.linalg.det(a[::-1]), np.linalg.solve(a, b[:, 0])
    return *halves, np.linalg.solve(s, b[:5]), np.linalg.solve(s[:, None], b[:5, :1]), *np.linalg.slogdet(s[::-1])


def _dtypes(k: Any, swapped: Any, single: Any) -> Any:
    found = np.linalg.inv(k), np.linalg.det(k), np.linalg.inv(swapped), np.linalg.inv(single), *np.linalg.slogdet(single)
    return *found, np.fft.fft(single[0]).real, np.fft.fft(k)


def _nothing(a: Any, s: Any) -> Any:
    return np.linalg.inv(s), np.linalg.det(s), np.linalg.det(a), *np.linalg.slogdet(a)


def _loops(a: Any, b: Any) -> Any:
    x = b
    for _ in range(4):
        x = np.linalg.solve(a, x) + 0.1 * x
    steps = 0
    while np.linalg.det(a) < 1e12 and steps < 50:
        a = a * 1.5
        steps += 1
    return x, a, steps


def _in_place(a: Any, b: Any) -> Any:
    b[:] = np.linalg.solve(a, b)
    return b.sum()


def _caught(a: Any) -> Any:
    try:
        return np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        return np.zeros_like(a)


def _loss(a: Any) -> Any:
    smooth = (abs(np.fft.rfft(a, axis=0)) ** 2).sum() + np.fft.irfft(np.fft.rfft(a[0]), 14).sum()
    logarithm = np.linalg.slogdet(a @ a.T + np.eye(12))[1]
    return smooth + logarithm + np.linalg.solve(a, B).sum() + (np.linalg.cholesky(a @ a.T) ** 2).sum()


def _transforms(z: Any) -> Any:
    plane, x = z.reshape(4, 6), z.real * 9
    given = np.fft.fft(z[::-2]), np.fft.ifft(plane, axis=0), np.fft.fftn(z.reshape(2, 3, 4)), np.fft.hfft(z[:9])
    sized = np.fft.fft(z, 40), np.fft.fft(z, 10), np.fft.fft2(plane.T), np.fft.fft(x.astype(np.int32)), np.fft.ihfft(x)
    return *given, *sized, np.fft.rfftn(x.reshape(4, 6)), np.fft.irfft2(np.fft.rfft2(x.reshape(4, 6)), (4, 6))


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "views and stacks": (_views, (A, B, STACK)),
    "dtypes": (_dtypes, (np.array([[2, 1], [7, 4]]), A.astype(">f8"), A.astype("f4"))),
    "nothing": (_nothing, (np.zeros((0, 0)), np.zeros((0, 3, 3)))),
    "loops": (_loops, (A, B)),
    "transforms": (_transforms, (Z,)),
    "derivatives": (jitml.grad(_loss), (A,)),
}
MORE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "in place": (_in_place, (A, B)),
    "caught": (_caught, (-A @ A.T,)),
    "complex": (lambda z: np.linalg.solve(z[:16].reshape(4, 4), z[:4]), (Z,)),
    "batching": (jitml.vmap(lambda s: np.linalg.inv(s) @ s[0]), (STACK,)),
}


def _flat(x: Any) -> list[Any]:
    return [leaf for item in x for leaf in _flat(item)] if isinstance(x, tuple) else [x]


@pytest.mark.parametrize("name", PROGRAMS | MORE if FULL else PROGRAMS)
def test_programs_give_numpys_answers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, given = (PROGRAMS | MORE)[name]
    wanted_arguments, arguments = ([x.copy() for x in given] for _ in range(2))
    expected = function(*wanted_arguments)
    monkeypatch.setattr("jitml.codegen.backend.CONFIG", replace(CONFIG, backend="cuda"))
    with emulated(order=1) as device:
        jitted = jitml.jit(function, verify="never")
        results = _flat(jitted(*arguments))
        assert device.launches or name in ("nothing", "caught")
        (variant,) = jitted.variants
        assert bool(variant.replays) == (name == "caught")
    pairs = [*zip(results, _flat(expected), strict=True), *zip(arguments, wanted_arguments, strict=True)]
    for got, wanted in pairs:
        error = 2e-5 if np.asarray(wanted).dtype in (np.float32, np.complex64) else 1e-13
        size = float(np.max(abs(np.asarray(wanted)), initial=1))
        assert np.asarray(got).dtype == np.asarray(wanted).dtype
        np.testing.assert_allclose(got, wanted, rtol=0, atol=error * size)
