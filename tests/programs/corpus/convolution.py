import numpy as np


def convolution(images, weights, bias):
    """A convolution layer: one window of all images and channels at a time, against all filters at once."""
    n, h, w, _ = images.shape
    k, _, _, filters = weights.shape
    out = np.empty((n, h - k + 1, w - k + 1, filters), dtype=images.dtype)
    for i in range(h - k + 1):
        for j in range(w - k + 1):
            window = images[:, i : i + k, j : j + k, :, np.newaxis]
            out[:, i, j, :] = np.sum(window * weights[np.newaxis], axis=(1, 2, 3))
    return out + bias


def make(size, rng):
    n, h, w, channels, k, filters = {"small": (2, 6, 7, 3, 2, 4), "large": (8, 32, 32, 3, 5, 16)}[size]
    images = rng.random((n, h, w, channels), dtype=np.float32)
    return images, rng.random((k, k, channels, filters), dtype=np.float32), rng.random(filters, dtype=np.float32)
