def insertion_sort(x):
    """Sort in place by insertion."""
    for i in range(1, len(x)):
        key = x[i]
        j = i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = key
    return x


def make(size, rng):
    n = {"small": 11, "large": 500}[size]
    return (rng.integers(0, 1000, n),)
