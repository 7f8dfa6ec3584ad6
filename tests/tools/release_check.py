"""Release check: what would be published is complete, well described, and works where it is installed (`make release-check`).

    python -m tests.tools.release_check

builds sdist and wheel into out/dist, has twine look at them, and installs each into an environment of its own, where the smoke
test (`smoke.py`) runs.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "out" / "dist"
SMOKE = Path(__file__).with_name("smoke.py")
WANTED = {"sdist": ("README.md", "LICENSE", "CHANGELOG.md", "Makefile"), "wheel": ("jitml/__init__.py", "jitml/py.typed")}


def version() -> str:
    with (ROOT / "pyproject.toml").open("rb") as file:
        text: str = tomllib.load(file)["project"]["version"]
    return text


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


def main() -> int:
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    run(sys.executable, "-m", "build", "--outdir", PLACE, ROOT)
    archives = [PLACE / f"jitml-{version()}{end}" for end in (".tar.gz", "-py3-none-any.whl")]
    run(sys.executable, "-m", "twine", "check", "--strict", *archives)
    for archive in archives:
        if left_out := missing(archive):
            print(f"{archive.name} has no {', '.join(left_out)}", file=sys.stderr)
            return 1
        place = PLACE / f"venv-{archive.suffix[1:]}"
        venv.create(place, with_pip=True)
        python = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        run(python, "-m", "pip", "install", "--quiet", archive)
        run(python, "-I", SMOKE, version())
    print(f"jitml {version()}: sdist and wheel are fine")
    return 0


if __name__ == "__main__":
    sys.exit(main())
