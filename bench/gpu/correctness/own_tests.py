"""The tests marked `cuda`, a case for each of their files."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import partial
from pathlib import Path

from gpu.cases import Cases, Outcome, Setting
from gpu.failures import Mismatch, Skipped
from gpu.supervision import ROOT, environment

_TOLD = re.compile(r"(\d+) (passed|failed|error|skipped)")


def cases(setting: Setting) -> Cases:
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if re.search(r"mark\.cuda\b", path.read_text()):
            yield str(path.relative_to(ROOT)), partial(run_file, path)


def run_file(path: Path) -> Outcome:
    """In a process of its own, with the environment that the tests have, whose programs pick their back ends themselves."""
    command = [sys.executable, "-m", "pytest", "-m", "cuda", "-q", "--tb=short", "-p", "no:cacheprovider", str(path)]
    own = environment("")
    done = subprocess.run([*command, "--maxfail=4"], capture_output=True, text=True, env=own, cwd=ROOT, check=False)
    told = {what: int(n) for n, what in _TOLD.findall(done.stdout.splitlines()[-1] if done.stdout else "")}
    if done.returncode == 5:  # none was selected
        raise Skipped("no test of it is marked")
    if done.returncode:
        raise Mismatch(f"{told}: {done.stdout[-2600:]}{done.stderr[-600:]}")
    return {"figures": told}
