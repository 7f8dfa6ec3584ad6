"""The log-likelihood of a mixture of Gaussians, with a Wishart prior (the first task of ADBench)."""

from __future__ import annotations

import numpy as np

from autodiff.tasks import Gradient
from autodiff.workload import differentiated

D, K = 10, 25
GAMMA, M = 1.0, 2.0


def _mixture(n, rng):
    alphas, means = rng.standard_normal(K), rng.standard_normal((K, D))
    return alphas, means, 0.3 * rng.standard_normal((K, D * (D + 1) // 2)), rng.standard_normal((n, D))


def by_hand(alphas, means, factors, x):
    rows, columns = np.tril_indices(D, -1)
    lower, diagonal = triangular(factors[:, D:]), np.exp(factors[:, :D])
    centred = x - means[:, None, :]
    scaled = diagonal[:, None, :] * centred + centred @ lower.transpose((0, 2, 1))
    terms = (alphas + factors[:, :D].sum(axis=1))[:, None] - 0.5 * (scaled * scaled).sum(axis=2)
    share = np.exp(terms - terms.max(axis=0))
    share /= share.sum(axis=0)
    total = share.sum(axis=1)
    prior = np.exp(alphas - alphas.max())
    back = -share[:, :, None] * scaled
    d_factors = np.empty_like(factors)
    d_factors[:, :D] = (back * centred).sum(axis=1) * diagonal + GAMMA**2 * diagonal**2 + (total - M)[:, None]
    d_factors[:, D:] = (back.transpose((0, 2, 1)) @ centred)[:, rows, columns] + GAMMA**2 * factors[:, D:]
    d_means = -(back * diagonal[:, None, :] + back @ lower).sum(axis=1)
    return total - len(x) * prior / prior.sum(), d_means, d_factors


def triangular(elements):
    rows, columns = np.tril_indices(D, -1)
    lower = np.zeros((K, D, D))
    lower[:, rows, columns] = elements
    return lower


def log_sum_exp(terms):
    highest = terms.max(axis=0)
    return highest + np.log(np.exp(terms - highest).sum(axis=0))


@differentiated(Gradient((0, 1, 2)), by_hand, _mixture, small=7, full=1000)
def gaussian_mixture(alphas, means, factors, x):
    lower, diagonal = triangular(factors[:, D:]), np.exp(factors[:, :D])
    log_det = factors[:, :D].sum(axis=1)
    centred = x - means[:, None, :]
    scaled = diagonal[:, None, :] * centred + centred @ lower.transpose((0, 2, 1))
    terms = (alphas + log_det)[:, None] - 0.5 * (scaled**2).sum(axis=2)
    prior = 0.5 * GAMMA**2 * ((diagonal**2).sum() + (factors[:, D:] ** 2).sum()) - M * log_det.sum()
    return log_sum_exp(terms).sum() - len(x) * log_sum_exp(alphas) + prior
