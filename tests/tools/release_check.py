"""Release check: what would be published is complete, well described, and works where it is installed (`make release-check`).

    python -m tests.tools.release_check [INTERPRETER ...]

builds sdist and wheel into out/dist, and has twine look at them. Each is installed into an environment of its own, where the
smoke test (`smoke.py`) runs. The sdist is tried with this interpreter. The wheel is tried with each Python that the project
promises and that is found here: on PATH, under pyenv, or named. Those that are not found are said.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "out" / "dist"
SMOKE = Path(__file__).with_name("smoke.py")
WANTED = {
    "sdist": ("README.md", "LICENSE", "CHANGELOG.md", "Makefile"),
    "wheel": ("jitml/__init__.py", "jitml/py.typed", "jitml/pages/error-codes.md"),
}
_PROMISE = "Programming Language :: Python :: "


def project() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        found: dict[str, Any] = tomllib.load(file)["project"]
    return found


def promised() -> list[str]:
    """The versions of Python that the project says it runs on: "3.11", ..."""
    return [line.removeprefix(_PROMISE) for line in project()["classifiers"] if line.startswith(_PROMISE)]


def version_of(python: str | Path) -> str | None:
    """The version of an interpreter, "3.12"; None if it does not run."""
    asked = [str(python), "-c", "import sys; print(*sys.version_info[:2], sep='.')"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def interpreters(named: Iterable[str]) -> dict[str, str]:
    """The first working interpreter of each promised version: this one, those that are named, on PATH, under pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    on_path = [f"python{version}" for version in promised()]
    found: dict[str, str] = {}
    for python in (sys.executable, *named, *on_path, *sorted(map(str, pyenv.glob("*/bin/python")), reverse=True)):
        version = version_of(python)
        if version in promised():
            found.setdefault(version, python)
    return found


def run(*command: str | Path) -> None:
    print("$", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, cwd=PLACE)


def missing(archive: Path) -> list[str]:
    """Files that belong into an sdist or a wheel and are not there."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return [name for name in WANTED["wheel"] if name not in wheel.namelist()]
    with tarfile.open(archive) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    return [name for name in WANTED["sdist"] if name not in names]


def try_out(archive: Path, python: str, name: str) -> None:
    """Install an archive into an environment of its own, and run the smoke test there."""
    place = PLACE / f"venv-{name}"
    run(python, "-m", "venv", place)
    inside = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    run(inside, "-m", "pip", "install", "--quiet", archive)
    run(inside, "-I", SMOKE, project()["version"])


def main(named: list[str]) -> int:
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    run(sys.executable, "-m", "build", "--outdir", PLACE, ROOT)
    sdist, wheel = (PLACE / f"jitml-{project()['version']}{end}" for end in (".tar.gz", "-py3-none-any.whl"))
    run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
    for archive in (sdist, wheel):
        if left_out := missing(archive):
            print(f"{archive.name} has no {', '.join(left_out)}", file=sys.stderr)
            return 1
    found = interpreters(named)
    try_out(sdist, sys.executable, "sdist")
    for version, python in found.items():
        try_out(wheel, python, version)
    print(f"jitml {project()['version']}: sdist and wheel are fine; the wheel was tried on Python {', '.join(found)}")
    if others := [version for version in promised() if version not in found]:
        print(f"NOT CHECKED, for want of an interpreter: Python {', '.join(others)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
