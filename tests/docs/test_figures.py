"""Figures of pages: those that a page quotes are those on record, of the program that the page shows."""

from __future__ import annotations

import ast
import re

import pytest

from tools.pages import ROOT, blocks, name_of, pages

RECORD = (ROOT / "bench" / "results" / "suite.md").read_text()
COLUMNS = ("NumPy", "Numba", "JAX", "jitml")
_ROW = re.compile(r"^\| `(\w+)` \|(.*)\|$", re.MULTILINE)


def rows(text: str) -> dict[str, list[str]]:
    """What a page quotes: the times of programs."""
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in _ROW.findall(text)}


def on_record(name: str) -> list[str]:
    (cells,) = re.findall(rf"^\| {name} \|(.*)\|$", RECORD, re.MULTILINE)
    return [cell.strip() for cell in cells.split("|")][1:5]


def function_of(text: str, name: str) -> str:
    """A function as the text has it, without decorators."""
    (found,) = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef) and node.name == name]
    found.decorator_list = []
    return ast.unparse(found)


def shown_for(workloads: str, name: str) -> str:
    """The function that a page shows for a row: the program itself; of a gradient, the loss that it is the gradient of."""
    (found,) = [node for node in ast.walk(ast.parse(workloads)) if isinstance(node, ast.FunctionDef) and node.name == name]
    options = {option.arg: option.value for call in found.decorator_list for option in getattr(call, "keywords", ())}
    return options["loss"].id if "loss" in options else name


QUOTING = [page for page in pages() if "| | NumPy | Numba | JAX | jitml |" in page.read_text()]


def test_pages_quote() -> None:
    assert len(QUOTING) >= 10


@pytest.mark.parametrize("page", QUOTING, ids=name_of)
def test_the_figures_of_a_page_are_on_record(page: object) -> None:
    text = page.read_text()  # type: ignore[attr-defined]
    workloads = "\n".join(file.read_text() for file in sorted((ROOT / "bench" / "workloads").glob("*.py")))
    code = "\n".join("\n".join(block.lines) for block in blocks(text) if block.is_run)
    quoted = rows(text)
    assert quoted
    for name, cells in quoted.items():
        assert cells == on_record(name), name
        shown = shown_for(workloads, name)
        assert function_of(code, shown) == function_of(workloads, shown), name
    date = re.findall(r"\d{4}-\d{2}-\d{2}", RECORD)[0]
    assert re.findall(r"\((\d{4}-\d{2}-\d{2})\)", text) == [date]


def means() -> dict[str, str]:
    """The geometric means on record: so many times as fast as each, with one decimal."""
    found = re.findall(r"^\* jitml is ([\d.]+) times as fast as (\w+)", RECORD, re.MULTILINE)
    return {name: f"{float(times):.1f}" for times, name in found}


@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_the_means_are_those_on_record(name: str) -> None:
    text = (ROOT / name).read_text()
    told = re.findall(r"([\d.]+) times (NumPy|Numba|JAX)", text)
    assert {library.lower(): times for times, library in told} == means()
    (count,) = re.findall(r"of (\d+) workloads\)", RECORD)[:1]
    assert f"{count} everyday programs" in text
    assert re.findall(r"\d{4}-\d{2}-\d{2}", RECORD)[0] in text


def test_other_figures_are_found() -> None:
    assert rows("| `f` | 1 ms | 2 ms |") == {"f": ["1 ms", "2 ms"]}
    assert function_of("@d\ndef f(x):\n    return x", "f") != function_of("def f(x):\n    return x + 1", "f")
