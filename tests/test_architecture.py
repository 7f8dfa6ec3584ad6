"""Imports point down the pipeline and never up (docs/architecture.md), and none hides in a function to escape a cycle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "jitml"

# What each part of the package may import; a part may always import itself.
BASE = {"errors", "config", "forks", "headroom", "interrupts", "process"}
ALLOWED = {
    "errors": set(),
    "config": {"errors"},
    "forks": set(),
    "headroom": {"errors", "interrupts"},
    "interrupts": {"forks"},
    "process": {"forks", "interrupts"},
    "ir": BASE,
    "trace": BASE | {"ir"},
    "numpy": BASE | {"ir", "trace"},
    "autograd": BASE | {"ir", "trace"},
    "fusion": BASE | {"ir"},
    "memory": BASE | {"ir", "fusion"},
    "codegen": BASE | {"ir", "fusion", "memory"},
    "runtime": BASE | {"ir", "fusion", "memory", "codegen"},
    "pipeline": BASE | {"ir", "fusion", "memory", "codegen", "runtime"},
    "dispatch": BASE | {"ir", "trace", "numpy", "autograd", "fusion", "memory", "codegen", "runtime", "pipeline"},
}
TOP = {"api", "control", "report", "demo", "__main__", "__init__"}  # these see all layers


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[str, ast.AST, bool]]:
    """(module, node, inside a function) for each import of a file."""
    tree = ast.parse(path.read_text())
    functions = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))]
    inside = {id(n) for f in functions for n in ast.walk(f)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node, id(node) in inside
        elif isinstance(node, ast.ImportFrom) and node.module == "jitml":
            for alias in node.names:
                yield f"jitml.{alias.name}", node, id(node) in inside
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node, id(node) in inside


FILES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    part = part_of(path)
    for module, node, _ in imports(path):
        if not module.startswith("jitml.") or part in TOP:
            continue
        target = module.split(".")[1]
        assert target == part or target in ALLOWED[part], f"{path}:{node.lineno}: {part} must not import {target}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_import_hides_a_cycle(path: Path) -> None:
    for module, node, inside in imports(path):
        if inside and part_of(path) not in TOP:
            assert not module.startswith("jitml"), f"{path}:{node.lineno}: {module} imported inside a function"
