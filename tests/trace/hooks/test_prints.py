"""What a function prints, logs and writes: each line once, in its order, and those alone of what has really run."""

from __future__ import annotations

import contextlib
import csv
import io
import logging
import pprint
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import UnsupportedError

LOG = logging.getLogger("test_prints")


class ToStdout(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        print("LOG", record.getMessage())


@pytest.fixture(autouse=True)
def to_stdout() -> Any:
    handler = ToStdout()
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
    yield
    LOG.removeHandler(handler)


def behind_a_break(x: Any) -> Any:
    last = None
    for i in range(3):
        x = x * 0.5
        print("step", i)
        if x[0] > 100:
            break
        last = x
    return last


def under_a_condition_in_a_while(x: Any) -> Any:
    last, e, n = None, 9.0, 0
    while e > 1:
        n += 1
        x, e = x * 0.5, np.abs(x).sum()
        print("step", n)
        last = x if last is None else last + x
        if e < 2:
            print("converged")
            break
        elif n > 50:
            break
    return last


def as_random_numbers_say(x: Any) -> Any:
    for i in range(4):
        ids = np.random.choice(x.shape[0], size=3, replace=False)
        n = 0
        for k in range(x.shape[0]):
            if abs(x[k] - x[ids].mean()) <= 0.5:
                n += 1
        print("try", i, n)
        if n / x.shape[0] > 0.7:
            return n, ids
    return n, None


def drawn_under_a_condition(x: Any) -> Any:
    a = np.random.rand()
    print("a", round(a, 3))
    if a > 0.5:
        c = np.random.rand()
        print("c", round(c, 3))
    d = np.random.rand()
    print("d", round(d, 3))
    return a, d


def nested(x: Any) -> Any:
    for i in range(2):
        if x[0] < 1:
            print("small", i)
            for j in range(2):
                print(" inner", j, x[j])
        LOG.info("loop %s", i)
    print("end")
    return x


def to_streams(x: Any) -> Any:
    print("a", x[0], sep="-", end=";\n", file=sys.stdout, flush=True)
    sys.stdout.write(f"{x[1]}\n")
    pprint.pprint({"b": x[2]})
    return x


def returned_early(x: Any) -> Any:
    k = 0
    for i in range(3):
        if x[i] >= 1:
            print("hit", i)
            if k:
                return i
            k = 1
    print("none")
    return -1


PROGRAMS: list[Callable[[Any], Any]] = [
    behind_a_break, under_a_condition_in_a_while, as_random_numbers_say, drawn_under_a_condition, nested, to_streams,
    returned_early,
]  # fmt: skip


def seen(f: Callable[[Any], Any], x: Any, seed: int) -> str:
    """What is printed, to a stream that is a new one each time."""
    np.random.seed(seed)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        print(f(x), np.random.rand())
    return out.getvalue()


@pytest.mark.parametrize(
    "f",
    [pytest.param(f, marks=[pytest.mark.loose] * (f in (nested, to_streams))) for f in PROGRAMS],
    ids=lambda f: f.__name__,
)
def test_each_line_once_and_in_order(f: Callable[[Any], Any]) -> None:
    compiled = jitml.jit(f)
    for n, x in enumerate((np.arange(4.0), np.arange(4.0), np.arange(4.0) - 2, np.arange(4.0) + 6)):
        assert seen(compiled, x.copy(), n) == seen(f, x.copy(), n)


def test_what_a_library_writes_to_a_stream_is_refused() -> None:
    def f(x: Any) -> Any:
        csv.writer(sys.stdout).writerow([1, 2])
        return x

    with pytest.raises(UnsupportedError, match=r"once, while the function is traced"):
        jitml.jit(f)(np.ones(2))
