import numpy as np


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def lstm(xs, h, c, wx, wh, b):
    """Hidden states of a long short-term memory over a sequence, and the last cell (Hochreiter and Schmidhuber 1997)."""
    hidden = h.shape[1]
    states = []
    for x in xs:
        gates = x @ wx + h @ wh + b
        i = sigmoid(gates[:, :hidden])
        f = sigmoid(gates[:, hidden : 2 * hidden])
        g = np.tanh(gates[:, 2 * hidden : 3 * hidden])
        o = sigmoid(gates[:, 3 * hidden :])
        c = f * c + i * g
        h = o * np.tanh(c)
        states.append(h)
    return np.stack(states), c


def make(size, rng):
    t, n, d, hidden = {"small": (5, 2, 3, 4), "large": (200, 16, 32, 64)}[size]
    shapes = (t, n, d), (n, hidden), (n, hidden), (d, 4 * hidden), (hidden, 4 * hidden), (4 * hidden,)
    return tuple(0.3 * rng.standard_normal(shape) for shape in shapes)
