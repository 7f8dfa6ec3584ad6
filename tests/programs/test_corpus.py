"""Whole programs, unmodified under jit: NumPy's answer, and one compilation for their shapes."""

from __future__ import annotations

from typing import Any

import pytest

import jitml
from programs.comparing import difference, within
from programs.corpus import NAMES, load

# Programs that refuse, and what they wait for. A program that starts to pass fails until its line is gone.
WAITING: dict[str, str] = {}


def programs(waiting: dict[str, str]) -> list[Any]:
    def marks(name: str) -> list[Any]:
        return [pytest.mark.xfail(strict=True, raises=jitml.JitmlError, reason=waiting[name])] if name in waiting else []

    return [pytest.param(name, marks=marks(name)) for name in NAMES]


@pytest.mark.parametrize("name", programs(WAITING))
def test_a_program_agrees_with_numpy_and_compiles_once(name: str) -> None:
    program = load(name)
    compiled = jitml.jit(program.function)
    for seed in range(3):
        mine, eager = program.arguments("small", seed), program.arguments("small", seed)
        expected = program.function(*eager)
        got = compiled(*mine)
        assert difference(got, expected, within(1e-9)) is None
        assert difference(mine, eager, within(1e-9), "arguments") is None
    assert len(compiled.variants) == 1, [variant.reason for variant in compiled.variants]
