"""Gathers, scatters, scans, sorts and selections."""

from __future__ import annotations

import numpy as np

from workloads.workload import workload


def _samples(n, rng):
    return rng.uniform(0, 1, (512, 512)), rng.uniform(0, 510, n), rng.uniform(0, 510, n)


@workload(_samples, small=20, full=200_000)
def bilinear_sample(image, y, x):
    """A picture between its pixels."""
    i, j = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
    a, b = y - i, x - j
    above = (1 - b) * image[i, j] + b * image[i, j + 1]
    below = (1 - b) * image[i + 1, j] + b * image[i + 1, j + 1]
    return (1 - a) * above + a * below


@workload(lambda n, rng: (rng.standard_normal(n), rng.integers(0, 1000, n), 1000), small=50, full=500_000)
def group_means(values, groups, count):
    total = np.bincount(groups, weights=values, minlength=count)
    return total / np.maximum(np.bincount(groups, minlength=count), 1)


def _springs(n, rng):
    return rng.standard_normal((n, 3)), rng.integers(0, n, 4 * n), rng.integers(0, n, 4 * n)


@workload(_springs, small=12, full=20_000)
def spring_forces(position, first, second):
    """The force on each node of a net of springs of length one."""
    gap = position[second] - position[first]
    length = np.sqrt((gap * gap).sum(axis=1)) + 1e-9
    pull = gap * ((length - 1) / length)[:, None]
    force = np.zeros_like(position)
    np.add.at(force, first, pull)
    np.add.at(force, second, -pull)
    return force


@workload(lambda n, rng: (100 * np.exp(np.cumsum(0.001 * rng.standard_normal(n))),), small=40, full=500_000)
def drawdown(prices):
    """How far below the highest price so far, and the worst of it."""
    loss = 1 - prices / np.maximum.accumulate(prices)
    return loss, loss.max()


@workload(lambda n, rng: (rng.uniform(0, 1, n) < 0.7,), small=40, full=500_000)
def streaks(won):
    """How many games in a row have been won, after each game?"""
    total = np.cumsum(won)
    return total - np.maximum.accumulate(np.where(won, 0, total))


@workload(lambda n, rng: (rng.standard_normal((n, 200)),), small=5, full=2000)
def top_scores(scores):
    """The ten best scores of each row, best first, and whose they are."""
    best = np.argpartition(scores, -10, axis=1)[:, -10:]
    values = np.take_along_axis(scores, best, axis=1)
    order = np.argsort(-values, axis=1)
    return np.take_along_axis(values, order, axis=1), np.take_along_axis(best, order, axis=1)


def _curve(n, rng):
    return rng.uniform(0, 10, n), np.sort(rng.uniform(0, 10, 500)), rng.standard_normal(500)


@workload(_curve, small=30, full=200_000)
def interpolate_table(x, grid, values):
    """A table between its entries."""
    k = np.clip(np.searchsorted(grid, x) - 1, 0, len(grid) - 2)
    t = (x - grid[k]) / (grid[k + 1] - grid[k])
    return values[k] + t * (values[k + 1] - values[k])


@workload(lambda n, rng: (rng.zipf(1.5, n) % 1000,), small=50, full=200_000)
def word_counts(words):
    """The words (as numbers) that occur, and how often, the most frequent first."""
    found, counts = np.unique(words, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return found[order], counts[order]


@workload(lambda n, rng: (rng.standard_normal((n, 100)).astype(np.float32), rng.integers(0, 100, n)), small=14, full=20_000)
def accuracy(logits, labels):
    return (logits.argmax(axis=1) == labels).mean()


@workload(lambda n, rng: (rng.standard_t(3, n),), small=50, full=500_000)
def without_outliers(x):
    """Mean and spread of what is within three deviations."""
    kept = x[np.abs(x - x.mean()) < 3 * x.std()]
    return kept.mean(), kept.std()


@workload(lambda n, rng: (rng.standard_t(3, n),), small=60, full=300_000)
def winsorize(x):
    """The lowest and highest twentieth are cut off."""
    low, high = np.quantile(x, [0.05, 0.95])
    return np.clip(x, low, high)
