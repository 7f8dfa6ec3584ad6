import numpy as np


def convolve(x, weights):
    """Valid convolution as a sum over the window's offsets."""
    k = weights.shape[0]
    h, w = x.shape[1] - k + 1, x.shape[2] - k + 1
    out = np.zeros((x.shape[0], h, w, weights.shape[3]), dtype=x.dtype)
    for i in range(k):
        for j in range(k):
            out += x[:, i : i + h, j : j + w, :] @ weights[i, j]
    return out


def pool(x):
    """Maximum over windows of two by two."""
    out = np.empty((x.shape[0], x.shape[1] // 2, x.shape[2] // 2, x.shape[3]), dtype=x.dtype)
    for i in range(out.shape[1]):
        for j in range(out.shape[2]):
            out[:, i, j, :] = np.max(x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, :], axis=(1, 2))
    return out


def pooling_network(x, conv1, conv2, dense, bias):
    """Scores of small images: two convolutions with rectifier and pooling, one dense layer (LeNet's shape)."""
    x = pool(np.maximum(convolve(x, conv1), 0))
    x = pool(np.maximum(convolve(x, conv2), 0))
    return x.reshape(x.shape[0], -1) @ dense + bias


def make(size, rng):
    n, side, c1, c2, k = {"small": (2, 10, 3, 4, 3), "large": (16, 28, 6, 16, 5)}[size]
    out = ((side - k + 1) // 2 - k + 1) // 2
    shapes = (n, side, side, 1), (k, k, 1, c1), (k, k, c1, c2), (out * out * c2, 10), (10,)
    return tuple(rng.standard_normal(shape).astype(np.float32) for shape in shapes)
