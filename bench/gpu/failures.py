"""Failure reports: an error as data, with what is needed to mend it: the place, the first wrong element, the kernels' text."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

MESSAGE, TEXT = 3000, 9000  # characters that are kept
_LINE_OF_LOG = re.compile(r"\((\d+)\): (?:error|catastrophic error)|:(\d+):\d+: error")

Array = np.ndarray[Any, Any]


class Skipped(Exception):
    """A case cannot be run here; the message says why."""


class Mismatch(AssertionError):
    """A result is not NumPy's."""


def describe(error: BaseException) -> dict[str, Any]:
    """An error's class, message, place, and the texts that `with_texts` has put with it."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{_short(f.filename)}:{f.lineno} {f.name}" for f in frames]
    row: dict[str, Any] = {"error": type(error).__name__, "message": str(error)[:MESSAGE], "places": places[-8:]}
    if error.__cause__ is not None:
        row["cause"] = f"{type(error.__cause__).__name__}: {error.__cause__}"[:MESSAGE]
    for name in ("texts", "operands"):
        if hasattr(error, name):
            row[name] = getattr(error, name)
    return row


def _short(path: str) -> str:
    return re.sub(r".*/(?=(src|bench|tests)/)", "", path)


def with_texts(error: BaseException, text: Callable[[str], str], stages: Sequence[str] = ("kernels", "cuda")) -> None:
    """Put the texts of a program's stages with an error; of CUDA C++ what is about the line that the compiler names, if any."""
    texts = {}
    for stage in stages:
        try:
            whole = text(stage)
        except Exception as why:  # the stage may be what has failed
            texts[stage] = f"(no {stage}: {type(why).__name__}: {str(why)[:300]})"
            continue
        texts[stage] = around(whole, named_line(f"{error}\n{error.__cause__ or ''}")) if stage == "cuda" else whole[:TEXT]
    error.texts = texts  # type: ignore[attr-defined]  # errors may carry what they like


def named_line(log: str) -> int | None:
    """The first line of the source that a compiler's log complains of."""
    found = _LINE_OF_LOG.search(log)
    return int(found.group(1) or found.group(2)) if found else None


def around(source: str, line: int | None) -> str:
    """Of CUDA C++, the lines about one; without it, the head of what follows the prelude: from the first kernel on."""
    lines = source.splitlines()
    if line is not None:
        return "\n".join(f"{n:5d} {lines[n - 1]}" for n in range(max(1, line - 12), min(len(lines), line + 6) + 1))
    first = next((n for n, text in enumerate(lines) if "__global__" in text), 0)
    return "\n".join(lines[max(0, first - 2) :])[:TEXT]


def require_same(got: Sequence[Any], expected: Sequence[Any], ulps: float | None = None) -> None:
    """
    Args:
        ulps: allowed difference in units of the last place (0: the same bits, but for nan's); None for what sums and functions in
            another order may come to.

    Raises:
        Mismatch: kinds or values differ; the message begins with the first element that does.
    """
    if len(got) != len(expected):
        raise Mismatch(f"{len(got)} results, NumPy gives {len(expected)}")
    for n, (g, e) in enumerate(zip(got, expected)):
        difference(np.asarray(g), np.asarray(e), ulps, f"result {n}" if len(expected) > 1 else "result")


def difference(got: Array, expected: Array, ulps: float | None, where: str) -> None:
    """Raises `Mismatch` where two arrays are not the same."""
    if (got.dtype, got.shape) != (expected.dtype, expected.shape):
        raise Mismatch(f"{where}: {got.dtype}{list(got.shape)}, NumPy gives {expected.dtype}{list(expected.shape)}")
    wrong = ~close(got, expected, ulps)
    if not wrong.any():
        return
    flat = np.flatnonzero(wrong)
    first = tuple(map(int, np.unravel_index(flat[0], got.shape)))
    apart = np.abs(got[wrong].astype(np.complex128) - expected[wrong].astype(np.complex128))
    raise Mismatch(
        f"{where} {got.dtype}{list(got.shape)}: element {list(first)} is {got[first]!r}, NumPy gives {expected[first]!r}; "
        f"{flat.size} of {got.size} differ, by {np.nanmax(apart, initial=0.0):.3g} at most; flat places {flat[:6].tolist()} "
        f"to {int(flat[-1])}; there {got.ravel()[flat[:6]].tolist()}, NumPy {expected.ravel()[flat[:6]].tolist()}"
    )


TOLERANCE = {1: 0.0, 2: 2e-2, 4: 1e-4, 8: 1e-9}  # by bytes of a real number


def close(got: Array, expected: Array, ulps: float | None) -> Array:
    """Where two arrays of one kind are as near as they have to be."""
    if expected.dtype.kind == "c":
        real = close(np.asarray(got.real), np.asarray(expected.real), None)
        return np.asarray(real & close(np.asarray(got.imag), np.asarray(expected.imag), None))
    if expected.dtype.kind != "f":
        return np.asarray(got == expected)
    with np.errstate(all="ignore"):
        signs = np.signbit(got) == np.signbit(expected)
        same = ((got == expected) & (signs if ulps == 0 else True)) | (np.isnan(got) & np.isnan(expected))
        wide, wanted = got.astype(np.float64), expected.astype(np.float64)
        if ulps == 0:
            return np.asarray(same)
        if ulps is not None:
            spacing = np.spacing(np.abs(expected)).astype(np.float64)  # nan of what is not finite
            return np.asarray(same | (np.abs(wide - wanted) <= ulps * spacing))
        rtol = TOLERANCE[expected.dtype.itemsize]
        finite = np.abs(wanted[np.isfinite(wanted)])
        slack = rtol * float(finite.max(initial=1.0))
        near = (np.abs(wide - wanted) <= slack + rtol * np.abs(wanted)) & np.isfinite(wanted)
        return np.asarray(same | near)
