"""Filter a photograph: Gaussian blur, Sobel edges and a tone curve, as one NumPy function over slices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

# A Gaussian of sigma 1.5 pixels, seven taps.
WEIGHTS = tuple(
    float(w) for w in np.exp(-(np.arange(-3, 4) ** 2) / (2 * 1.5**2)) / np.exp(-(np.arange(-3, 4) ** 2) / (2 * 1.5**2)).sum()
)


def load() -> Array:
    """The photograph of a Chinese temple that ships in scikit-learn: u8[427, 640, 3]."""
    from sklearn.datasets import load_sample_image

    return np.asarray(load_sample_image("china.jpg"))


def sketch(image: Array) -> Array:
    """A drawing of a photograph: smoothed colours under a warm tone curve, with dark lines where the edges are.

    Args:
        image: u8[h, w, 3].

    Returns:
        u8[h - 8, w - 8, 3]; the border that the filters reach over is cut off.
    """
    x = image.astype(np.float32) / 255.0
    h, w, _ = x.shape
    # The blur is separable: along rows, then along columns.
    rows = np.zeros((h, w - 6, 3), np.float32)
    for k, weight in enumerate(WEIGHTS):
        rows += weight * x[:, k : w - 6 + k]
    blur = np.zeros((h - 6, w - 6, 3), np.float32)
    for k, weight in enumerate(WEIGHTS):
        blur += weight * rows[k : h - 6 + k]
    grey = 0.299 * blur[:, :, 0] + 0.587 * blur[:, :, 1] + 0.114 * blur[:, :, 2]
    right, left = grey[:, 2:], grey[:, :-2]
    gx = (right - left)[:-2] + 2 * (right - left)[1:-1] + (right - left)[2:]
    below, above = grey[2:], grey[:-2]
    gy = (below - above)[:, :-2] + 2 * (below - above)[:, 1:-1] + (below - above)[:, 2:]
    edges = np.sqrt(gx * gx + gy * gy)
    ink = 1.0 - np.clip(2.5 * edges - 0.15, 0.0, 1.0)
    # A tone curve that lifts the shadows and rolls the highlights off, warmer in red than in blue.
    tone = 1.0 - np.exp(-np.array([2.6, 2.4, 2.1], np.float32) * blur[1:-1, 1:-1] ** 0.9)
    return (np.clip(tone * ink[:, :, None], 0.0, 1.0) * 255.0).astype(np.uint8)


def save(before: Array, after: Array, path: Path) -> None:
    """Both pictures side by side as a PNG."""
    from PIL import Image

    cut = before[4:-4, 4:-4]
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.concatenate([cut, after], axis=1)).save(path)
