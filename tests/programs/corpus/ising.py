import numpy as np


def ising(spins, beta, steps, rng):
    """Ising model on a torus, even and odd sites in turn by Metropolis's rule; the magnetisation of every step."""
    n, m = spins.shape
    even = (np.arange(n)[:, None] + np.arange(m)) % 2 == 0
    mean = np.empty(steps)
    for t in range(steps):
        for colour in (even, ~even):
            around = np.roll(spins, 1, 0) + np.roll(spins, -1, 0) + np.roll(spins, 1, 1) + np.roll(spins, -1, 1)
            flip = (rng.random((n, m)) < np.exp(-2.0 * beta * spins * around)) & colour
            spins[flip] *= -1
        mean[t] = spins.mean()
    return mean


def make(size, rng):
    n, steps = {"small": (6, 4), "large": (128, 60)}[size]
    return rng.choice(np.array([-1, 1]), (n, n)), 0.44, steps, np.random.default_rng(int(rng.integers(1000)))
