"""np.fft agrees with NumPy: every function, lengths, axes, norms, dtypes; and in programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml
from support.against_numpy import check, function_of

RNG = np.random.default_rng(0)
R = RNG.normal(size=(4, 6))
Z = R + 1j * RNG.normal(size=(4, 6))
EXPRESSIONS = """
fft(z); fft(r); ifft(z); ifft(r); fft(z, axis=0); fft(z, 4); fft(z, 9); fft(r, 9, axis=0); rfft(r); rfft(r, axis=0)
rfft(r, 5); rfft(r, 9); irfft(z); irfft(z, 7); irfft(z, 12, axis=0); irfft(r); hfft(z); hfft(z, 9); ihfft(r); ihfft(r, 5)
fft2(z); fft2(r, s=(3, 8)); ifft2(z); fftn(z); fftn(z, axes=(0,)); fftn(z, axes=(1, 0, 1)); fftn(r, s=(5, 5), axes=(0, 1))
ifftn(z); rfft2(r); rfftn(r); rfftn(r, axes=(1, 0)); rfftn(r, s=(3, 8), axes=(0, 1)); irfft2(z); irfftn(z)
irfftn(z, s=(3, 7), axes=(0, 1)); fftshift(fft(z)); ifftshift(z); fftfreq(5); fftfreq(6, 0.1); rfftfreq(7, 2.0)
fft(z.astype(np.complex64)); rfft(r.astype(np.float32)); fft(r.astype(np.float16)); fft((r * 9).astype(int)); irfft(rfft(r))
ifft(fft(z) * fft(r)).real; fft(z[::2, ::-1]); fft(z[0] * 2 + 1); abs(fft(r)) ** 2; fft(z).sum(axis=0)
"""
LINES = [e.strip() for line in EXPRESSIONS.strip().splitlines() for e in line.split("; ")]
NORMS = [f"{f}, norm={{n}})" for f in ("fft(z", "ifft(z", "rfft(r", "irfft(z", "hfft(z", "ihfft(r", "fftn(z", "irfftn(z")]


def with_names(expression: str) -> Any:
    f = function_of("z, r", expression)
    f.__globals__.update({name: getattr(np.fft, name) for name in np.fft.__all__})
    return f


@pytest.mark.parametrize("expression", LINES)
def test_expressions(expression: str) -> None:
    check(with_names(expression), Z, R, ulps=64)


@pytest.mark.parametrize("norm", ["None", "'backward'", "'ortho'", "'forward'"])
@pytest.mark.parametrize("expression", NORMS)
def test_norms(expression: str, norm: str) -> None:
    check(with_names(expression.format(n=norm)), Z, R, ulps=64)


def split_step(psi: Any, potential: Any, steps: int) -> Any:
    k = 2 * np.pi * np.fft.fftfreq(psi.size, 0.1)
    half, kinetic = np.exp(-0.5j * potential * 0.01), np.exp(-0.5j * k**2 * 0.01)
    for _ in range(steps):
        psi = half * np.fft.ifft(kinetic * np.fft.fft(half * psi))
    return psi


def low_pass(signal: Any) -> Any:
    spectrum = np.fft.rfft(signal)
    spectrum[5:] = 0
    return np.fft.irfft(spectrum, len(signal))


def convolved(a: Any, b: Any) -> Any:
    n = len(a) + len(b) - 1
    return np.fft.irfft(np.fft.rfft(a, n) * np.fft.rfft(b, n), n)


def test_programs() -> None:
    x = np.linspace(-3, 3, 64)
    check(split_step, np.exp(-(x**2)).astype(complex), x**2 / 2, 20, ulps=256)
    check(low_pass, RNG.normal(size=48), ulps=64)
    check(convolved, RNG.normal(size=20), RNG.normal(size=13), ulps=64)


MISTAKES = ((lambda z: np.fft.fft(z, 0), ValueError), (np.fft.rfft, TypeError), (lambda z: np.fft.fft(z, norm="x"), ValueError))


@pytest.mark.parametrize("f, error", MISTAKES)
def test_mistakes_are_numpys(f: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        jitml.jit(f)(Z)


def test_they_are_no_host_calls() -> None:
    f = jitml.jit(lambda z: np.fft.fft(z) * 2, host_calls="error")
    np.testing.assert_allclose(f(Z), np.fft.fft(Z) * 2)
