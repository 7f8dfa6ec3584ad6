def seidel_2d(A, steps):
    """Nine-point Gauss-Seidel sweeps, element by element, each using what the sweep has already changed."""
    n = A.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                A[i, j] = (
                    A[i - 1, j - 1] + A[i - 1, j] + A[i - 1, j + 1]
                    + A[i, j - 1] + A[i, j] + A[i, j + 1]
                    + A[i + 1, j - 1] + A[i + 1, j] + A[i + 1, j + 1]
                ) / 9.0  # fmt: skip


def make(size, rng):
    n, steps = {"small": (9, 3), "large": (120, 10)}[size]
    return rng.random((n, n)), steps
