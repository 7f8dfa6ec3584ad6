"""Names in code objects: which names does a function's code mention, and that of the functions inside it?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from types import CodeType


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


__all__ = ["codes_inside", "names_and_texts", "names_in_code"]
