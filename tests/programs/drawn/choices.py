"""What Hypothesis, or a plain generator of random numbers, decides."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Choices:
    """Decisions, each of which shrinks towards the first or the least.

    Args:
        between: an integer between two, both inclusive.
    """

    def __init__(self, between: Callable[[int, int], int]) -> None:
        self.number = between

    @classmethod
    def drawn(cls, draw: Callable[[st.SearchStrategy[Any]], Any]) -> Choices:
        """By Hypothesis, which shrinks them."""
        return cls(lambda low, high: int(draw(st.integers(low, high))))

    @classmethod
    def seeded(cls, seed: str) -> Choices:
        """By a generator: the same ones for the same seed, each time and everywhere."""
        return cls(random.Random(seed).randint)

    def pick(self, items: Sequence[T]) -> T:
        return items[self.number(0, len(items) - 1)] if len(items) > 1 else items[0]

    def chance(self, percent: int) -> bool:
        """True in `percent` of a hundred."""
        return self.number(0, 99) >= 100 - percent

    def some(self, items: Sequence[T], least: int = 1) -> list[T]:
        """A few of the items, in their order."""
        chosen = [item for item in items if self.chance(50)]
        return chosen if len(chosen) >= least else list(items[:least])
