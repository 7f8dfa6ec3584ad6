def syrk(alpha, beta, C, A):
    """Symmetric rank-k update of the lower triangle of C, row by row (BLAS syrk)."""
    for i in range(A.shape[0]):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += alpha * A[i, k] * A[: i + 1, k]


def make(size, rng):
    n, k = {"small": (9, 6), "large": (240, 200)}[size]
    return 1.5, 1.2, rng.random((n, n)), rng.random((n, k))
