"""Forced breaks: functions in sections, at statements that are drawn, though the whole could be compiled."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from jitml.api import Jit
from jitml.config import CONFIG
from jitml.dispatch.renting import PURSE
from jitml.options import Options
from jitml.sections.blame import Break
from jitml.sections.frames import place
from jitml.sections.split import SplitFunction


@contextmanager
def trials(are_made: bool = True) -> Iterator[None]:
    """What is compiled is timed against plain Python, as it is for users whose process has run for long."""
    before, spent, startup = CONFIG.trial, PURSE.spent, PURSE.startup
    object.__setattr__(CONFIG, "trial", are_made)
    PURSE.spent, PURSE.startup = -1e6, 0.0  # seconds
    try:
        yield
    finally:
        object.__setattr__(CONFIG, "trial", before)
        PURSE.spent, PURSE.startup = spent, startup


def no_trials() -> AbstractContextManager[None]:
    """Sections are compiled at once, and stay."""
    return trials(are_made=False)


def in_sections(function: Callable[..., Any], breaks: Callable[[ast.stmt], bool], options: Options | None = None) -> Jit:
    """The function, compiled in sections between the statements that are to break."""
    jitted = Jit(function, options or Options(strict=False))
    found = jitted.splits.refused(RuntimeError(), (), {})
    if found is None or not found.is_possible:  # it has no source, or looks at its own frame
        jitted.splits.clear()
        return jitted
    split = split_of(jitted)
    jitted.engine._is_special = True
    for statement in statements_of(split):
        if breaks(statement):
            split.breaks[place(statement)] = Break(statement.lineno, ast.unparse(statement).partition("\n")[0], "forced", "", "")
    return jitted


def split_of(jitted: Jit) -> SplitFunction:
    """The one that answers all calls of a function from now on."""
    splits = jitted.splits
    found = splits.refused(RuntimeError(), (), {}) if not splits else next(iter(splits))
    assert found is not None and found.is_possible
    splits.answer_all(found)
    return found


def statements_of(split: SplitFunction) -> list[ast.stmt]:
    assert split._text is not None
    return [node for node in ast.walk(split._text.node) if isinstance(node, ast.stmt) and node is not split._text.node]


def drawn_breaks(seed: int, share: float) -> Callable[[ast.stmt], bool]:
    """So large a share of a function's statements."""
    draws = random.Random(seed)
    return lambda statement: draws.random() < share
