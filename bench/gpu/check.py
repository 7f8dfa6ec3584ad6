"""The check of a GPU, in one command: `make gpu-check`, and `make gpu-check MODE=measure`.

    python -m bench.gpu.check [--mode check|measure] [--seconds N] [--only PART ...] [--backend NAME] [--emulated] [--results DIR]

Parts run in the order of their importance, each in processes of its own (`supervision.py`), until the time is over. After each,
what has been found so far is written to bench/results/gpu-check.json and .md (or gpu-measure), and a summary ends the output.
With no GPU, parts that need one say so. `--backend llvm` runs the others with another back end in the place of CUDA's, and
`--emulated` on an emulated device: to try the check itself.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from gpu import account, machine
from gpu.parts import PARTS
from gpu.supervision import ROOT, Part, PartResult, environment, missing, run_part

SECONDS = 345.0  # of six minutes: what is left is for the start and the end


def machine_facts(seconds: float = 60) -> dict[str, Any]:
    """What `gpu.machine` says, or why it does not."""
    command = [sys.executable, "-m", "gpu.machine"]
    try:
        done = subprocess.run(
            command, env=environment(""), cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return {"device": f"no answer of the driver within {seconds:g} seconds", "packages": {}}
    if done.returncode:
        return {"device": f"gpu.machine ended with {done.returncode}: {done.stderr[-600:]}", "packages": {}}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def run(options: argparse.Namespace) -> int:
    """All parts; 1 if anything failed."""
    until = time.time() + options.seconds
    facts = machine_facts()
    device = "emulated" if options.emulated else "real" if isinstance(facts.get("device"), Mapping) else "none"
    title = {"check": "The CUDA back end: is it right?", "measure": "The CUDA back end: how fast is it?"}[options.mode]
    name, results = f"gpu-{options.mode}", list[PartResult]()
    absent = machine.absent(facts, options.backend)
    if options.backend != "cuda":
        absent.pop("device", None)  # a stand-in needs none
    print(account.machine_line(facts), *sorted(absent.values()), sep="\n", flush=True)

    def note(result: PartResult) -> None:
        account.write(name, title, facts, [*results, result], options.results)

    for part in chosen(PARTS[options.mode], options.only):
        if why := missing(part, absent, device):
            result = PartResult(part.name, part.question, skipped=why)
        elif time.time() > until:
            result = PartResult(part.name, part.question, skipped="no time left")
        else:
            result = run_part(part, options.backend, device, until, note)
        print(account.headline(result), flush=True)
        note(result)
        results.append(result)
    if options.mode == "measure" and (plot := drawn(options.results)):
        account.write(name, title, facts, results, options.results, plot)
    print("\n" + account.summary(title, facts, results, tables=True), flush=True)
    return int(any(result.failed or result.broken for result in results))


def drawn(folder: Path, seconds: float = 20) -> str:
    """The name of the plot, if it could be drawn; if not, the output says why."""
    command = [sys.executable, "-m", "gpu.plot", str(folder.resolve())]
    try:
        done = subprocess.run(
            command, env=environment(""), cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"no plot within {seconds:g} seconds")
        return ""
    if done.returncode:
        print("no plot:", (done.stderr.strip().splitlines() or ["?"])[-1])
        return ""
    return "gpu-measure.svg"


def chosen(parts: Sequence[Part], names: Sequence[str] | None) -> list[Part]:
    return [part for part in parts if not names or part.name in names]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=tuple(PARTS), default="check")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for all parts")
    parser.add_argument("--only", nargs="*", help="names of parts")
    parser.add_argument("--backend", default="cuda", help="of the programs")
    parser.add_argument("--emulated", action="store_true", help="on an emulated device")
    parser.add_argument("--results", type=Path, default=account.RESULTS, help="the folder that they are written to")
    sys.exit(run(parser.parse_args()))


if __name__ == "__main__":
    main()
