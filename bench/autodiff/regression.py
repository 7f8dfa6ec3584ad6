"""Second derivatives of logistic regression."""

from __future__ import annotations

import numpy as np

from autodiff.tasks import Hessian
from autodiff.workload import differentiated


def _labelled(n, rng):
    return 0.1 * rng.standard_normal(60), rng.standard_normal((n, 60)), np.sign(rng.standard_normal(n))


def _curvature(w, x, y):
    p = 1 / (1 + np.exp(-y * (x @ w)))
    return x.T @ (x * (p * (1 - p) / len(y))[:, None]) + 0.02 * np.eye(len(w))


@differentiated(Hessian((0,)), _curvature, _labelled, small=8, full=4000, bounded=False)
def logistic_hessian(w, x, y):
    margin = y * (x @ w)
    return np.logaddexp(0, -margin).mean() + 0.01 * (w * w).sum()
