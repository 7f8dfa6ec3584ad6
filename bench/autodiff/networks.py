"""Networks: layers, convolutions written with slices, a block of a transformer, a recurrent one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from autodiff.tasks import Gradient
from autodiff.workload import differentiated


def cross_entropy(logits, labels):
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return -log_p[np.arange(len(labels)), labels].mean()


def cross_entropy_slope(logits, labels):
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(labels)), labels] -= 1
    return p / len(labels)


# ------------------------------------------------------------------------------------------------------------- layers


def _layers(n, rng):
    sizes = (256, 256, 128, 10)
    weights = [w for a, b in pairwise(sizes) for w in (rng.standard_normal((a, b)) / np.sqrt(a), np.zeros(b))]
    return (*weights, rng.standard_normal((n, sizes[0])), rng.integers(0, 10, n))


def _layers_by_hand(w1, b1, w2, b2, w3, b3, x, labels):
    first = np.maximum(x @ w1 + b1, 0)
    second = np.maximum(first @ w2 + b2, 0)
    back3 = cross_entropy_slope(second @ w3 + b3, labels)
    back2 = (back3 @ w3.T) * (second > 0)
    back1 = (back2 @ w2.T) * (first > 0)
    return x.T @ back1, back1.sum(axis=0), first.T @ back2, back2.sum(axis=0), second.T @ back3, back3.sum(axis=0)


@differentiated(Gradient((0, 1, 2, 3, 4, 5)), _layers_by_hand, _layers, small=3, full=512)
def mlp(w1, b1, w2, b2, w3, b3, x, labels):
    first = np.maximum(x @ w1 + b1, 0)
    second = np.maximum(first @ w2 + b2, 0)
    return cross_entropy(second @ w3 + b3, labels)


# ------------------------------------------------------------------------------------------------------- convolutions


def _pictures(n, rng):
    w1, w2 = rng.standard_normal((3, 3, 1, 8)) / 3, rng.standard_normal((3, 3, 8, 16)) / 9
    w3 = rng.standard_normal((576, 10)) / 24
    return w1, np.zeros(8), w2, np.zeros(16), w3, rng.standard_normal((n, 30, 30, 1)), rng.integers(0, 10, n)


def _convolution_back(x, w, back):
    height, width = back.shape[1:3]
    d_w, d_x = np.empty_like(w), np.zeros_like(x)
    flat = back.reshape(-1, back.shape[3])
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            d_w[i, j] = x[:, i : i + height, j : j + width].reshape(-1, x.shape[3]).T @ flat
            d_x[:, i : i + height, j : j + width] += back @ w[i, j].T
    return d_w, d_x


def _pool_back(x, pooled, back):
    """Equal maxima share."""
    n, height, width, channels = pooled.shape
    blocks = x.reshape(n, height, 2, width, 2, channels)
    largest = blocks == pooled[:, :, None, :, None, :]
    share = back[:, :, None, :, None, :] / largest.sum(axis=(2, 4), keepdims=True)
    return (largest * share).reshape(x.shape)


def _pictures_by_hand(w1, b1, w2, b2, w3, x, labels):
    first = np.maximum(convolved(x, w1) + b1, 0)
    pooled1 = pooled(first)
    second = np.maximum(convolved(pooled1, w2) + b2, 0)
    pooled2 = pooled(second)
    flat = pooled2.reshape(len(x), -1)
    back = cross_entropy_slope(flat @ w3, labels)
    back2 = _pool_back(second, pooled2, (back @ w3.T).reshape(pooled2.shape)) * (second > 0)
    d_w2, back1 = _convolution_back(pooled1, w2, back2)
    back1 = _pool_back(first, pooled1, back1) * (first > 0)
    return _convolution_back(x, w1, back1)[0], back1.sum(axis=(0, 1, 2)), d_w2, back2.sum(axis=(0, 1, 2)), flat.T @ back


def convolved(x, w):
    height, width = x.shape[1] - w.shape[0] + 1, x.shape[2] - w.shape[1] + 1
    out = np.zeros((x.shape[0], height, width, w.shape[3]))
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            out += x[:, i : i + height, j : j + width] @ w[i, j]
    return out


def pooled(x):
    n, height, width, channels = x.shape
    return x.reshape((n, height // 2, 2, width // 2, 2, channels)).max(axis=(2, 4))


@differentiated(Gradient((0, 1, 2, 3, 4)), _pictures_by_hand, _pictures, small=2, full=32)
def convolutional(w1, b1, w2, b2, w3, x, labels):
    first = pooled(np.maximum(convolved(x, w1) + b1, 0))
    second = pooled(np.maximum(convolved(first, w2) + b2, 0))
    return cross_entropy(second.reshape((len(x), -1)) @ w3, labels)


# -------------------------------------------------------------------------------------------------------- transformer

WIDTH, HEADS = 128, 4


def _block(n, rng):
    shapes = ((WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH))
    weights = [rng.standard_normal(shape) / np.sqrt(shape[0]) for shape in shapes]
    scales = [rng.uniform(0.5, 1.5, WIDTH) for _ in range(2)]
    return (*weights, *scales, rng.standard_normal((4, n, WIDTH)), rng.standard_normal((4, n, WIDTH)))


def normalized(x, scale):
    centred = x - x.mean(axis=-1, keepdims=True)
    return scale * centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)


def in_heads(x):
    return x.reshape((x.shape[0], x.shape[1], HEADS, WIDTH // HEADS)).transpose((0, 2, 1, 3))


def attention(x, to_qkv, to_out):
    qkv = x @ to_qkv
    q, k, v = (in_heads(qkv[:, :, n * WIDTH : (n + 1) * WIDTH]) for n in range(3))
    scores = q @ k.transpose((0, 1, 3, 2)) / np.sqrt(WIDTH // HEADS)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return (weights @ v).transpose((0, 2, 1, 3)).reshape(x.shape) @ to_out


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def _normalized_back(x, scale, back):
    centred = x - x.mean(axis=-1, keepdims=True)
    inverse = 1 / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)
    unit = centred * inverse
    d = back * scale
    d_x = inverse * (d - d.mean(axis=-1, keepdims=True) - unit * (d * unit).mean(axis=-1, keepdims=True))
    return d_x, (back * unit).sum(axis=(0, 1))


def _flat(x):
    return x.reshape(-1, x.shape[-1])


def _merged(x):
    return x.transpose((0, 2, 1, 3)).reshape(x.shape[0], x.shape[2], WIDTH)


def _block_by_hand(to_qkv, to_out, w1, w2, scale1, scale2, x, target):
    root = np.sqrt(WIDTH // HEADS)
    normal1 = normalized(x, scale1)
    qkv = normal1 @ to_qkv
    q, k, v = (in_heads(qkv[:, :, n * WIDTH : (n + 1) * WIDTH]) for n in range(3))
    scores = q @ k.transpose((0, 1, 3, 2)) / root
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    mixed = _merged(p @ v)
    middle = x + mixed @ to_out
    normal2 = normalized(middle, scale2)
    hidden = normal2 @ w1
    t = np.tanh(0.7978845608 * (hidden + 0.044715 * hidden**3))
    active = 0.5 * hidden * (1 + t)
    back = 2 * (middle + active @ w2 - target) / x.size
    d_w2 = _flat(active).T @ _flat(back)
    slope = 0.5 * (1 + t) + 0.5 * hidden * (1 - t * t) * 0.7978845608 * (1 + 3 * 0.044715 * hidden**2)
    d_hidden = (back @ w2.T) * slope
    d_w1 = _flat(normal2).T @ _flat(d_hidden)
    d_middle, d_scale2 = _normalized_back(middle, scale2, d_hidden @ w1.T)
    d_middle = d_middle + back
    d_to_out = _flat(mixed).T @ _flat(d_middle)
    d_mixed = in_heads(d_middle @ to_out.T)
    d_p = d_mixed @ v.transpose((0, 1, 3, 2))
    d_scores = p * (d_p - (d_p * p).sum(axis=-1, keepdims=True)) / root
    parts = d_scores @ k, d_scores.transpose((0, 1, 3, 2)) @ q, p.transpose((0, 1, 3, 2)) @ d_mixed
    d_qkv = np.concatenate([_merged(part) for part in parts], axis=-1)
    d_to_qkv = _flat(normal1).T @ _flat(d_qkv)
    _, d_scale1 = _normalized_back(x, scale1, d_qkv @ to_qkv.T)
    return d_to_qkv, d_to_out, d_w1, d_w2, d_scale1, d_scale2


@differentiated(Gradient((0, 1, 2, 3, 4, 5)), _block_by_hand, _block, small=3, full=128)
def transformer(to_qkv, to_out, w1, w2, scale1, scale2, x, target):
    middle = x + attention(normalized(x, scale1), to_qkv, to_out)
    out = middle + gelu(normalized(middle, scale2) @ w1) @ w2
    return ((out - target) ** 2).mean()


# ---------------------------------------------------------------------------------------------------------- recurrent


def _sequence(n, rng):
    batch, inputs, hidden = 16, 32, 64
    weights = rng.standard_normal((inputs, 4 * hidden)) / 6, rng.standard_normal((hidden, 4 * hidden)) / 8, np.zeros(4 * hidden)
    return (*weights, rng.standard_normal((n, batch, inputs)), rng.standard_normal((n, batch, hidden)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _sequence_by_hand(to_gates, again, bias, x, target):
    steps, batch, n = target.shape
    h, c = np.zeros((batch, n)), np.zeros((batch, n))
    kept = []
    for t in range(steps):
        gates = x[t] @ to_gates + h @ again + bias
        s, g = sigmoid(gates[:, : 3 * n]), np.tanh(gates[:, 3 * n :])
        before, c = (h, c), s[:, n : 2 * n] * c + s[:, :n] * g
        th = np.tanh(c)
        h = s[:, 2 * n :] * th
        kept.append((before, s, g, th, h))
    d_gates = np.empty((batch, 4 * n))
    d_x, d_again, d_bias = np.zeros_like(to_gates), np.zeros_like(again), np.zeros_like(bias)
    d_h, d_c = np.zeros((batch, n)), np.zeros((batch, n))
    for t in reversed(range(steps)):
        (h0, c0), s, g, th, h = kept[t]
        d_h = d_h + 2 * (h - target[t]) / (batch * n * steps)
        d_c = d_c + d_h * s[:, 2 * n :] * (1 - th * th)
        d_gates[:, :n], d_gates[:, n : 2 * n], d_gates[:, 2 * n : 3 * n] = d_c * g, d_c * c0, d_h * th
        d_gates[:, : 3 * n] *= s * (1 - s)
        d_gates[:, 3 * n :] = d_c * s[:, :n] * (1 - g * g)
        d_x += x[t].T @ d_gates
        d_again += h0.T @ d_gates
        d_bias += d_gates.sum(axis=0)
        d_h, d_c = d_gates @ again.T, d_c * s[:, n : 2 * n]
    return d_x, d_again, d_bias


@differentiated(Gradient((0, 1, 2)), _sequence_by_hand, _sequence, small=3, full=100)
def lstm(to_gates, again, bias, x, target):
    steps, batch, n = target.shape
    h, c = np.zeros((batch, n)), np.zeros((batch, n))
    loss = 0.0
    for t in range(steps):
        gates = x[t] @ to_gates + h @ again + bias
        i, f, o = sigmoid(gates[:, :n]), sigmoid(gates[:, n : 2 * n]), sigmoid(gates[:, 2 * n : 3 * n])
        c = f * c + i * np.tanh(gates[:, 3 * n :])
        h = o * np.tanh(c)
        loss += ((h - target[t]) ** 2).mean()
    return loss / steps
