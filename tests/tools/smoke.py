"""Smoke test of an installed jitml: `python -I smoke.py VERSION`. It compiles, differentiates, and knows its version."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

import numpy as np

import jitml


def total(x: np.ndarray) -> np.ndarray:
    y = np.tanh(x) * 2
    y[0] = 0
    return (y**2).sum()


def main(version: str) -> None:
    place = Path(jitml.__file__)
    assert Path(sys.prefix) in place.parents, f"this is not what was installed: {place}"
    assert jitml.__version__ == metadata("jitml")["Version"] == version
    x = np.linspace(0, 1, 1000)
    compiled = jitml.jit(total, strict=True)
    np.testing.assert_allclose(compiled(x), total(x), rtol=1e-12)
    assert len(compiled.variants) == 1, "nothing was compiled"
    slope = jitml.jit(jitml.grad(total), strict=True)(x)
    np.testing.assert_allclose(slope[1:], 8 * np.tanh(x[1:]) / np.cosh(x[1:]) ** 2, rtol=1e-10)
    command = Path(sys.prefix) / "bin" / "jitml"
    said = subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout
    assert said == f"jitml {version}\n", said
    said = subprocess.run([command, "help", "JM106"], check=True, capture_output=True, text=True).stdout
    assert said.startswith("## JM106"), said
    print(f"jitml {version} works in {sys.prefix}")


if __name__ == "__main__":
    main(sys.argv[1])
