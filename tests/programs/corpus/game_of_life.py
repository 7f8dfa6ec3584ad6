import numpy as np


def game_of_life(board, steps):
    """Conway's game on a bounded board, in place, until nothing moves or the steps are done."""
    for generation in range(steps):
        n = np.zeros(board.shape, dtype=np.int64)
        n[1:-1, 1:-1] = (
            board[:-2, :-2] + board[:-2, 1:-1] + board[:-2, 2:]
            + board[1:-1, :-2] + board[1:-1, 2:]
            + board[2:, :-2] + board[2:, 1:-1] + board[2:, 2:]
        )  # fmt: skip
        birth = (n == 3)[1:-1, 1:-1] & (board[1:-1, 1:-1] == 0)
        survive = ((n == 2) | (n == 3))[1:-1, 1:-1] & (board[1:-1, 1:-1] == 1)
        before = board.copy()
        board[...] = 0
        board[1:-1, 1:-1][birth | survive] = 1
        if np.array_equal(board, before):
            break
    return generation


def make(size, rng):
    n, steps = {"small": (10, 6), "large": (300, 60)}[size]
    return rng.integers(0, 2, (n, n)), steps
