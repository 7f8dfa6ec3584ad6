def heat_3d(A, B, steps):
    """Explicit heat equation in three dimensions, back and forth between two arrays."""

    def step(u, out):
        out[1:-1, 1:-1, 1:-1] = (
            0.125 * (u[2:, 1:-1, 1:-1] - 2.0 * u[1:-1, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1])
            + 0.125 * (u[1:-1, 2:, 1:-1] - 2.0 * u[1:-1, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1])
            + 0.125 * (u[1:-1, 1:-1, 2:] - 2.0 * u[1:-1, 1:-1, 1:-1] + u[1:-1, 1:-1, :-2])
            + u[1:-1, 1:-1, 1:-1]
        )

    for _ in range(steps):
        step(A, B)
        step(B, A)


def make(size, rng):
    n, steps = {"small": (8, 3), "large": (64, 20)}[size]
    A = rng.random((n, n, n))
    return A, A.copy(), steps
