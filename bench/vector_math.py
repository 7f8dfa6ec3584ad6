"""How quick is vector math?  Nanoseconds per element on one core, data in the first-level cache, beside NumPy and SciPy.

    PYTHONPATH=src python bench/vector_math.py [--markdown FILE]

The time per element is the slope between a short and a long array, so that the cost of a call drops out. Times are CPU
time of the thread; all columns of a row are timed in turn, and the least of the rounds counts.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
from scipy import special

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from codegen.vectors import compile_vector
from jitml.codegen.scalar_math import emit
from jitml.ir.types import F32, F64

SHORT, LONG, REPEATS, ROUNDS = 128, 2048, 20, 40
PEERS: dict[str, Callable[..., np.ndarray]] = {"pow": np.power, "erf": special.erf, "logistic": special.expit}
RANGES: dict[str, tuple[tuple[float, float], ...]] = {
    **dict.fromkeys(("exp", "exp2", "expm1", "sin", "cos", "tan", "sinh", "cosh", "logistic", "cbrt"), ((-20.0, 20.0),)),
    **dict.fromkeys(("log", "log2", "log10", "log1p", "sqrt"), ((0.001, 1000.0),)),
    **dict.fromkeys(("arcsin", "arccos", "arctanh"), ((-0.99, 0.99),)),
    **dict.fromkeys(("tanh", "arctan", "arcsinh"), ((-9.0, 9.0),)),
    "arccosh": ((1.0, 50.0),),
    "erf": ((-4.0, 4.0),),
    "pow": ((0.1, 10.0), (-5.0, 5.0)),
    "hypot": ((-9.0, 9.0), (-9.0, 9.0)),
    "arctan2": ((-9.0, 9.0), (-9.0, 9.0)),
    "fmod": ((-50.0, 50.0), (0.5, 3.0)),
    "remainder": ((-50.0, 50.0), (0.5, 3.0)),
    "floor_divide": ((-50.0, 50.0), (0.5, 3.0)),
}


def seconds(call: Callable[[], object]) -> float:
    start = time.thread_time()
    for _ in range(REPEATS):
        call()
    return (time.thread_time() - start) / REPEATS


def per_element(calls: Sequence[tuple[Callable[[], object], Callable[[], object]]]) -> list[float]:
    """Nanoseconds per element of each (call on the short array, call on the long one)."""
    best = [[np.inf, np.inf] for _ in calls]
    for _ in range(ROUNDS):
        for times, pair in zip(best, calls, strict=True):
            for k, call in enumerate(pair):
                times[k] = min(times[k], seconds(call))
    return [(long - short) / (LONG - SHORT) * 1e9 for short, long in best]


def row(name: str, dtype: np.dtype) -> tuple[float, float]:
    """(jitml, NumPy or SciPy)."""
    rng = np.random.default_rng(0)
    xs = [rng.uniform(low, high, LONG).astype(dtype) for low, high in RANGES[name]]
    out = np.empty(LONG, dtype)
    f = compile_vector(lambda b, *args: emit(b, name, args, dtype), (dtype,) * len(xs), dtype, 64 // dtype.itemsize, 2)
    peer = PEERS.get(name) or getattr(np, name)
    pointers = [x.ctypes.data for x in (*xs, out)]
    native = f.native  # type: ignore[attr-defined]
    ours = tuple(lambda n=n: native(*pointers, n) for n in (SHORT, LONG))
    theirs = tuple(lambda n=n: peer(*(x[:n] for x in xs), out=out[:n]) for n in (SHORT, LONG))
    ours_ns, theirs_ns = per_element([ours, theirs])  # type: ignore[list-item]
    return ours_ns, theirs_ns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, help="write the table here")
    parser.add_argument("--only", nargs="*", help="these functions")
    options = parser.parse_args()
    lines = [
        "| function | float64 jitml | NumPy | ratio | float32 jitml | NumPy | ratio |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    ratios: list[float] = []
    for name in options.only or RANGES:
        cells = []
        for dtype in (F64, F32):
            ours, theirs = row(name, dtype)
            ratios.append(theirs / ours)
            cells.append(f"{ours:.2f} | {theirs:.2f} | {theirs / ours:.1f}")
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    mean = float(np.exp(np.mean(np.log(ratios))))
    print(f"geometric mean of the ratios: {mean:.2f}")
    if options.markdown:
        machine = f"{llvm.get_host_cpu_name()}, {platform.machine()}, one core"
        versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "llvmlite"))
        head = f"# Vector math: ns per element\n\n{date.today()} · {machine} · {versions}, Python {platform.python_version()}\n\n"
        note = f"\n\nGeometric mean of the ratios: {mean:.2f}. NumPy's column is SciPy's for `erf` and `logistic`.\n"
        options.markdown.write_text(head + (__doc__ or "").split("\n\n")[2] + "\n\n" + "\n".join(lines) + note)


if __name__ == "__main__":
    main()
