"""Names in code objects: which names does a function's code mention or load, and what are these bound to now?"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any


def codes_inside(code: CodeType) -> Iterator[CodeType]:
    """The code objects of functions and classes inside of one, at any depth."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes_inside(constant)


@lru_cache(maxsize=4096)
def names_in_code(code: CodeType) -> frozenset[str]:
    """Names of globals and attributes."""
    return frozenset(code.co_names).union(*(inner.co_names for inner in codes_inside(code)))


@lru_cache(maxsize=4096)
def names_and_texts(code: CodeType) -> frozenset[str]:
    """The same, and strings that may be names."""
    constants = (c for inner in (code, *codes_inside(code)) for c in inner.co_consts)
    return names_in_code(code).union(c for c in constants if isinstance(c, str) and c.isidentifier())


@lru_cache(maxsize=1024)
def globals_in(code: CodeType) -> frozenset[str]:
    """Names that a function, and functions in it, load from their module, or of builtins."""
    codes = (code, *codes_inside(code))
    steps = (step for inner in codes for step in dis.get_instructions(inner))
    return frozenset(step.argval for step in steps if step.opname == "LOAD_GLOBAL")


def outer_values(function: FunctionType) -> dict[str, Any]:
    """What a function loads by name, as far as it is bound: globals, and what it closes over."""
    found = {name: function.__globals__[name] for name in globals_in(function.__code__) if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with suppress(ValueError):
            found[name] = cell.cell_contents
    return found


__all__ = ["codes_inside", "globals_in", "names_and_texts", "names_in_code", "outer_values"]
