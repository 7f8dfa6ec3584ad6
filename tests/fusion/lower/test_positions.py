"""Is the extreme of a long row found where NumPy finds it: the first of equals, the first nan?"""

import numpy as np
import pytest

import jitml

SHAPES = {(513,): 0, (2048,): 0, (2049,): 0, (40_000,): 0, (1_048_577,): 0, (3, 200_000): 1, (40, 1025): 1, (20, 30, 40): None}


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "u1"])
@pytest.mark.parametrize("shape", SHAPES)
def test_first_place_of_the_extreme(shape, dtype):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 120, shape).astype(dtype)
    rows = [values, np.full_like(values, 3)]
    if values.dtype.kind == "f":
        with_nan = values.copy()
        with_nan.reshape(-1)[rng.integers(0, values.size, 3)] = np.nan
        with_nan.reshape(-1)[[0, -1]] = -np.inf, np.inf
        rows += [with_nan, np.full_like(values, -np.inf), np.full_like(values, np.inf)]
    for find in (np.argmax, np.argmin):
        compiled = jitml.jit(lambda x, find=find: find(x, axis=SHAPES[shape]))
        for x in rows:
            np.testing.assert_array_equal(compiled(x), find(x, axis=SHAPES[shape]))
