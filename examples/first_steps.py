"""A tour in forty lines: compile a function, look at what the compiler did, take a gradient.

Run it with `python examples/first_steps.py`.
"""

import numpy as np

import jitml


def standardize(x):
    """Columns with mean 0 and variance 1."""
    return (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-9)


def main():
    x = np.random.default_rng(0).normal(3.0, 2.0, size=(10_000, 50))

    fast = jitml.jit(standardize)
    print("largest difference from NumPy:", abs(fast(x) - standardize(x)).max())

    print("\nthe graph that was traced:")
    print(fast.lower(x).graph)

    print("\nwhat the compiler decided:")
    print(jitml.explain(fast, x))

    def energy(v):
        return 0.5 * (v @ v) + np.log1p(np.exp(-v)).sum()

    v = np.linspace(-2, 2, 5)
    print("\nthe gradient of an energy at", v, "is", jitml.jit(jitml.grad(energy))(v))


if __name__ == "__main__":
    main()
