"""How near do memory-bound chains come to the machine's copy?

    python bench/bandwidth.py [--rounds N] [--threads N]

Chains of cheap operations over arrays far beyond the caches. Bytes are those that must be read and written (each array
once); the yardstick is a copy by the same compiler with the same number of threads, both into fresh results. Recorded in
bench/results/bandwidth.md and bandwidth.json.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import jitml
from harness import record, table, timings
from jitml.codegen.llvm.runtime.cpu import thread_limit

N = 16_000_000
TARGET = 0.8


def copy(x):
    return x.copy()


def scale_and_shift(x):
    return (2.0 * x + 1.0) * 0.5 - 3.0


def triad(x, y):
    return x + 3.0 * y


def clipped_difference(x, y):
    return np.minimum(np.maximum(x - y, -1.0), 1.0)


def four_arrays(x, y, z):
    return np.where(x > 0, x * y + z, z - y)


def in_place(x, y):
    x *= 0.5
    x += y


def total(x):
    return (x * x).sum()


# Arrays read and written.
CHAINS: dict[Callable[..., Any], tuple[int, int]] = {
    copy: (1, 1),
    scale_and_shift: (1, 1),
    triad: (2, 1),
    clipped_difference: (2, 1),
    four_arrays: (3, 1),
    in_place: (2, 1),
    total: (1, 0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=thread_limit())
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(N) for _ in range(3)]
    calls: dict[str, Callable[[], object]] = {}
    for function, (reads, _) in CHAINS.items():
        calls[function.__name__] = partial(jitml.jit(function, threads=options.threads), *arrays[:reads])
    calls["NumPy's copy"] = partial(np.copy, arrays[0])
    seconds = timings(calls, rounds=options.rounds)
    moved = {f.__name__: 8 * N * sum(counts) for f, counts in CHAINS.items()} | {"NumPy's copy": 16 * N}
    rate = {name: moved[name] / seconds[name] / 1e9 for name in calls}
    rows = []
    for name in calls:
        share = rate[name] / rate["copy"]
        rows.append(
            [name, f"{seconds[name] * 1e3:.1f} ms", f"{rate[name]:.1f} GB/s", f"{share:.0%}", "yes" if share >= TARGET else "no"]
        )
    body = f"{N:,} f64 per array, {options.threads} threads.\n\n"
    body += table(["chain", "time", "bytes moved", "of the copy", "at least 80 %"], rows)
    record(
        "bandwidth", "Memory-bound chains", body, {"threads": options.threads, "seconds": seconds, "gigabytes_per_second": rate}
    )


if __name__ == "__main__":
    main()
