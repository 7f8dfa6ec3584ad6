"""The rules of scalar functions: name of the pointwise op -> what writes it for a block of lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]  # (builder, *operands) -> result

RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the decorated function for each name.

    It is given operands of the dtypes that the op allows; of the float16 ones only `select` and `stop_gradient` hear.
    """

    def register(function: Rule) -> Rule:
        for name in names:
            if name in RULES:
                raise ValueError(f"{name} has a vector math rule already")
            RULES[name] = function
        return function

    return register
