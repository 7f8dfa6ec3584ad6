"""Objects of libraries that operators and items of others give are the function's own, and new at each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import jitml

pytestmark = [pytest.mark.loose, pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")]


def _product() -> Any:
    return scipy.sparse.eye(3, format="csr") * 5


def _in_place(x: Any) -> Any:
    v = _product()
    v.data *= 2
    return v


def _by_another_name(x: Any) -> Any:
    v = _product()
    w = v.data
    w *= 2
    return [v, v.data]


def _an_entry(x: Any) -> Any:
    v = -_product()
    v[0, 0] = 9.0
    return v


def _out(x: Any) -> Any:
    v = _product() + _product()
    np.multiply(v.data, 2, out=v.data)
    return v


def _used(x: Any) -> Any:
    v = _product()
    v.data *= 2
    return v @ x


def _a_row(x: Any) -> Any:
    v = _product()[1]
    v.data += 1
    return v


def _doubled(x: Any) -> Any:
    v = _product()
    v *= 2
    v.data -= 1
    return v


def _shown(result: Any) -> list[Any]:
    parts = result if isinstance(result, list) else [result]
    return [part.toarray().tolist() if scipy.sparse.issparse(part) else np.asarray(part).tolist() for part in parts]


@pytest.mark.parametrize("function", [_in_place, _by_another_name, _an_entry, _out, _used, _a_row, _doubled])
def test_they_are_new_at_each_call(function: Callable[[Any], Any]) -> None:
    compiled = jitml.jit(function, verify="never")
    for k in (1.0, 2.0, 3.0):
        first, expected = compiled(np.ones(3) * k), function(np.ones(3) * k)
        assert _shown(first) == _shown(expected)
        assert compiled(np.ones(3) * k) is not first
