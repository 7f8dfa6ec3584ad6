"""Check cases: what a part of the check runs, one after the other, in a process of its own.

    python -m gpu.cases PART --log FILE [--shard K/N] [--skip FILE] [--until TIME] [--backend NAME] [--device KIND]

Each case adds two lines of JSON to the log, one when it begins and one with its outcome, so that the process that supervises
(`supervision.py`) knows which one crashed or hung, and nothing is lost when it does. After a failure the device is asked whether
it still answers: an error of CUDA's that stays with a context ends the process, and another one goes on behind that case.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from gpu.failures import Skipped, describe

LOST = 17  # exit status: the device's context no longer answers

Outcome = Mapping[str, Any]
Cases = Iterator[tuple[str, Callable[[], Outcome | None]]]


@dataclass(frozen=True)
class Setting:
    """How a part is to be run.

    Args:
        backend: of the programs: `cuda`, or another one in its place where there is no GPU.
        device: `real`, `emulated`, or `none`.
        until: when the part ends, by `time.time()`.
        processes: that share the part's cases.
    """

    backend: str = "cuda"
    device: str = "none"
    until: float = float("inf")
    processes: int = 1

    @property
    def seconds_left(self) -> float:
        return self.until - time.time()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module")
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--skip", type=Path)
    parser.add_argument("--until", type=float, default=float("inf"))
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--device", default="none")
    parser.add_argument("--patience", type=float, default=60.0)
    options = parser.parse_args()
    own, of = map(int, options.shard.split("/"))
    setting = Setting(options.backend, options.device, options.until, of)
    skip = set(options.skip.read_text().splitlines()) if options.skip else set()
    warnings.filterwarnings("ignore")
    cases = importlib.import_module(options.module).cases(setting)
    left = 0
    with options.log.open("a") as log, _device(setting):
        for n, (name, run) in enumerate(cases):
            if n % of != own or name in skip:
                continue
            if setting.seconds_left < 0:
                left += 1
            elif not run_case(name, run, log, options.patience):
                log.close()
                os._exit(LOST)  # what would be called at an orderly exit has no device left
        _line(log, {"end": True, "left": left})


def _device(setting: Setting) -> AbstractContextManager[Any]:
    """What programs run on in the place of a GPU, if they are to run on something else."""
    if setting.device != "emulated":
        return nullcontext()
    from support.cuda_emulation.device import emulated

    return emulated()


def run_case(name: str, run: Callable[[], Outcome | None], log: TextIO, patience: float) -> bool:
    """Run one, with its outcome in the log; whether the device still answers."""
    _line(log, {"begin": name})
    start = time.perf_counter()
    # Of a case that is about to be ended from outside, the stack is worth having.
    faulthandler.dump_traceback_later(0.8 * patience, exit=False, file=sys.stderr)
    try:
        row: dict[str, Any] = {"status": "passed", **(run() or {})}
    except Skipped as reason:
        row = {"status": "skipped", "detail": str(reason)}
    except Exception as error:  # a case that fails is a result, to be shown
        row = {"status": "failed", **describe(error)}
    faulthandler.cancel_dump_traceback_later()
    lost = device_error() if row["status"] == "failed" else None
    if row.get("error") == "DeviceFault":  # jitml's own device takes nothing more, whatever the driver says
        lost = lost or "DeviceFault"
    if lost is not None:
        row["lost"] = lost
    _line(log, {"case": name, "seconds": round(time.perf_counter() - start, 4), **row})
    return lost is None


def device_error() -> str | None:
    """What this process's CUDA context answers when it is waited for, if that is an error; nothing is loaded for it."""
    driver = sys.modules.get("cuda.bindings.driver")
    if driver is None:
        return None
    try:
        error, context = driver.cuCtxGetCurrent()
        if int(error) or not int(context):
            return None
        (error,) = driver.cuCtxSynchronize()
        return None if int(error) == 0 else str(error)
    except Exception:  # there is no driver, hence no context that could be lost
        return None


def _line(log: TextIO, row: Mapping[str, Any]) -> None:
    log.write(json.dumps(row, default=str) + "\n")
    log.flush()


if __name__ == "__main__":
    main()
