"""Which op was the first whose result is no number?  `debug_nans`: transforms run op by op, through NumPy, and raise there.

Nothing is compiled then: a jitted function runs as plain Python, and the transforms in it are watched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import numpy as np

from jitml.config import CONFIG
from jitml.errors import NonFiniteError, Source
from jitml.ir.graph import Node
from jitml.ir.interpret import watched

Array = np.ndarray[Any, Any]

_debugging: ContextVar[bool] = ContextVar("jitml_debug_nans", default=CONFIG.debug_nans)


@contextmanager
def debug_nans(enabled: bool = True) -> Iterator[None]:
    """Raise, inside the block, at the first op of a transformed function that makes NaN of numbers.

    Of derivatives, infinite ones count too. `JITML_DEBUG_NANS=1` does so for a whole program.

    Raises:
        NonFiniteError: a result is NaN, or a derivative NaN or infinite, whose operands are not; it names the op and the line
            that it comes from. It is a FloatingPointError.

    >>> import numpy as np, jitml
    >>> with jitml.debug_nans():
    ...     jitml.grad(lambda x: np.sqrt(x))(0.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    jitml.errors.NonFiniteError: the slope of sqrt is inf: div(0.5, 0)
    ...
    """
    token = _debugging.set(enabled)
    try:
        yield
    finally:
        _debugging.reset(token)


def watching() -> AbstractContextManager[None]:
    """Inside the block, graphs that are interpreted are watched."""
    return watched(_watch)


def is_debugging() -> bool:
    return _debugging.get()


def derived(node: Node, role: str) -> Source | None:
    """The source of what a derivative records for a node: its own, and, where somebody watches, what it is for."""
    source = node.source
    if not _debugging.get():
        return source
    of = source.role.rsplit(" ", 1)[-1] if source is not None and source.role else node.op.name
    return replace(source or Source("", 0, ""), role=f"{role} of {of}")


def _watch(node: Node, operands: Sequence[Array], results: Sequence[Array]) -> None:
    if not operands or not (node.op.is_pointwise or all(map(_is_finite, operands))):
        return
    role = node.source.role if node.source is not None else ""
    for result in results:
        if result.dtype.kind not in "fc" or _is_finite(result):
            continue
        wrong = ~np.isfinite(result) if role else np.isnan(result)
        for x in operands if node.op.is_pointwise else ():  # an element is made of those in its place
            wrong = wrong & np.isfinite(x)
        if not wrong.any():
            continue
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        told = [_told(x[place] if x.shape == result.shape else x) for x in operands]
        at = f" at {list(place)}" if place else ""
        raise NonFiniteError(
            f"the {role or f'result of {node.op}'} is {_told(result[place])}{at}: {node.op}({', '.join(told)})",
            source=node.source if node.source is not None and node.source.file else None,
        )


def _is_finite(x: Array) -> bool:
    return x.dtype.kind not in "fc" or bool(np.isfinite(x).all())


def _told(x: Any) -> str:
    array = np.asarray(x)
    return (
        f"{array.item():.6g}" if array.ndim == 0 and array.dtype.kind == "f" else str(x) if array.size < 8 else f"{array.shape}"
    )
