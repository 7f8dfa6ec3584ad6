"""The registry covers what the documentation says, and names are NumPy's."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

import jitml.numpy
from jitml.numpy.supported import array_functions, table
from jitml.trace.values.registry import FUNCTIONS

pytestmark = pytest.mark.every_row

PAGE = Path(__file__).parents[2] / "docs" / "supported.md"


def test_the_page_is_what_make_docs_writes() -> None:
    if not np.__version__.startswith("2.4."):
        pytest.skip("the page lists the functions of NumPy 2.4")
    assert PAGE.read_text() == table(), "run make docs"


def test_the_drop_in_module_has_numpys_own_functions() -> None:
    assert jitml.numpy.sin is np.sin and jitml.numpy.zeros is np.zeros and jitml.numpy.linalg is np.linalg
    assert set(dir(np)) == set(dir(jitml.numpy))
    assert jitml.numpy.shape((3,)) == (1,) and jitml.numpy.einsum is np.einsum
    with pytest.raises(AttributeError):
        jitml.numpy.no_such_name  # noqa: B018  # the lookup is what is tested


# Options that numpy has and that mean nothing to an implementation which is always the same.
_TAKEN_BY_REST = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


@pytest.mark.parametrize("function", [f for f in array_functions() if f in FUNCTIONS and not isinstance(f, np.ufunc)])
def test_signatures_take_what_numpys_take(function: object) -> None:
    try:
        expected = inspect.signature(function).parameters  # type: ignore[arg-type]  # they are all callable
    except ValueError:
        pytest.skip("this NumPy does not know the signature of its function")
    got = inspect.signature(FUNCTIONS[function]).parameters  # type: ignore[index]  # as above
    if any(p.kind in _TAKEN_BY_REST for p in got.values()):
        return
    assert set(expected) <= set(got)
