import numpy as np


def viterbi(observed, start, transition, emission):
    """Most likely path of hidden states, in logarithms (Viterbi 1967)."""
    n, states = len(observed), len(start)
    score = np.empty((n, states))
    back = np.zeros((n, states), dtype=np.int64)
    score[0] = start + emission[:, observed[0]]
    for t in range(1, n):
        candidates = score[t - 1][:, None] + transition
        back[t] = np.argmax(candidates, axis=0)
        score[t] = np.max(candidates, axis=0) + emission[:, observed[t]]
    path = np.empty(n, dtype=np.int64)
    path[-1] = np.argmax(score[-1])
    for t in range(n - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return path


def make(size, rng):
    n, states, symbols = {"small": (12, 3, 4), "large": (2500, 24, 10)}[size]
    log = np.log
    return (
        rng.integers(0, symbols, n),
        log(rng.dirichlet(np.ones(states))),
        log(rng.dirichlet(np.ones(states), states)),
        log(rng.dirichlet(np.ones(symbols), states)),
    )
