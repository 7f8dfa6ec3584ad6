"""Filters on pictures."""

from __future__ import annotations

import numpy as np

from workloads.workload import workload


def _picture(n, rng):
    return (rng.uniform(0, 1, (n, n)).astype(np.float32),)


@workload(_picture, small=16, full=1024, rtol=1e-5)
def gaussian_blur(image):
    rows = (image[:-4] + 4 * image[1:-3] + 6 * image[2:-2] + 4 * image[3:-1] + image[4:]) / 16
    return (rows[:, :-4] + 4 * rows[:, 1:-3] + 6 * rows[:, 2:-2] + 4 * rows[:, 3:-1] + rows[:, 4:]) / 16


@workload(_picture, small=16, full=1024, rtol=1e-4)
def sobel_edges(image):
    down = image[2:, :-2] + 2 * image[2:, 1:-1] + image[2:, 2:] - image[:-2, :-2] - 2 * image[:-2, 1:-1] - image[:-2, 2:]
    across = image[:-2, 2:] + 2 * image[1:-1, 2:] + image[2:, 2:] - image[:-2, :-2] - 2 * image[1:-1, :-2] - image[2:, :-2]
    return np.sqrt(down * down + across * across)


@workload(lambda n, rng: (rng.integers(0, 256, (n, n, 3)).astype(np.uint8), 0.1, 0.9), small=12, full=768, rtol=1e-4)
def tone_curve(picture, low, high):
    x = np.clip((picture.astype(np.float32) / 255 - low) / (high - low), 0, 1)
    curve = x * x * (3 - 2 * x)
    return (curve ** (1 / 2.2) * 255 + 0.5).astype(np.uint8)


@workload(lambda n, rng: (rng.uniform(0, 1, (n, n, 3)),), small=12, full=1024)
def grayscale(picture):
    gray = 0.2126 * picture[..., 0] + 0.7152 * picture[..., 1] + 0.0722 * picture[..., 2]
    return (gray - gray.min()) / (gray.max() - gray.min())


@workload(lambda n, rng: (rng.uniform(0, 1, (n, n)),), small=16, full=2048)
def downsample(image):
    height, width = image.shape
    return image.reshape(height // 4, 4, width // 4, 4).mean(axis=(1, 3))


@workload(lambda n, rng: (rng.uniform(0, 1, (n, n, 3)), rng.uniform(0, 1, (n, n, 4))), small=9, full=512)
def alpha_over(background, layer):
    alpha = layer[..., 3:]
    return layer[..., :3] * alpha + background * (1 - alpha)
