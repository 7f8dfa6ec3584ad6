"""A linear map that users hold: what `vjp` and `linearize` return is one, at one point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from jitml.autograd.api.transform_driver import inline, leaves_like, loses_half, require_structure
from jitml.autograd.arguments.point import ResultForm
from jitml.device.array import Array
from jitml.device.operations import compiled_alone
from jitml.dispatch.numpy_execution import by_numpy
from jitml.errors import DerivativeError
from jitml.ir.dims import resolve
from jitml.ir.graph import Graph
from jitml.ir.rewrite import of_sizes
from jitml.ir.types import Aval, dtype_name
from jitml.records import dataclass, replace
from jitml.trace.record.pytree import flatten, unflatten
from jitml.trace.record.recording import current_trace, user_source
from jitml.trace.values.boxing import is_traced, read


@dataclass(frozen=True, eq=False)
class LinearMap:
    """A graph of residuals and the leaves of one container, which it is linear in, to the leaves of another.

    Args:
        what: what the argument is called in messages.
        avals: of the argument's leaves.
    """

    what: str
    graph: Graph
    argument: ResultForm
    avals: tuple[Aval, ...]
    result: ResultForm

    def __call__(self, residuals: Sequence[Any], x: Any) -> Any:
        if current_trace() is None and not any(map(is_traced, residuals)):
            if any(type(leaf) is Array for leaf in (*residuals, *flatten(x)[0])):
                return self._on_device(list(residuals), x)
            return self._now(residuals, x)
        here = self._of_sizes(residuals)
        values = leaves_like(self.what, x, self.argument, here.avals)
        return self.result.show(inline(here.graph, [*map(read, residuals), *values]))

    @cached_property
    def _on_device(self) -> Callable[[Sequence[Any], Any], Any]:
        """Compiled, for arrays on a device."""
        return compiled_alone(partial(self))

    def _of_sizes(self, residuals: Sequence[Any]) -> LinearMap:
        """The same for the sizes that data have decided, as far as they are known by now: those of what NumPy has computed.

        Another point of the same function has the same names for other sizes, and may be met in the same trace.
        """
        entries = {value: residual for value, residual in zip(self.graph.inputs, residuals) if not is_traced(residual)}
        sizes = {sym: int(entries[value]) for sym, value in self.graph.binders().items() if value in entries}
        if not sizes:
            return self
        avals = tuple(a.with_shape(resolve(a.shape, sizes)) for a in self.avals)
        return replace(self, graph=of_sizes(self.graph, sizes), avals=avals)

    def _now(self, residuals: Sequence[Any], x: Any) -> Any:
        """By NumPy, without a trace."""
        leaves = require_structure(self.what, flatten(x), self.argument)
        arrays = [self._array(leaf, aval) for leaf, aval in zip(leaves, self.avals, strict=True)]
        results = by_numpy(self.graph, [*map(np.asarray, residuals), *arrays])
        kinds = zip(results, self.result.arrays, strict=True)
        return unflatten(self.result.spec, [np.array(y, order="C") if array else np.asarray(y)[()] for y, array in kinds])

    def _array(self, leaf: Any, aval: Aval) -> np.ndarray[Any, Any]:
        array = np.asarray(leaf)
        is_other = array.ndim != aval.ndim or any(type(n) is int and n != m for n, m in zip(aval.shape, array.shape))
        if is_other or loses_half(array.dtype, aval.dtype):
            found = f"{dtype_name(array.dtype)}[{','.join(map(str, array.shape))}]"
            raise DerivativeError(f"{self.what} is {found} where {aval} is wanted", source=user_source())
        return array.astype(aval.dtype, copy=False)
