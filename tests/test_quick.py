"""What runs when: `make test-quick` something of every package, `make test` the rows of wide tables by turns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support import effort

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


class Item:
    """A row as pytest has it."""

    def __init__(self, function: str, row: int, marks: Sequence[str], params: dict[str, object]) -> None:
        self.name = f"{function}[{row}-{'-'.join(map(str, params.values()))}]"
        self.nodeid = self.name if "::" in function else f"tests/test_x.py::{self.name}"
        self.callspec = SimpleNamespace(params={"row": row, **params})
        self.marks = marks

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.marks else None


def rows(function: str, count: int, *marks: str) -> list[Any]:
    return [Item(function, n, marks, {}) for n in range(count)]


def in_both_ways(function: str, count: int) -> list[Any]:
    return [Item(function, n, (), {"finish": way}) for n in range(count) for way in ("eager", "jitted")]


@pytest.fixture(autouse=True)
def some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "FULL", False)


def test_some_turns_see_every_row_once() -> None:
    table = rows("test_wide", 200)
    seen = [effort.by_turns(table, turn)[0] for turn in "01234"]
    assert sorted(item.name for items in seen for item in items) == sorted(item.name for item in table)
    assert all(len(items) > 25 for items in seen)
    assert [item.name for item in effort.by_turns(table, "3f")[0]] == [item.name for item in seen[0x3F % 5]]


@pytest.mark.parametrize(("count", "marks", "turn"), [(7, (), "1"), (200, ("every_row",), "1"), (200, (), None)])
def test_narrow_tables_marked_ones_and_files_by_hand_run_whole(count: int, marks: tuple[str, ...], turn: str | None) -> None:
    table = rows("test_it", count, *marks)
    assert effort.by_turns(table, turn) == (table, [])


def test_costly_tables_are_narrower() -> None:
    table = rows("tests/codegen/cuda/test_x.py::test_costly", 10)
    seen = [effort.by_turns(table, turn)[0] for turn in "01234"]
    assert sorted(item.name for items in seen for item in items) == sorted(item.name for item in table)
    assert max(len(items) for items in seen) < 7


def test_a_full_run_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "FULL", True)
    table = in_both_ways("test_wide", 200)
    assert effort.by_turns(table, "1") == (table, [])


def test_each_row_runs_in_one_of_its_ways() -> None:
    table = in_both_ways("test_both", 10)
    kept, left = effort.by_turns(table, None)
    assert len(kept) == len(left) == 10
    assert {item.callspec.params["row"] for item in kept} == set(range(10))
    assert {item.callspec.params["finish"] for item in kept} == {"eager", "jitted"}
