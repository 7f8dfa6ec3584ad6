import numpy as np


def k_means(points, centres):
    """Lloyd's algorithm until no label changes; an empty cluster keeps its centre."""
    labels = np.zeros(len(points), dtype=np.int64)
    rounds = 0
    while True:
        distance = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        new = distance.argmin(axis=1)
        rounds += 1
        if rounds > 1 and (new == labels).all():
            break
        labels = new
        for k in range(len(centres)):
            members = points[labels == k]
            if len(members) > 0:
                centres[k] = members.mean(axis=0)
    return labels, rounds


def make(size, rng):
    n, d, k = {"small": (30, 2, 3), "large": (6000, 4, 8)}[size]
    points = rng.standard_normal((n, d)) + 6.0 * rng.integers(0, 3, (n, 1))
    return points, points[rng.choice(n, k, replace=False)].copy()
