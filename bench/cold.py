"""How long does the first call take, and the import?

    python bench/cold.py [--rounds N]

Elementwise functions of 10, 100 and 1000 operations on 1000 numbers: the first call of a fresh function, in a process that
has compiled something before; beside JAX (`jit`, 64-bit). First answers are not checked here (`verification.py` tells what
that costs). And what `import jitml` adds to `import numpy`, in fresh
processes. Recorded in bench/results/cold.md and cold.json.
"""

from __future__ import annotations

import argparse
import atexit
import importlib.util
import linecache
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
os.environ["JITML_TRIAL"] = "0"  # a first call that would rather run as plain Python compiles
os.environ["JITML_CACHE_DIR"] = tempfile.mkdtemp()  # in the user's folder are the programs of the last run
import jitml
from harness import duration, record, table

SIZES = (10, 100, 1000)
LIMITS = {10: 0.015, 100: 0.050, 1000: 0.350}  # seconds that jitml allows itself


def chain(operations: int, seed: int, np: ModuleType) -> Callable[..., Any]:
    """A function of two arrays with that many operations: sums, products, quotients, some functions."""
    rng = random.Random(seed)
    lines, names = [], ["x", "y"]
    for n in range(operations):
        a, b = rng.choice(names[-4:]), rng.choice(names[-4:])
        form = rng.choice(
            ["{a} + {b}", "{a} - 0.5 * {b}", "{a} * {b}", "{a} / ({b} * {b} + 2.0)", "np.sin({a})", "np.sqrt({a} * {a} + 1.0)"]
        )
        lines.append(f"    t{n} = {form.format(a=a, b=b)}")
        names.append(f"t{n}")
    source = "\n".join(["def f(x, y):", *lines, f"    return t{operations - 1} + {' + '.join(names[-4:-1])}"])
    name = f"<a chain of {operations}, {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"np": np}
    exec(compile(source, name, "exec"), scope)
    function: Callable[..., Any] = scope["f"]
    return function


def first_calls(compile_one: Callable[[int, int], Callable[..., Any]], args: tuple[Any, ...], rounds: int) -> dict[int, float]:
    """Median seconds of the first call by number of operations; each round has a function of its own."""
    compile_one(5, 10**6)(*args)
    result = {}
    for operations in SIZES:
        samples = []
        for seed in range(rounds if operations < 1000 else max(3, rounds // 3)):
            function = compile_one(operations, seed)
            jitml.settle()  # what the first call before has left for the background
            start = time.perf_counter()
            function(*args)
            samples.append(time.perf_counter() - start)
        result[operations] = statistics.median(samples)
    return result


def with_jitml(operations: int, seed: int) -> Callable[..., Any]:
    return jitml.jit(chain(operations, seed, np), verify="never")


def with_jax() -> Callable[[int, int], Callable[..., Any]]:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def compile_one(operations: int, seed: int) -> Callable[..., Any]:
        function = jax.jit(chain(operations, seed, jnp))
        return lambda *args: jax.block_until_ready(function(*args))

    return compile_one


def import_times(rounds: int) -> tuple[float, float]:
    """Median seconds of `import numpy`, and of `import jitml` after it, as fresh processes measure them."""
    program = (
        "import time; start = time.perf_counter(); import numpy; between = time.perf_counter(); import jitml; "
        "print(between - start, time.perf_counter() - between)"
    )
    with tempfile.TemporaryDirectory() as cache:
        # Byte code is cached, as in any installation, whatever this shell's settings.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPYCACHEPREFIX": cache}
        call = [sys.executable, "-c", program]
        runs = [subprocess.run(call, capture_output=True, text=True, check=True, env=environment) for _ in range(rounds + 1)]
    times = [tuple(map(float, run.stdout.split())) for run in runs[1:]]
    return statistics.median(t[0] for t in times), statistics.median(t[1] for t in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    atexit.register(shutil.rmtree, os.environ["JITML_CACHE_DIR"], ignore_errors=True)
    args = (np.linspace(0.1, 1.0, 1000), np.linspace(1.0, 2.0, 1000))
    columns = {"jitml": first_calls(with_jitml, args, rounds)}
    if importlib.util.find_spec("jax") is not None:
        columns["jax"] = first_calls(with_jax(), args, rounds)
    rows = [
        [
            f"{n} operations",
            *(duration(columns[c][n]) for c in columns),
            duration(LIMITS[n]),
            "yes" if columns["jitml"][n] <= LIMITS[n] else "no",
        ]
        for n in SIZES
    ]
    body = table(["first call", *columns, "limit", "within it"], rows)
    plain, ours = import_times(3 * rounds)
    body += f"\n`import numpy` takes {duration(plain)}, `import jitml` after it {duration(ours)} (limit 50 ms).\n"
    record("cold", "First calls", body, {"first_call": columns, "import_numpy": plain, "import_jitml": ours})


if __name__ == "__main__":
    main()
