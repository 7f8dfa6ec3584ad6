"""Public programs, plain and jitted, each in a process of its own; see `bench/public/__init__.py`.

    python -m bench.public --checkouts DIR [--only NAME ...] [--json OUT] [--seconds LIMIT] [--again N]
    python -m bench.public --list | --how

`--how` prints the commands that make the checkouts. A program that comes out slower than 0.95 of plain Python is run again, up to
N times, and its best run counts: a busy machine makes any program slow.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from bench.public.programs import Program, all_programs, how_to_get
from bench.public.report import Outcome, report

ROOT = Path(__file__).parent.parent.parent
_BUSY = 6  # times as long as a program's processor time it may take where others use the machine


def run_one(program: Program, checkouts: Path, limit: float) -> Outcome:
    """A program's outcome, from the lines that its process told before it ended or was ended."""
    command = [sys.executable, "-X", "faulthandler", "-m", "bench.public.child", str(checkouts), program.name, str(int(limit))]
    start = time.monotonic()
    with TemporaryFile("w+") as told, TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=told, stderr=errors, text=True, cwd=ROOT)
        try:
            status: int | None = process.wait(_BUSY * limit)
            status = None if status == -signal.SIGXCPU else status
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            status = None
        told.seek(0)
        errors.seek(0)
        lines: list[dict[str, Any]] = [json.loads(line) for line in told if line.startswith("{")]
        return Outcome.of(program.name, lines, status, errors.read()[-3000:], time.monotonic() - start)


def best_of(program: Program, options: argparse.Namespace) -> Outcome:
    """A program's outcome; if it is slow, the best of several."""
    outcome = run_one(program, options.checkouts, options.seconds)
    for _ in range(options.again):
        if outcome.kind != "right" or outcome.gain is None or outcome.gain >= 0.95:
            break
        other = run_one(program, options.checkouts, options.seconds)
        if other.kind != "right" or (other.gain or 0) > outcome.gain:
            outcome = other
    return outcome


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="bench.public", description=__doc__, formatter_class=raw)
    parser.add_argument("--checkouts", type=Path, help="a directory with a checkout for each repository, named owner+name")
    parser.add_argument("--only", nargs="+", default=(), help="programs of these names, or of lists of these names")
    parser.add_argument("--json", type=Path, help="write the outcomes here")
    parser.add_argument("--md", type=Path, help="write the report here")
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of a program's process, in seconds of a processor")
    parser.add_argument("--again", type=int, default=2, help="how often a slow program is run again")
    parser.add_argument("--list", action="store_true", help="print the programs' names")
    parser.add_argument("--how", action="store_true", help="print the commands that make the checkouts")
    options = parser.parse_args()
    programs = [p for p in all_programs() if not options.only or {p.name, p.name.partition("/")[0]} & set(options.only)]
    if options.list:
        print("\n".join(program.name for program in programs))
        return
    if options.how or options.checkouts is None:
        print(how_to_get(programs))
        return
    outcomes = []
    for program in programs:
        outcomes.append(best_of(program, options))
        print(outcomes[-1].line(), flush=True)
        if options.json:
            options.json.write_text(json.dumps([vars(outcome) for outcome in outcomes], indent=1) + "\n")
    text = report(outcomes)
    if options.md:
        options.md.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
