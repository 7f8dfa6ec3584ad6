"""np.einsum in half precision: as exact as NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import jitml


@pytest.mark.parametrize("subscripts", ["bij,bj->b", "bij,bj->bj", "bij,bj->"])
def test_half_precision_is_multiplied_and_added_in_single(subscripts: str) -> None:
    """A sum of one operand alone would be infinite."""
    x, v = np.full((2, 4, 3), 6e4, np.float16), np.full((2, 3), 1e-3, np.float16)
    found = jitml.jit(lambda x, v: np.einsum(subscripts, x, v))(x, v)
    expected = np.einsum(subscripts, x, v)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-3)
