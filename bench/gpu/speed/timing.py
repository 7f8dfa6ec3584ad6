"""Timing on a GPU: batches of calls with one wait at their end, columns in turns, and one process at a time."""

from __future__ import annotations

import fcntl
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import optree

BATCH = 4e-3  # seconds that a sample should last: the wait at its end costs some microseconds
ROUNDS = 9
SLOW = 0.25  # seconds of a call: it is sampled once
AWAKE = 0.05  # seconds of work before the first sample: clocks of an idle GPU are low
ROTATED = 120 << 20  # bytes of all sets of arguments together: several times the second cache
_MOST_SETS = 12


@contextmanager
def turn(alone: bool) -> Iterator[None]:
    """A process's turn: what measures is alone on the device, what compiles is not; the one waits for the other."""
    place = Path(tempfile.gettempdir()) / f"gpu-check-{os.getuid()}.lock"
    with place.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


def synchronize() -> None:
    """Wait until the device has done all that this process has asked for; with no device there is nothing to wait for."""
    driver = _driver()
    if driver is None:
        return
    (error,) = driver.cuCtxSynchronize()
    if int(error):
        raise RuntimeError(f"the device says {error} after a measurement")


@cache
def _driver() -> Any:
    """The driver, with the context that all libraries share as this thread's; None without a device."""
    try:
        from cuda.bindings import driver

        if int(driver.cuInit(0)[0]):
            return None
    except (ImportError, RuntimeError):  # no bindings, or no driver
        return None
    _, device = driver.cuDeviceGet(0)
    _, context = driver.cuDevicePrimaryCtxRetain(device)
    driver.cuCtxSetCurrent(context)
    return driver


def finish(result: Any) -> None:
    """Wait for what a call has given, and all before it: JAX may not have handed it to the device yet."""
    for leaf in optree.tree_leaves(result):
        if hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()
    synchronize()


def timings(columns: Mapping[str, Callable[[], object]], *, rounds: int = ROUNDS, batch: float = BATCH) -> dict[str, list[float]]:
    """Seconds of a call of each column, in samples taken in turns, so that a change of clocks hits all alike.

    Args:
        columns: what to run, by name; called before, so that compilation is not timed.
        batch: seconds that a sample should last, of calls of which none waits for the one before.
    """
    repeats, slow = {}, {}
    for name, call in columns.items():
        if (once := _sample(call, 1)) > SLOW:
            slow[name] = [once]
            continue
        start, n = time.perf_counter(), 0
        while n < 3 or time.perf_counter() - start < AWAKE:
            result = call()
            n += 1
            if n % 16 == 0 or n < 3:
                finish(result)
        finish(result)
        once = _sample(call, 3)
        repeats[name] = max(1, min(2000, math.ceil(batch / max(once, 1e-7))))
    samples: dict[str, list[float]] = {name: [] for name in repeats}
    for _ in range(rounds):
        for name in repeats:
            call = columns[name]
            finish(call())
            samples[name].append(_sample(call, repeats[name]))
    return samples | slow


def _sample(call: Callable[[], object], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        result = call()
    finish(result)
    return (time.perf_counter() - start) / times


def medians(samples: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in samples.items()}


def rotating(function: Callable[..., Any], sets: Sequence[tuple[Any, ...]]) -> Callable[[], Any]:
    """A call with the next set of arguments each time: what a call reads has left the second cache since it was read last."""
    state = [0]

    def call() -> Any:
        state[0] = (state[0] + 1) % len(sets)
        return function(*sets[state[0]])

    return call


def sets_for(nbytes: int) -> int:
    """How many sets of arguments of so many bytes are to be rotated."""
    return max(1, min(_MOST_SETS, math.ceil(ROTATED / max(nbytes, 1))))
