"""How long does the first call of a process take?

    python bench/first_call.py [--rounds 15] [--before DIR] [--note TEXT] [--no-record]

In fresh processes, from behind `import numpy` to the result: `import jitml`, the decorator, tracing, compilation or the program
from the disk, a checked answer. With an empty cache, and with what earlier processes have left. `--before` is another checkout's
`src`, which is measured in turns with this one's. Wall time, and time of the processor, which says more where others work beside.
Recorded in bench/results/first_call.md and first_call.json.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))
from harness import duration, record, table

HERE = Path(__file__).parents[1] / "src"
LIMITS = {"empty": 0.250, "warm": 0.080}  # seconds that jitml allows itself
PROGRAM = """
import sys
import time
import numpy as np
walls, works = time.perf_counter(), time.process_time()
import jitml

@jitml.jit
def f(x, y):
{body}

x = np.linspace(0.0, 1.0, 12000).reshape(300, 40)
f(x, x + 1)
print(time.perf_counter() - walls, time.process_time() - works, len(f.variants), int("jitml.pipeline" in sys.modules))
"""
BODIES = {
    "a chain of ten operations": [
        "a = x + y",
        "b = a - 0.5 * y",
        "c = np.sin(b) * a",
        "d = c / (b * b + 2.0)",
        "return d + np.sqrt(a)",
    ],
    "a loop, a choice and a sum": [
        *("z = x * 2.0 + y", "for _ in range(3):", "    z = z + np.sin(z) * 0.5"),
        "return np.where(z > 0, z, -z).sum(axis=0) + np.sqrt(x[0])",
    ],
}


class Cost(NamedTuple):
    """Seconds on the wall, and of the processor."""

    wall: float
    processor: float


def first_call(script: Path, source: Path, cache: Path, *, is_warm: bool) -> Cost:
    """One process; it must have compiled, or taken the program from the disk, as it is told."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("JITML_")}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)  # byte code is cached, as in any installation
    variables |= {"PYTHONPATH": str(source), "JITML_CACHE_DIR": str(cache), "JITML_TRIAL": "0"}
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, env=variables)
    wall, processor, variants, compilers = ran.stdout.split()
    assert variants == "1" and compilers == str(int(not is_warm)), ran.stdout
    return Cost(float(wall), float(processor))


def measure(body: list[str], sources: dict[str, Path], rounds: int) -> dict[str, dict[str, list[Cost]]]:
    """Costs by source and by what the cache has, in turns."""
    found: dict[str, dict[str, list[Cost]]] = {name: {"empty": [], "warm": []} for name in sources}
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "program.py")
        script.write_text(PROGRAM.format(body="\n".join(f"    {line}" for line in body)))
        for n in range(-1, rounds):  # the first writes byte code, and is not counted
            for name, source in sources.items():
                cache = Path(folder, f"{name}{n if n < 0 or n % 5 == 0 else n - n % 5}")
                if not cache.exists():
                    empty = first_call(script, source, cache, is_warm=False)
                    found[name]["empty"] += [empty] if n >= 0 else []
                warm = first_call(script, source, cache, is_warm=True)
                found[name]["warm"] += [warm] if n >= 0 else []
    return found


def median(costs: list[Cost]) -> Cost:
    return Cost(statistics.median(c.wall for c in costs), statistics.median(c.processor for c in costs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--note", default="", help="what is said below the table")
    parser.add_argument("--no-record", action="store_true", help="print only")
    given = parser.parse_args()
    sources = ({"before": given.before.resolve()} if given.before else {}) | {"jitml": HERE}
    rows, data = [], {}
    for title, body in BODIES.items():
        data[title] = found = measure(body, sources, given.rounds)
        for kind, limit in LIMITS.items():
            costs = [median(found[name][kind]) for name in sources]
            shown = [f"{duration(cost.wall)}, {duration(cost.processor)}" for cost in costs]
            rows.append([f"{title}, {kind} cache", *shown, duration(limit), "yes" if costs[-1].wall <= limit else "no"])
    head = ["first call: wall, processor", *sources, "limit", "within it"]
    body_text = table(head, rows) + (f"\n{given.note}\n" if given.note else "")
    if given.no_record:
        print(body_text)
    else:
        record("first_call", "The first call of a process, over `import numpy`", body_text, data)


if __name__ == "__main__":
    main()
