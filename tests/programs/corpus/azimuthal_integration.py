import numpy as np


def azimuthal_integration(values, radius, bins):
    """Mean of the values in rings of equal width, ring by ring with masks."""
    largest = radius.max()
    result = np.zeros(bins, values.dtype)
    for i in range(bins):
        low = largest * i / bins
        high = largest * (i + 1) / bins
        inside = np.logical_and(low <= radius, radius < high)
        result[i] = values[inside].mean()
    return result


def make(size, rng):
    n, bins = {"small": (300, 4), "large": (200000, 100)}[size]
    return rng.random(n), rng.random(n), bins
