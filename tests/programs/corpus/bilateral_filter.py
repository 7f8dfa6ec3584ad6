import numpy as np


def bilateral_filter(image, radius, sigma_space, sigma_value):
    """Smooth an image but not its edges (Tomasi and Manduchi 1998): a window around every pixel, clipped at the border."""
    h, w = image.shape
    out = np.zeros_like(image)
    offsets = np.arange(-radius, radius + 1)
    near = np.exp(-(offsets[:, None] ** 2 + offsets**2) / (2 * sigma_space**2))
    padded = np.pad(image, radius, mode="edge")
    for i in range(h):
        for j in range(w):
            window = padded[i : i + 2 * radius + 1, j : j + 2 * radius + 1]
            weights = near * np.exp(-((window - image[i, j]) ** 2) / (2 * sigma_value**2))
            out[i, j] = np.sum(weights * window) / np.sum(weights)
    return out


def make(size, rng):
    n, radius = {"small": (7, 2), "large": (80, 4)}[size]
    return rng.random((n, n)), radius, 2.0, 0.2
