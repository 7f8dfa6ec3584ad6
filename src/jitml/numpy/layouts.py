"""In which order do the axes of a new array lie in memory?  As NumPy lays it out, which a later reshape or view can tell.

`@keeps_order`: like the operands of a ufunc. `@keeps_copy`: like a copy of the operand. `@keeps_rest`: like the operand without
the axes that are reduced. `@keeps_columns`: by columns if the operand is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from jitml.ir import ops
from jitml.ir.dims import bound
from jitml.ir.graph import Value
from jitml.numpy.operands import axes_of, reshape_value
from jitml.trace.strides import Ints, copied_strides, kept_strides, largest_stride, surely_contiguous
from jitml.trace.tracers import TracedArray, fresh, is_fortran

F = TypeVar("F", bound=Callable[..., Any])


def _laid_out_by(lay: Callable[..., None]) -> Callable[[F], F]:
    """Let what a function makes lie in memory as `lay(made, args, kwargs)` says."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def laid_out(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            for made in result if type(result) is tuple else (result,):
                if _is_new(made, args, kwargs):
                    lay(made, args, kwargs)
            return result

        return laid_out  # type: ignore[return-value]  # of the same signature

    return decorate


def _like_operands(made: TracedArray, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    lay_out(made, [(a.sizes, a.layout) for a in _arrays(args) if a.ndim == made.ndim])


def _like_copy(made: TracedArray, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    arrays = [a for a in _arrays(args[:1]) if a.ndim == made.ndim]
    if len(arrays) == 1 and not made.storage.is_external:
        made.layout = made.storage.strides = copied_strides((arrays[0].sizes, arrays[0].layout), made.sizes)


def _like_rest(made: TracedArray, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if args and type(args[0]) is TracedArray:
        lay_out_rest(made, args[0], axes_of(args[1] if len(args) > 1 else kwargs.get("axis"), args[0].ndim))


def _by_columns(made: TracedArray, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if args and type(args[0]) is TracedArray and is_fortran(args[0]):
        put_in_order(made, range(made.ndim)[::-1])


keeps_order = _laid_out_by(_like_operands)  # as NumPy lays it out: like the operands with as many axes
keeps_copy = _laid_out_by(_like_copy)  # as NumPy lays a copy of the first argument out
keeps_rest = _laid_out_by(_like_rest)  # like the axes of the first argument that a reduction over `axis`, the second, leaves
keeps_columns = _laid_out_by(_by_columns)  # by columns if the first argument does, else by rows


def kept_rest(x: TracedArray, axes: Collection[int]) -> list[int]:
    """The axes of x but these, outermost in memory first."""
    return sorted((n for n in range(x.ndim) if n not in axes), key=lambda n: -abs(largest_stride(x.layout[n])))


def stand_in(sizes: Ints, layout: Ints) -> np.ndarray[Any, Any]:
    """A small array whose axes lie in memory in the order of these strides; what NumPy makes of it shows a result's."""
    outer_first = sorted(range(len(sizes)), key=lambda n: (-abs(largest_stride(layout[n])), n))
    small = np.zeros([min(bound(sizes[n]), 2) for n in outer_first])
    return small.transpose([outer_first.index(n) for n in range(len(sizes))])


def put_like(result: TracedArray, shown: np.ndarray[Any, Any]) -> None:
    """Let the axes of a new array lie in memory in the order of those of a small one."""
    put_in_order(result, sorted(range(shown.ndim), key=lambda n: (-abs(shown.strides[n]), n)))


def _is_new(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a result is an array of its own."""
    given = (*args, kwargs.get("out"))
    return type(result) is TracedArray and not result.steps and not any(result is a for a in given)


def put_in_order(result: TracedArray, outer_first: Iterable[int]) -> None:
    """Let the axes of a new array lie in memory in this order."""
    if result.storage.is_external:
        return
    strides = [0] * result.ndim
    step = 1
    for axis in reversed(tuple(outer_first)):
        strides[axis] = step
        step *= result.sizes[axis]
    result.layout = result.storage.strides = tuple(strides)


def lay_out_rest(result: TracedArray, operand: Any, axes: Collection[int]) -> None:
    """Let a new array lie in memory like the axes that are left of the operand without those given."""
    if type(operand) is not TracedArray or surely_contiguous(operand.sizes, operand.layout):
        return
    rest = [axis for axis in range(operand.ndim) if axis not in axes]
    sizes, layout = tuple(operand.sizes[n] for n in rest), tuple(operand.layout[n] for n in rest)
    strides = kept_strides([(sizes, layout)], sizes)
    at = rest if result.ndim == operand.ndim else range(len(rest))
    known = dict(zip(at, strides))
    if len(at) == len(rest) and not result.storage.is_external:
        result.layout = result.storage.strides = tuple(known.get(n, 1) for n in range(result.ndim))


def beside_each_other(values: Sequence[Value], outer_first: Iterable[int] | None = None) -> tuple[TracedArray, ...]:
    """Arrays of one shape, of which each element lies beside that of the next array: NumPy's C code makes indices together.

    Args:
        outer_first: the order of their axes in memory, if they do not lie by rows.
    """
    ndim = values[0].ndim
    together = fresh(ops.concat(*(reshape_value(x, (*x.shape, 1)) for x in values), axis=ndim))
    if outer_first is not None:
        put_in_order(together, (*outer_first, ndim))
    return tuple(together[..., k] for k in range(len(values)))


def _arrays(args: tuple[Any, ...]) -> Iterator[TracedArray]:
    for a in args:
        for part in a if isinstance(a, (list, tuple)) else (a,):
            if type(part) is TracedArray:
                yield part


def lay_out(result: TracedArray, operands: Sequence[tuple[Ints, Ints]]) -> None:
    """Let a new array lie in memory like operands of as many axes, of which these are the shapes and strides."""
    if result.storage.is_external or all(surely_contiguous(*operand) for operand in operands):
        return
    # An axis that the function makes longer or shorter counts as the operand's own.
    layouts = [(tuple(1 if n == 1 else m for n, m in zip(sizes, result.sizes)), layout) for sizes, layout in operands]
    result.layout = result.storage.strides = kept_strides(layouts, result.sizes)
