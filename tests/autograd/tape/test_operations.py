"""Operations on the tape: each has the derivative that it has where it is captured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from optree import tree_leaves, tree_map

import jitml
from jitml import DerivativeError, jvp, vjp
from support.effort import FULL
from support.function_table import ROWS

pytestmark = pytest.mark.loose
TURNS = 1 if FULL else 9  # every so many rows are looked at
# Nothing tells of them what is on the tape: refused there.
REFUSED = {"np.c_", "np.r_", "np.mgrid", "np.frombuffer", "np.multiply.at", "np.divide.at", "np.maximum.at", "np.minimum.at"}
# Which way they go depends on the numbers, or they depend on what is traced beside them.
WITHOUT_RULE = {"np.arange", "np.nanpercentile", "np.nanquantile"}


def complexes(x: Any) -> Any:
    return x * (1 + 0.3j) + 0.2j * np.sin(np.arange(x.size)).reshape(x.shape)


def along(y: Any) -> Any:
    drawn, y = np.random.default_rng(1), np.asarray(y)
    return (drawn.normal(size=y.shape) + (1j * drawn.normal(size=y.shape) if y.dtype.kind == "c" else 0)).astype(y.dtype)[()]


CASES = [
    (name, kind, f, args if kind == "f" else tuple(map(complexes, args)))
    for name, rows in ROWS.items()
    if name not in REFUSED | WITHOUT_RULE
    for kinds, f, args in rows
    for kind in kinds
][::TURNS]


@pytest.mark.parametrize(("f", "args"), [case[2:] for case in CASES], ids=[f"{name}-{kind}" for name, kind, *_ in CASES])
def test_derivatives_are_those_of_captured_functions(f: Any, args: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from jitml.autograd.api import transform_driver

    def both() -> Any:
        y, pull = vjp(f, *args)
        return y, pull(tree_map(along, y)), jvp(f, args, tuple(map(along, args)))

    expected = both()
    capture = transform_driver.run

    def refuse(*given: Any) -> Any:
        if transform_driver.current_trace() is None:
            raise jitml.UnsupportedError("not this time")
        return capture(*given)

    monkeypatch.setattr(transform_driver, "run", refuse)
    monkeypatch.setattr(transform_driver, "_refused", type(transform_driver._refused)())
    for ours, theirs in zip(tree_leaves(both()), tree_leaves(expected), strict=True):
        assert type(ours) is type(theirs) and ours.dtype == theirs.dtype if hasattr(theirs, "dtype") else True
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9 * max(1, np.abs(theirs).max(initial=0)))


@pytest.mark.parametrize("name", sorted(REFUSED & ROWS.keys()))
def test_what_nothing_tells_of_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from jitml.autograd.api import transform_driver

    def refuse(*given: Any) -> Any:
        raise jitml.UnsupportedError("not this time")

    monkeypatch.setattr(transform_driver, "run", refuse)
    monkeypatch.setattr(transform_driver, "_refused", type(transform_driver._refused)())
    _, f, args = ROWS[name][0]
    with pytest.raises((DerivativeError, TypeError, AttributeError)):
        y, pull = vjp(f, *args)
        pull(tree_map(along, y))
