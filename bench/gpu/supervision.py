"""Supervision of check parts: processes that run its cases, ended when they hang, and started anew behind a crash."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu.cases import LOST

ROOT = Path(__file__).parent.parent.parent
_RESTARTS = 25  # of one process, after which what is left of its cases is given up
_GRACE = 3.0  # seconds beyond its end for a part to come to it


@dataclass(frozen=True)
class Part:
    """One part of the check.

    Args:
        name: of its section.
        question: that it answers.
        module: with `cases(setting)`.
        seconds: the most it may take.
        processes: that share its cases, if there are cores for them.
        patience: seconds for one case; of one that takes longer the process is ended.
        needs: what must be there: `device`, `backend`, names of Python packages, `tool:NAME` for programs.
        emulated: whether it runs on an emulated device, too.
        verifies: whether jitml's stages are verified in it, which takes time.
    """

    name: str
    question: str
    module: str
    seconds: float
    processes: int = 1
    patience: float = 30.0
    needs: frozenset[str] = frozenset()
    emulated: bool = False
    verifies: bool = True


@dataclass
class PartResult:
    """What a part has found: `rows`, one for each case that began; `left`, cases that it had no time for."""

    part: str
    question: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    left: int = 0
    seconds: float = 0.0
    skipped: str = ""
    broken: list[str] = field(default_factory=list)

    @property
    def failed(self) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["status"] not in ("passed", "skipped", "unfinished")]


def environment(backend: str, verifies: bool = True) -> dict[str, str]:
    """Of a child: where jitml and the tests' tables are, the back end that programs get, and whether each stage is verified."""
    paths = [str(ROOT / "src"), str(ROOT / "bench"), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    own = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "JITML_VERIFY": "never", "JITML_CHECK": str(int(verifies))}
    own |= {"JITML_TRIAL": "0"}  # all that can be compiled is, at its first call
    # Every framework of the measurements would take most of the memory for itself, and as many threads as there are cores.
    own |= {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TORCHINDUCTOR_COMPILE_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
    return dict(os.environ) | own | {"JITML_BACKEND": backend}


class Child:
    """A process that runs its share of a part's cases; `poll` reads its log and starts it anew where it has to."""

    def __init__(self, part: Part, shard: str, backend: str, device: str, until: float, room: Path) -> None:
        self.part, self.until = part, until
        name = f"{part.name}-{shard.replace('/', 'of')}".replace(" ", "_")
        self.log, self.skip, self.errors = (room / f"{name}.{kind}" for kind in ("log", "skip", "err"))
        self.command = [sys.executable, "-m", "gpu.cases", part.module, "--log", str(self.log), "--skip", str(self.skip)]
        self.command += ["--shard", shard, "--until", repr(until), "--backend", backend, "--device", device]
        self.command += ["--patience", repr(part.patience)]
        self.environment = environment(backend, part.verifies)
        self.rows: list[dict[str, Any]] = []
        self.left, self.starts, self.is_done, self.broken = 0, 0, False, ""
        self.start()

    def start(self) -> None:
        self.starts += 1
        self.skip.write_text("\n".join(row["case"] for row in self.rows))
        self.log.write_text("")
        self._seen, self._current, self._began = 0, None, time.monotonic()
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                self.command, env=self.environment, cwd=ROOT, stdout=errors, stderr=errors, start_new_session=True
            )

    def poll(self) -> None:
        """Take note of what has happened."""
        if self.is_done:
            return
        status = self.process.poll()  # before the log is read: what is read then is all of it
        self._read()
        if self.is_done:
            self._end()
        elif status is not None:
            self._ended(status)
        elif self._current is not None and time.monotonic() - self._began > self.part.patience:
            self._end()
            self._lost("hung", f"no answer within {self.part.patience:g} seconds")
            self._again()
        elif time.time() > self.until + _GRACE:
            self._end()
            if self._current is not None:
                self._lost("unfinished", "the part's time was over")
            self.is_done = True

    def _read(self) -> None:
        text = self.log.read_text()
        whole = text.rfind("\n") + 1
        for line in text[self._seen : whole].splitlines():
            row = json.loads(line)
            if "begin" in row:
                self._current, self._began = row["begin"], time.monotonic()
            elif "case" in row:
                self.rows.append(row)
                self._current, self._began = None, time.monotonic()
            else:
                self.left, self.is_done = row["left"], True
        self._seen = whole

    def _ended(self, status: int) -> None:
        """It is gone before its end: by a device that no longer answers, or a crash in a case or before the first one."""
        if self._current is not None:
            what = signal.Signals(-status).name if status < 0 else f"exit status {status}"
            self._lost("crashed", what)
        elif status != LOST:
            self.broken, self.is_done = f"exit status {status}: {self._tail(2500)}", True
            return
        self._again()

    def _lost(self, status: str, detail: str) -> None:
        assert self._current is not None
        row = {"case": self._current, "status": status, "seconds": round(time.monotonic() - self._began, 2)}
        self.rows.append(row | {"error": status, "message": detail, "stderr": self._tail(2500)})
        self._current = None

    def _again(self) -> None:
        if self.starts >= _RESTARTS or time.time() > self.until:
            self.broken = f"given up after {self.starts} starts" if self.starts >= _RESTARTS else ""
            self.is_done = True
        else:
            self.start()

    def _tail(self, characters: int) -> str:
        return self.errors.read_text(errors="replace")[-characters:]

    def _end(self) -> None:
        if self.process.poll() is None:
            # Its own session: whatever it has started (pytest, compute-sanitizer) goes with it.
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def run_part(part: Part, backend: str, device: str, until: float, tick: Callable[[PartResult], None]) -> PartResult:
    """Run a part until it is done, or its time is over.

    Args:
        until: the end of all, by `time.time()`.
        tick: called with what has been found so far, every few seconds.
    """
    start = time.time()
    until = min(until, start + part.seconds)
    result = PartResult(part.name, part.question)
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as room:
        processes = min(part.processes, max(1, (os.cpu_count() or 1) * 3 // 4))
        shards = [f"{n}/{processes}" for n in range(processes)]
        children = [Child(part, shard, backend, device, until, Path(room)) for shard in shards]
        told = start
        try:
            while not all(child.is_done for child in children):
                time.sleep(0.05)
                for child in children:
                    child.poll()
                if time.time() - told > 5:
                    told = time.time()
                    tick(_gathered(result, children, start))
        finally:
            for child in children:
                child._end()
        return _gathered(result, children, start)


def _gathered(result: PartResult, children: list[Child], start: float) -> PartResult:
    result.rows = sorted((row for child in children for row in child.rows), key=lambda row: str(row["case"]))
    result.left = sum(child.left for child in children)
    result.broken = list(dict.fromkeys(child.broken for child in children if child.broken))
    result.seconds = round(time.time() - start, 1)
    return result


def missing(part: Part, absent: Mapping[str, str], device: str) -> str:
    """Why a part cannot run here, if it cannot; `absent`: needs that are not met, and why."""
    needs = part.needs - {"device"} if device == "emulated" and part.emulated else part.needs
    return "; ".join(absent[need] for need in sorted(needs) if need in absent)
