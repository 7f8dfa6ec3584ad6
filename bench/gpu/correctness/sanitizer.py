"""A sample of programs under compute-sanitizer: accesses out of bounds, races, barriers, memory that nothing has written."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from gpu.cases import Cases, Outcome, Setting
from gpu.failures import Mismatch
from gpu.machine import tool
from gpu.supervision import environment

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
_FOUND = 86  # exit status when it has found something


def cases(setting: Setting) -> Cases:
    for name in TOOLS:
        yield name, partial(run_under, name, setting)


def run_under(name: str, setting: Setting) -> Outcome:
    sanitizer = tool("compute-sanitizer")
    assert sanitizer is not None, "the part needs it"
    with tempfile.TemporaryDirectory(prefix="gpu-sanitizer-") as room:
        log = Path(room) / "log"
        until = setting.until - 2
        inner = [sys.executable, "-m", "gpu.cases", "gpu.correctness.sample", "--log", str(log), "--until", repr(until)]
        command = [sanitizer, "--tool", name, "--error-exitcode", str(_FOUND), "--print-limit", "5", *inner]
        command += ["--backend", setting.backend, "--device", setting.device]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(setting.backend), check=False)
        lines = log.read_text().splitlines() if log.exists() else []
    ran = sum('"case"' in line for line in lines)
    said = "\n".join(line for line in (done.stdout + done.stderr).splitlines() if line.startswith("========="))
    if done.returncode == _FOUND or not ran:
        raise Mismatch(f"{ran} programs ran, exit status {done.returncode}: {said[:2600] or done.stderr[-1500:]}")
    return {"figures": {"programs": ran, "said": said.splitlines()[-1] if said else ""}}
