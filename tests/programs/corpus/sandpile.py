def sandpile(grid):
    """Topple an abelian sand pile until no cell holds more than three grains (Bak, Tang and Wiesenfeld 1987)."""
    rounds = 0
    while (grid > 3).any():
        topple = grid // 4
        grid -= 4 * topple
        grid[1:] += topple[:-1]
        grid[:-1] += topple[1:]
        grid[:, 1:] += topple[:, :-1]
        grid[:, :-1] += topple[:, 1:]
        rounds += 1
    return rounds


def make(size, rng):
    n, grains = {"small": (7, 10), "large": (60, 60)}[size]
    return (rng.integers(0, grains, (n, n)),)
