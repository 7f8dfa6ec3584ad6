"""`make test-quick` runs something of every package, and its list names what is there."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
LISTED = [line for line in (ROOT / "tests" / "quick.txt").read_text().splitlines() if not line.startswith("#")]


def test_what_is_listed_is_there() -> None:
    assert not [line for line in LISTED if not (ROOT / line.partition("::")[0]).exists()]


def test_every_package_has_tests_in_it() -> None:
    packages = {path.parent.name for path in (ROOT / "src" / "jitml").glob("*/__init__.py")} - {"demo"}
    assert not {name for name in packages if not any(line.startswith(f"tests/{name}") for line in LISTED)}


def test_every_file_of_found_failures_is_in_it() -> None:
    found = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_found.py")}
    assert not {path for path in found if not any(path.startswith(line) for line in LISTED)}
