"""What does a call with arrays of a device cost on the host, beside what the driver takes?

    python -m bench.gpu.host_overhead [--rounds N] [--before FILE] [--no-record]

Needs no GPU: the device does nothing (`null_device.py`), and nobody waits for anything. So the thread's own time on the processor
is what is measured, the least of several rounds, and a busy machine does not matter much. Small functions are called with arrays
that are there, in a loop that holds one answer at a time; "other arguments each time" goes round among twelve sets of them,
"8 answers held" lets go of an answer eight calls later. Then parts of such a call by themselves. Recorded in
bench/results/host_overhead.md and .json.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent.parent.parent / "tests"))
os.environ.setdefault("JITML_TRIAL", "0")  # all that can be compiled is
import jitml
from gpu.null_device import null_gpu
from harness import record, table

Function = Callable[..., Any]
_CALLS = 300  # of a round


def add(x: Any, y: Any) -> Any:
    return x + y


def scaled(x: Any, s: Any) -> Any:
    return x * s + 1.0


def update(x: Any, y: Any) -> Any:
    x += 0.5 * y


def three(x: Any, y: Any) -> Any:
    return np.cumsum(np.cumsum(np.cumsum(x * y)))


def twenty(x: Any, y: Any) -> Any:
    for _ in range(10):
        x = np.maximum(x @ y, 0)
    return x


def many(x: Any, y: Any) -> Any:
    return x + y, x - y, x * y, x / y, x.sum(), y.max(axis=0)


def chosen(x: Any, places: Any) -> Any:
    return x[places] * 2


X, Y = np.ones((64, 64), np.float32), np.full((64, 64), 2, np.float32)
CASES: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "one launch": (add, (X, Y)),
    "one launch, and a number": (scaled, (X, 2.5)),
    "one launch, in place": (update, (X, Y)),
    "three launches": (three, (X.ravel(), Y.ravel())),
    "twenty launches": (twenty, (X, Y)),
    "six results": (many, (X, Y)),
    "a check, waited for": (chosen, (X, np.arange(7))),
}


def timings(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Seconds of the processor that a call takes."""
    found = dict.fromkeys(calls, math.inf)
    for call in calls.values():
        for _ in range(_CALLS):  # until all that is compiled, recorded and kept is
            call()
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.thread_time()
            for _ in range(_CALLS):
                call()
            found[name] = min(found[name], (time.thread_time() - start) / _CALLS)
    return found


def on_device(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(jitml.asarray(x, device="cuda") if isinstance(x, np.ndarray) else x for x in args)


def calls_of(function: Function, args: tuple[Any, ...]) -> dict[str, Callable[[], object]]:
    """A call in each setting."""
    jitted = jitml.jit(function, verify="never")
    own, sets, held = on_device(args), cycle([on_device(args) for _ in range(12)]), deque[Any](maxlen=8)
    last = None

    def same() -> object:
        nonlocal last
        last = jitted(*own)
        return last

    def others() -> object:
        nonlocal last
        last = jitted(*next(sets))
        return last

    return {"us": same, "other arguments each time, us": others, "8 answers held, us": lambda: held.append(jitted(*own))}


def parts() -> dict[str, Callable[[], object]]:
    """What a call of one launch is made of, or has been."""
    x, y = on_device((X, Y))
    jitted = jitml.jit(add, verify="never")
    jitted(x, y)
    device = x._device
    given = [device.given(array._view) for array in (x, y)]
    executable = jitted.lower(x, y).compile()
    memory: Any = device.memory

    def together() -> None:
        with memory.lock, memory.turn:
            pass

    def executed() -> None:
        for result in executable.on_device(*given):
            memory.free(result.owned)

    def shown() -> object:
        return jitml.device.array.array_of(jitml.device.registry._taken(device, executable.on_device(*given)[0]))

    return {
        "the lock and the context": together,
        "memory taken and freed": lambda: memory.free(memory.allocate(16384)),
        "the program, its results freed": executed,
        "the same, its results as arrays": shown,
        "the whole call": lambda: jitted(x, y),
    }


def shown(found: Mapping[str, Mapping[str, float]], before: Mapping[str, Mapping[str, float]]) -> str:
    """Tables; earlier figures stand behind those of now."""

    def cell(name: str, column: str) -> str:
        earlier = before.get(name, {}).get(column)
        return f"{1e6 * found[name][column]:.1f}" + ("" if earlier is None else f" ({1e6 * earlier:.1f})")

    columns = list(found[next(iter(CASES))])
    body = table(["a call", *columns], [[name, *(cell(name, c) for c in columns)] for name in CASES])
    body += "\n" + table(["a part of one launch", "us"], [[part, cell("parts", part)] for part in found["parts"]])
    return body + ("\nIn brackets: an earlier version.\n" if before else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--before", type=Path, help="the .json of an earlier version, to be shown as well")
    parser.add_argument("--no-record", action="store_true")
    args = parser.parse_args()
    before = json.loads(args.before.read_text())["results"] if args.before else {}
    with null_gpu():
        found = {name: timings(calls_of(*case), args.rounds) for name, case in CASES.items()}
        found["parts"] = timings(parts(), args.rounds)
    if args.no_record:
        print(shown(found, before))
    else:
        record("host_overhead", "Host time of calls with arrays of a device that does nothing", shown(found, before), found)


if __name__ == "__main__":
    main()
