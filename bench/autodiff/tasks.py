"""Which derivative is asked for, of whichever library, and does it agree with finite differences?

A library is its `Transforms`: its own functions under common names. A task asks them for a derivative, and compares that with
differences along a random direction, which a wrong element anywhere would show in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import optree

Function = Callable[..., Any]


class Transforms(Protocol):
    """A library's derivatives. `rows_jacobian`: of a function of rows, one Jacobian for each row."""

    def grad(self, f: Function, argnums: int | Sequence[int]) -> Function: ...
    def jacobian(self, f: Function, argnums: int) -> Function: ...
    def rows_jacobian(self, f: Function, argnums: Sequence[int]) -> Function: ...
    def hessian(self, f: Function, argnums: int) -> Function: ...


@dataclass(frozen=True)
class Task(ABC):
    """A derivative by some arguments."""

    argnums: tuple[int, ...]

    @abstractmethod
    def of(self, ad: Transforms, f: Function) -> Function:
        """The derivative of `f`, by a library."""

    @abstractmethod
    def slope(self, result: Any, directions: Sequence[np.ndarray]) -> Any:
        """What the derivative says of the change of `varied` along a direction."""

    def varied(self, ad: Transforms, f: Function) -> Function:
        """The function whose change it describes."""
        return f

    def error(self, ad: Transforms, f: Function, args: tuple[Any, ...], result: Any) -> float:
        """The largest difference from finite differences, relative to the largest of them."""
        rng = np.random.default_rng(1)
        directions = [rng.standard_normal(np.shape(args[k])) for k in self.argnums]
        norm = np.sqrt(sum((v * v).sum() for v in directions))
        directions = [v / norm for v in directions]
        measured = along(self.varied(ad, f), args, self.argnums, directions)
        pairs = list(zip(optree.tree_leaves(self.slope(result, directions)), optree.tree_leaves(measured), strict=True))
        return max(float(np.max(np.abs(a - b)) / np.max(np.abs(b))) for a, b in pairs)


def along(
    f: Function, args: tuple[Any, ...], argnums: Sequence[int], directions: Sequence[np.ndarray], step: float = 2e-4
) -> Any:
    """The slope of f along a direction, by differences of fourth order."""

    def at(h: float) -> Any:
        moved = [args[k] + h * v for k, v in zip(argnums, directions)]
        values = dict(zip(argnums, moved))
        return optree.tree_map(np.asarray, f(*(values.get(k, x) for k, x in enumerate(args))))

    def combined(a: Any, b: Any, c: Any, d: Any) -> Any:
        return (8 * (a - b) - (c - d)) / (12 * step)

    return optree.tree_map(combined, at(step), at(-step), at(2 * step), at(-2 * step))


class Gradient(Task):
    """Of a function with one result."""

    def of(self, ad: Transforms, f: Function) -> Function:
        return ad.grad(f, self.argnums)

    def slope(self, result: Any, directions: Sequence[np.ndarray]) -> Any:
        return sum(np.vdot(g, v) for g, v in zip(result, directions, strict=True))


class Jacobian(Task):
    """By one argument."""

    def of(self, ad: Transforms, f: Function) -> Function:
        return ad.jacobian(f, self.argnums[0])

    def slope(self, result: Any, directions: Sequence[np.ndarray]) -> Any:
        return np.tensordot(np.asarray(result), directions[0], directions[0].ndim)


class RowsJacobian(Task):
    """The blocks of a Jacobian in which row i of the result depends on row i of each argument alone."""

    def of(self, ad: Transforms, f: Function) -> Function:
        return ad.rows_jacobian(f, self.argnums)

    def slope(self, result: Any, directions: Sequence[np.ndarray]) -> Any:
        blocks = [np.asarray(block) for block in result]
        flat = [v.reshape(len(v), -1) for v in directions]
        return sum(np.einsum("roa,ra->ro", b.reshape(*b.shape[:2], -1), v) for b, v in zip(blocks, flat, strict=True))


class Hessian(Task):
    """By one argument, a vector."""

    def of(self, ad: Transforms, f: Function) -> Function:
        return ad.hessian(f, self.argnums[0])

    def slope(self, result: Any, directions: Sequence[np.ndarray]) -> Any:
        return np.asarray(result) @ directions[0]

    def varied(self, ad: Transforms, f: Function) -> Function:
        return ad.grad(f, self.argnums[0])


class Greeks(Task):
    """Slopes of prices by all arguments, and the second one by the first: independent of one another in each element."""

    def of(self, ad: Transforms, f: Function) -> Function:
        slopes = ad.grad(lambda *args: f(*args).sum(), self.argnums)
        delta = ad.grad(lambda *args: f(*args).sum(), 0)
        gamma = ad.grad(lambda *args: delta(*args).sum(), 0)
        return lambda *args: (*slopes(*args), gamma(*args))

    def slope(self, result: Any, directions: Sequence[np.ndarray]) -> Any:
        *slopes, gamma = (np.asarray(x) for x in result)
        return sum(g * v for g, v in zip(slopes, directions, strict=True)), gamma

    def error(self, ad: Transforms, f: Function, args: tuple[Any, ...], result: Any) -> float:
        rng = np.random.default_rng(1)
        directions = [rng.standard_normal(np.shape(args[k])) for k in self.argnums]
        first, gamma = self.slope(result, directions)
        deltas = ad.grad(lambda *args: f(*args).sum(), 0)
        pairs = (
            (first, along(f, args, self.argnums, directions)),
            (gamma, along(deltas, args, (0,), [np.ones_like(args[0])], step=1e-2)),
        )
        return max(float(np.max(np.abs(a - b)) / np.max(np.abs(b))) for a, b in pairs)
