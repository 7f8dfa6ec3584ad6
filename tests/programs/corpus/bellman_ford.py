import numpy as np


def bellman_ford(source, sink, weight, n):
    """Shortest distances from vertex 0 over a list of edges; rounds end when nothing changes (Bellman, Ford)."""
    distance = np.full(n, np.inf)
    distance[0] = 0.0
    for _ in range(n - 1):
        changed = False
        for k in range(len(weight)):
            u, v = source[k], sink[k]
            through = distance[u] + weight[k]
            if through < distance[v]:
                distance[v] = through
                changed = True
        if not changed:
            break
    else:
        return None
    return distance


def make(size, rng):
    n, edges = {"small": (8, 30), "large": (4000, 40000)}[size]
    return rng.integers(0, n, edges), rng.integers(0, n, edges), rng.integers(1, 64, edges) / 8.0, n
