"""Logistic regression on the breast-cancer data that ships in scikit-learn, in plain NumPy under `jit`.

Run it with `python examples/logistic_regression.py`.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer

import jitml


def loss(w, b, x, y):
    """Mean logistic loss: log(1 + exp(-z)) for the signed margin z, in the form that does not overflow."""
    z = (2 * y - 1) * (x @ w + b)
    return np.logaddexp(0.0, -z).mean() + 1e-3 * (w @ w)


@jitml.jit
def descend(w, b, x, y, rate):
    """One step of gradient descent; `w` and `b` change in place."""
    value, (dw, db) = jitml.value_and_grad(loss, argnums=(0, 1))(w, b, x, y)
    w -= rate * dw
    b -= rate * db
    return value


def main():
    data = load_breast_cancer()
    x = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    y = data.target.astype(float)
    w, b = np.zeros(x.shape[1]), np.zeros(())
    for n in range(501):
        value = descend(w, b, x, y, 0.5)
        if n % 100 == 0:
            right = ((x @ w + b > 0) == (y > 0.5)).mean()
            print(f"step {n:3}  loss {value:.4f}  accuracy {right:.1%}")


if __name__ == "__main__":
    main()
