"""PyTorch: the workloads restated in tensors of 64-bit floats, run eagerly under `torch.func`.

Its functions take other names and arguments than NumPy's, so nothing can be translated. Eager, because `torch.compile`
needs a C++ compiler at hand, unrolls loops, and takes minutes for derivatives like these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from autodiff import dynamics, geometry, mixture, networks
from autodiff.workload import Workload
from jitml.codegen.llvm.runtime.cpu import usable_cores

torch.set_num_threads(usable_cores())

Function = Callable[..., Any]
WIDTH, HEADS = networks.WIDTH, networks.HEADS


class Transforms:
    """See `tasks.Transforms`."""

    def grad(self, f: Function, argnums: int | Sequence[int]) -> Function:
        return torch.func.grad(f, argnums if isinstance(argnums, int) else tuple(argnums))

    def jacobian(self, f: Function, argnums: int) -> Function:
        return torch.func.jacfwd(f, argnums)  # the one workload that asks has more results than arguments

    def rows_jacobian(self, f: Function, argnums: Sequence[int]) -> Function:
        return torch.func.vmap(torch.func.jacrev(f, tuple(argnums)))  # two results, fifteen arguments

    def hessian(self, f: Function, argnums: int) -> Function:
        return torch.func.hessian(f, argnums)


# ------------------------------------------------------------------------------------------------------- dynamics


def leapfrog(q, p, stiffness, steps):
    def force(q):
        stretch = q[1:] - q[:-1]
        tension = stiffness * (stretch + 0.5 * stretch**3)
        return -0.1 * q + torch.nn.functional.pad(tension, (0, 1)) - torch.nn.functional.pad(tension, (1, 0))

    for _ in range(steps):
        p = p + 0.5 * dynamics.DT * force(q)
        q = q + dynamics.DT * p
        p = p + 0.5 * dynamics.DT * force(q)
    return 0.5 * ((q * q).sum() + (p * p).sum())


def jacobi(source, conductivity, target):
    u, before = torch.zeros_like(target), torch.zeros_like(target)
    change = 1.0
    while change > dynamics.TOLERANCE:
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u, before = torch.nn.functional.pad((conductivity * around + source) / (4 * conductivity + 1), (1, 1, 1, 1)), u
        change = torch.abs(u - before).max().item()
    return 0.5 * ((u - target) ** 2).sum()


# ------------------------------------------------------------------------------------------------------- geometry


def rotated(axis, x):
    angle = torch.sqrt((axis * axis).sum(-1, keepdim=True))
    unit = axis / angle
    c, s = torch.cos(angle), torch.sin(angle)
    return c * x + s * torch.linalg.cross(unit, x) + (1 - c) * (unit * x).sum(-1, keepdim=True) * unit


def bundle_adjustment(camera, point, weight, feature):
    axis, centre = camera[..., :3], camera[..., 3:6]
    focal, principal, radial = camera[..., 6:7], camera[..., 7:9], camera[..., 9:]
    p = rotated(axis, point - centre)
    plane = p[..., :2] / p[..., 2:]
    r2 = (plane * plane).sum(-1, keepdim=True)
    distorted = plane * (1 + radial[..., :1] * r2 + radial[..., 1:] * r2 * r2)
    return weight[..., None] * (focal * distorted + principal - feature)


def in_parent(angles, offset):
    (cx, cy, cz), (sx, sy, sz) = torch.cos(angles), torch.sin(angles)
    zero = torch.zeros_like(cx)
    rows = [
        [cy * cz, sx * sy * cz - cx * sz, cx * sy * cz + sx * sz, offset[0]],
        [cy * sz, sx * sy * sz + cx * cz, cx * sy * sz - sx * cz, offset[1]],
        [-sy, sx * cy, cx * cy, offset[2]],
        [zero, zero, zero, zero + 1],
    ]
    return torch.stack([torch.stack(row) for row in rows])


def hand(angles, offsets, rest, weights, target):
    frames = []
    for bone, parent in enumerate(geometry.PARENTS):
        local = in_parent(angles[bone], offsets[bone])
        frames.append(local if parent < 0 else frames[parent] @ local)
    moved = torch.stack(frames)[:, :3] @ rest
    return (weights[:, None, :] * moved).sum(0).T - target


# -------------------------------------------------------------------------------------------------------- mixture


def gaussian_mixture(alphas, means, factors, x):
    d, gamma, m = mixture.D, mixture.GAMMA, mixture.M
    rows, columns = torch.tril_indices(d, d, -1)
    lower = torch.zeros((mixture.K, d, d), dtype=x.dtype).index_put(
        (torch.arange(mixture.K)[:, None], rows, columns), factors[:, d:]
    )
    diagonal, log_det = torch.exp(factors[:, :d]), factors[:, :d].sum(1)
    centred = x - means[:, None, :]
    scaled = diagonal[:, None, :] * centred + centred @ lower.mT
    terms = (alphas + log_det)[:, None] - 0.5 * (scaled**2).sum(2)
    prior = 0.5 * gamma**2 * ((diagonal**2).sum() + (factors[:, d:] ** 2).sum()) - m * log_det.sum()
    return torch.logsumexp(terms, 0).sum() - len(x) * torch.logsumexp(alphas, 0) + prior


# ------------------------------------------------------------------------------------------------------- networks


def mlp(w1, b1, w2, b2, w3, b3, x, labels):
    first = torch.relu(x @ w1 + b1)
    second = torch.relu(first @ w2 + b2)
    return torch.nn.functional.cross_entropy(second @ w3 + b3, labels)


def _convolved(x, w):
    """The library's own convolution, which counts channels first."""
    return torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1)).permute(0, 2, 3, 1)


def _pooled(x):
    n, height, width, channels = x.shape
    return x.reshape(n, height // 2, 2, width // 2, 2, channels).amax((2, 4))


def convolutional(w1, b1, w2, b2, w3, x, labels):
    first = _pooled(torch.relu(_convolved(x, w1) + b1))
    second = _pooled(torch.relu(_convolved(first, w2) + b2))
    return torch.nn.functional.cross_entropy(second.reshape(len(x), -1) @ w3, labels)


def _normalized(x, scale):
    return torch.nn.functional.layer_norm(x, (WIDTH,), weight=scale, eps=1e-5)


def _in_heads(x):
    return x.reshape(x.shape[0], x.shape[1], HEADS, WIDTH // HEADS).transpose(1, 2)


def _attention(x, to_qkv, to_out):
    q, k, v = map(_in_heads, (x @ to_qkv).split(WIDTH, dim=2))
    mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    return mixed.transpose(1, 2).reshape(x.shape) @ to_out


def transformer(to_qkv, to_out, w1, w2, scale1, scale2, x, target):
    middle = x + _attention(_normalized(x, scale1), to_qkv, to_out)
    hidden = _normalized(middle, scale2) @ w1
    active = 0.5 * hidden * (1 + torch.tanh(0.7978845608 * (hidden + 0.044715 * hidden**3)))
    return ((middle + active @ w2 - target) ** 2).mean()


def lstm(to_gates, again, bias, x, target):
    h = c = torch.zeros(target.shape[1:], dtype=x.dtype)
    loss = 0.0
    for given, wanted in zip(x, target):
        i, f, o, g = (given @ to_gates + h @ again + bias).chunk(4, dim=1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        loss = loss + ((h - wanted) ** 2).mean()
    return loss / len(x)


# ------------------------------------------------------------------------------------------------ options, regression


def _normal_cdf(x):
    k = 1 / (1 + 0.2316419 * torch.abs(x))
    series = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = torch.exp(-0.5 * x * x) / (2 * torch.pi) ** 0.5 * series
    return torch.where(x > 0, 1 - tail, tail)


def black_scholes(spot, strike, years, rate, volatility):
    deviation = volatility * torch.sqrt(years)
    d1 = (torch.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / deviation
    return spot * _normal_cdf(d1) - strike * torch.exp(-rate * years) * _normal_cdf(d1 - deviation)


def logistic_hessian(w, x, y):
    margin = y * (x @ w)
    return torch.nn.functional.softplus(-margin, threshold=1e9).mean() + 0.01 * (w * w).sum()


PRIMALS: dict[str, Function] = {
    f.__name__: f
    for f in (
        leapfrog,
        jacobi,
        bundle_adjustment,
        hand,
        gaussian_mixture,
        mlp,
        convolutional,
        transformer,
        lstm,
        black_scholes,
        logistic_hessian,
    )
}


def functions(workload: Workload) -> tuple[Function, Function]:
    """The primal and its derivative."""
    f = PRIMALS[workload.name]
    return f, workload.task.of(Transforms(), f)


def to_tensors(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(x if isinstance(x, int) else torch.from_numpy(x) for x in args)
