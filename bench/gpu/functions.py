"""Functions whose time on a GPU is that of the bytes they must read and write, as plain NumPy that knows of no compiler."""

import numpy as np


def scale(x):
    return 2 * x + 1


def chain(x, y):
    return np.where(x > 0, x, 0.01 * x) * y + np.maximum(x, y) - 0.5 * np.minimum(x, 1.0)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def sum_of_all(x):
    return x.sum()


def sum_of_rows(x):
    return x.sum(axis=1)


def sum_of_columns(x):
    return x.sum(axis=0)


def mean_and_variance(x):
    return x.mean(axis=1), x.var(axis=1)


def max_of_all(x):
    return x.max()


def argmax_of_rows(x):
    return x.argmax(axis=1)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def logsumexp(x):
    top = x.max(axis=-1, keepdims=True)
    return np.log(np.exp(x - top).sum(axis=-1)) + top[..., 0]


def layernorm(x, scale, shift):
    mean = x.mean(axis=-1, keepdims=True)
    centred = x - mean
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5) * scale + shift


def transposed(x):
    return np.ascontiguousarray(x.T)


def planes_turned(x):
    return np.ascontiguousarray(x.transpose(0, 2, 1))


def plus_transposed(x):
    return x + x.reshape(x.shape[::-1]).T


def normalized_columns(x):
    return (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-5)


def middle_axes_swapped(x):
    return np.ascontiguousarray(x.transpose(0, 2, 1, 3))


def rows_at(x, k):
    return x[k]


def running_sums(x):
    return x.cumsum(axis=1)


def stencil(x):
    y = np.zeros_like(x)
    y[1:-1, 1:-1] = 0.2 * (x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    return y


def broadcast_sum(x, a, b):
    return x * a + b
