"""Jacobians of geometry: cameras that look at points (ADBench's bundle adjustment), and a hand whose bones turn."""

from __future__ import annotations

import numpy as np

from autodiff.tasks import Jacobian, RowsJacobian
from autodiff.workload import differentiated


def _observations(n, rng):
    rotation, centre = rng.uniform(0.1, 0.6, (n, 3)), rng.standard_normal((n, 3))
    lens = np.concatenate([rng.uniform(1, 2, (n, 1)), rng.standard_normal((n, 2)), 0.02 * rng.standard_normal((n, 2))], axis=1)
    points = centre + rng.uniform(-1, 1, (n, 3)) + np.array([0.0, 0.0, 5.0])
    return np.concatenate([rotation, centre, lens], axis=1), points, rng.uniform(0.5, 1, n), rng.standard_normal((n, 2))


def _cross(v):
    """The matrices of `w -> v x w`."""
    matrix = np.zeros((len(v), 3, 3))
    matrix[:, 0, 1], matrix[:, 0, 2], matrix[:, 1, 2] = -v[:, 2], v[:, 1], -v[:, 0]
    return matrix - matrix.transpose(0, 2, 1)


def _blocks(camera, point, weight, feature):
    n, eye = len(camera), np.eye(3)
    axis, centre = camera[:, :3], camera[:, 3:6]
    focal, principal, radial = camera[:, 6:7], camera[:, 7:9], camera[:, 9:]
    x = point - centre
    angle = np.sqrt((axis * axis).sum(axis=1, keepdims=True))
    unit = axis / angle
    c, s = np.cos(angle)[:, :, None], np.sin(angle)[:, :, None]
    outer = unit[:, :, None] * unit[:, None, :]
    turn = c * eye + s * _cross(unit) + (1 - c) * outer
    along = (unit * x).sum(axis=1)[:, None, None]
    by_angle = (turn @ _cross(unit) @ x[:, :, None]) * unit[:, None, :]
    by_unit = -s * _cross(x) + (1 - c) * (along * eye + unit[:, :, None] * x[:, None, :])
    by_axis = by_angle + by_unit @ (eye - outer) / angle[:, :, None]
    p = (turn @ x[:, :, None])[:, :, 0]
    plane = p[:, :2] / p[:, 2:]
    r2 = (plane * plane).sum(axis=1, keepdims=True)
    stretch = 1 + radial[:, :1] * r2 + radial[:, 1:] * r2 * r2
    project = np.zeros((n, 2, 3))
    project[:, 0, 0] = project[:, 1, 1] = 1 / p[:, 2]
    project[:, :, 2] = -plane / p[:, 2:]
    slope = (2 * (radial[:, :1] + 2 * radial[:, 1:] * r2))[:, :, None]
    distort = stretch[:, :, None] * np.eye(2) + slope * plane[:, :, None] * plane[:, None, :]
    scale = weight[:, None, None]
    by_p = scale * focal[:, :, None] * (distort @ project)
    d_camera = np.empty((n, 2, 11))
    d_camera[:, :, :3] = by_p @ by_axis
    d_camera[:, :, 3:6] = -(by_p @ turn)
    d_camera[:, :, 6] = weight[:, None] * plane * stretch
    d_camera[:, :, 7:9] = scale * np.eye(2)
    d_camera[:, :, 9] = weight[:, None] * focal * plane * r2
    d_camera[:, :, 10] = d_camera[:, :, 9] * r2
    return d_camera, by_p @ turn, focal * plane * stretch + principal - feature


def rotated(axis, x):
    """Vectors turned about axes, by Rodrigues' formula."""
    angle = np.sqrt((axis * axis).sum(axis=-1, keepdims=True))
    unit = axis / angle
    c, s = np.cos(angle), np.sin(angle)
    return c * x + s * np.cross(unit, x) + (1 - c) * (unit * x).sum(axis=-1, keepdims=True) * unit


@differentiated(RowsJacobian((0, 1, 2)), _blocks, _observations, small=5, full=10_000, bounded=False)
def bundle_adjustment(camera, point, weight, feature):
    axis, centre = camera[..., :3], camera[..., 3:6]
    focal, principal, radial = camera[..., 6:7], camera[..., 7:9], camera[..., 9:]
    p = rotated(axis, point - centre)
    plane = p[..., :2] / p[..., 2:]
    r2 = (plane * plane).sum(axis=-1, keepdims=True)
    distorted = plane * (1 + radial[..., :1] * r2 + radial[..., 1:] * r2 * r2)
    return weight[..., None] * (focal * distorted + principal - feature)


PARENTS = (-1, 0, 1, 2, 0, 4, 5, 0, 7, 8, 0, 10, 11, 0, 13, 14)  # the wrist, and five fingers of three bones


def _pose(n, rng):
    bones = len(PARENTS)
    weights = rng.uniform(0, 1, (bones, n)) ** 4
    rest = np.concatenate([rng.standard_normal((3, n)), np.ones((1, n))])
    angles, offsets = 0.3 * rng.standard_normal((bones, 3)), rng.standard_normal((bones, 3))
    return angles, offsets, rest, weights / weights.sum(axis=0), rng.standard_normal((n, 3))


def _turned(angles, offsets):
    """All bones in the frames of their parents, and their slopes by each angle."""
    (cx, cy, cz), (sx, sy, sz) = np.cos(angles.T), np.sin(angles.T)
    local, slopes = np.zeros((len(angles), 4, 4)), np.zeros((3, len(angles), 4, 4))
    local[:, :3, 3], local[:, 3, 3] = offsets, 1

    def fill(m, cx, sx, cy, sy, cz, sz, cx_, sx_):
        m[:, 0, 0], m[:, 0, 1], m[:, 0, 2] = cy * cz * cx_, sx * sy * cz - cx * sz, cx * sy * cz + sx * sz
        m[:, 1, 0], m[:, 1, 1], m[:, 1, 2] = cy * sz * cx_, sx * sy * sz + cx * cz, cx * sy * sz - sx * cz
        m[:, 2, 0], m[:, 2, 1], m[:, 2, 2] = -sy * cx_, sx * cy, cx * cy

    fill(local, cx, sx, cy, sy, cz, sz, 1, 0)
    fill(slopes[0], -sx, cx, cy, sy, cz, sz, 0, 0)
    fill(slopes[1], cx, sx, -sy, cy, cz, sz, 1, 0)
    slopes[1][:, 0, 1] = sx * cy * cz
    slopes[1][:, 0, 2] = cx * cy * cz
    slopes[1][:, 1, 1] = sx * cy * sz
    slopes[1][:, 1, 2] = cx * cy * sz
    fill(slopes[2], cx, sx, cy, sy, -sz, cz, 1, 0)
    slopes[2][:, 2, :] = 0
    return local, slopes


def _skin_slopes(angles, offsets, rest, weights, target):
    bones, n = weights.shape
    local, slopes = _turned(angles, offsets)
    frames, d_frames = np.empty((bones, 4, 4)), np.zeros((bones, bones, 3, 4, 4))
    for bone, parent in enumerate(PARENTS):
        if parent < 0:
            frames[bone], d_frames[bone, bone] = local[bone], slopes[:, bone]
        else:
            frames[bone] = frames[parent] @ local[bone]
            d_frames[bone] = d_frames[parent] @ local[bone]
            d_frames[bone, bone] = frames[parent] @ slopes[:, bone]
    spread = (weights[:, None, :] * rest).reshape(4 * bones, n)
    flat = d_frames[:, :, :, :3].transpose(3, 1, 2, 0, 4).reshape(9 * bones, 4 * bones)
    return (flat @ spread).reshape(3, bones, 3, n).transpose(3, 0, 1, 2)


def in_parent(angles, offset):
    """A bone in the frame of its parent: turned about three axes, and moved."""
    (cx, cy, cz), (sx, sy, sz) = np.cos(angles), np.sin(angles)
    return np.array(
        [
            [cy * cz, sx * sy * cz - cx * sz, cx * sy * cz + sx * sz, offset[0]],
            [cy * sz, sx * sy * sz + cx * cz, cx * sy * sz - sx * cz, offset[1]],
            [-sy, sx * cy, cx * cy, offset[2]],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


@differentiated(Jacobian((0,)), _skin_slopes, _pose, small=4, full=500, bounded=False)
def hand(angles, offsets, rest, weights, target):
    frames = []
    for bone, parent in enumerate(PARENTS):
        local = in_parent(angles[bone], offsets[bone])
        frames.append(local if parent < 0 else frames[parent] @ local)
    moved = np.stack(frames)[:, :3] @ rest
    return (weights[:, None, :] * moved).sum(axis=0).T - target
