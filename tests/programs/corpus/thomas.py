def thomas(a, b, c, d):
    """Many tridiagonal systems at once, one per column, by Thomas's elimination; c and d are overwritten."""
    n = d.shape[0]
    c[0] /= b[0]
    d[0] /= b[0]
    for i in range(1, n):
        w = b[i] - a[i] * c[i - 1]
        c[i] /= w
        d[i] = (d[i] - a[i] * d[i - 1]) / w
    for i in reversed(range(n - 1)):
        d[i] -= c[i] * d[i + 1]
    return d


def make(size, rng):
    n, m = {"small": (10, 4), "large": (2000, 200)}[size]
    return rng.random((n, m)), 3 + rng.random((n, m)), rng.random((n, m)), rng.random((n, m))
