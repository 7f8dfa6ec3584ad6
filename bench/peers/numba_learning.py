"""Ports to Numba of workloads of learning: activations, normalizations, losses, layers and their gradients, optimizers."""

from __future__ import annotations

import numba
import numpy as np
from numba import prange

from workloads import learning


def gelu(x):
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            v = x[i, j]
            out[i, j] = (
                np.float32(0.5) * v * (np.float32(1) + np.tanh(np.float32(0.7978845608) * (v + np.float32(0.044715) * v * v * v)))
            )
    return out


def softmax_rows(x):
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        top = x[i].max()
        total = np.float32(0)
        for j in range(x.shape[1]):
            out[i, j] = np.exp(x[i, j] - top)
            total += out[i, j]
        for j in range(x.shape[1]):
            out[i, j] /= total
    return out


def log_sum_exp(x):
    out = np.empty(x.shape[0])
    for i in prange(x.shape[0]):
        top = x[i].max()
        total = 0.0
        for j in range(x.shape[1]):
            total += np.exp(x[i, j] - top)
        out[i] = top + np.log(total)
    return out


def layer_norm(x, scale, shift):
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        mean = x[i].mean()
        variance = 0.0
        for j in range(x.shape[1]):
            variance += (x[i, j] - mean) ** 2
        length = np.sqrt(variance / x.shape[1] + 1e-5)
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean) / length * scale[j] + shift[j]
    return out


def cross_entropy(logits, labels):
    loss = 0.0
    for i in prange(len(labels)):
        top = logits[i].max()
        total = 0.0
        for j in range(logits.shape[1]):
            total += np.exp(logits[i, j] - top)
        loss -= logits[i, labels[i]] - top - np.log(total)
    return loss / len(labels)


def huber_loss(prediction, target):
    total = 0.0
    for i in prange(len(target)):
        error = abs(prediction[i] - target[i])
        total += 0.5 * error**2 if error < 1.0 else error - 0.5
    return total / len(target)


def adam_update(parameters, gradient, first, second):
    for i in prange(len(parameters)):
        first[i] = 0.9 * first[i] + 0.1 * gradient[i]
        second[i] = 0.999 * second[i] + 0.001 * gradient[i] * gradient[i]
        parameters[i] -= 0.001 * (first[i] / 0.9) / (np.sqrt(second[i] / 0.999) + 1e-8)


def mlp_gradient(w1, b1, w2, b2, x, labels):
    hidden = np.tanh(x @ w1 + b1)
    p = hidden @ w2 + b2
    n = len(labels)
    for i in prange(n):
        row = np.exp(p[i] - p[i].max())
        row /= row.sum()
        row[labels[i]] -= 1
        p[i] = row / n
    back = (p @ w2.T) * (1 - hidden * hidden)
    return x.T @ back, back.sum(axis=0), hidden.T @ p, p.sum(axis=0)


def attention_forward(q, k, v):
    out = np.empty_like(q)
    for h in prange(len(q)):
        scores = q[h] @ k[h].T / np.sqrt(q.shape[-1])
        for i in range(len(scores)):
            row = np.exp(scores[i] - scores[i].max())
            scores[i] = row / row.sum()
        out[h] = scores @ v[h]
    return out


def attention_gradient(q, k, v):
    dq, dk, dv = np.empty_like(q), np.empty_like(k), np.empty_like(v)
    scale = 1 / np.sqrt(q.shape[-1])
    for h in prange(len(q)):
        p = q[h] @ k[h].T * scale
        for i in range(len(p)):
            row = np.exp(p[i] - p[i].max())
            p[i] = row / row.sum()
        d_out = 2 * (p @ v[h])
        d = d_out @ v[h].T
        for i in range(len(p)):
            d[i] = p[i] * (d[i] - (d[i] * p[i]).sum()) * scale
        dq[h], dk[h], dv[h] = d @ k[h], d.T @ q[h], p.T @ d_out
    return dq, dk, dv


def k_means_step(points, centres):
    n, d = points.shape
    k = len(centres)
    nearest = np.empty(n, np.int64)
    for i in prange(n):
        best = np.inf
        for c in range(k):
            distance2 = 0.0
            for j in range(d):
                distance2 += (points[i, j] - centres[c, j]) ** 2
            if distance2 < best:
                best = distance2
                nearest[i] = c
    total, count = np.zeros((k, d)), np.zeros(k)
    for i in range(n):
        count[nearest[i]] += 1
        for j in range(d):
            total[nearest[i], j] += points[i, j]
    for c in range(k):
        total[c] /= max(count[c], 1)
    return total


def batch_norm(x, scale, shift):
    n, m, c = x.shape
    mean, variance, out = np.zeros(c), np.zeros(c), np.empty_like(x)
    for i in range(n):
        for j in range(m):
            for k in range(c):
                mean[k] += x[i, j, k]
    mean /= n * m
    for i in range(n):
        for j in range(m):
            for k in range(c):
                variance[k] += (x[i, j, k] - mean[k]) ** 2
    factor = scale / np.sqrt(variance / (n * m) + 1e-5)
    for i in prange(n):
        for j in range(m):
            for k in range(c):
                out[i, j, k] = factor[k] * (x[i, j, k] - mean[k]) + shift[k]
    return out


network = numba.njit(parallel=True)(learning.network)


def mlp_forward(w1, b1, w2, b2, x):
    return network(w1, b1, w2, b2, x)
