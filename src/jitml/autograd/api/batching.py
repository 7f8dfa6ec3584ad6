"""`vmap`: a function of one row as a function of many, computed together."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import optree

from jitml.autograd.api.transform_driver import Function, is_refusal, remember, rows_of, runs_untraced, was_refused
from jitml.autograd.arguments.aliasing import own_copies
from jitml.autograd.arguments.attributes import hand_on_attributes, is_inexact_or_array, never
from jitml.autograd.arguments.point import copied, is_number, told
from jitml.autograd.batching.ragged import Given, Ragged, RaggedRows
from jitml.autograd.batching.vmap import spread_ragged
from jitml.autograd.core.batch import Batch, Batched, Operand
from jitml.autograd.reverse.budget import shared_by_rows
from jitml.autograd.tape.calls import converted
from jitml.autograd.tape.tape import current_tape
from jitml.device.convert import ours
from jitml.diagnostics.tracebacks import entry
from jitml.dispatch.eager import TransformTries, attempt
from jitml.errors import Cause, DTypeError, RowsDiffer, ShapeError, is_programs_own
from jitml.functions import require_function
from jitml.interrupts import pass_on
from jitml.ir import ops
from jitml.ir.dims import Size, bound
from jitml.ir.graph import Value
from jitml.ir.types import I64
from jitml.trace.environment.transformed import Transformed
from jitml.trace.hooks.convert import convert
from jitml.trace.record.pytree import NAMESPACE, flatten, holds_itself, unflatten
from jitml.trace.record.recording import active_trace, current_trace, user_source
from jitml.trace.result_trees import settled
from jitml.trace.storage.strides import kept_strides
from jitml.trace.subgraph import trace_subgraph
from jitml.trace.symbolic.sizes import named, number
from jitml.trace.values.boxing import fresh, layout_of, read, wrap
from jitml.trace.values.kinds import rebuilt
from jitml.trace.values.registry import call

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitml.typing.functions import FunctionObject, P, R

    Row = float | NDArray[Any]  # a number for all rows, or one for each
    OneOfRow = complex | np.number[Any] | np.bool[bool]

_WHOLE = object()  # an axis of None: the same for every row
_UNLIKE = "all input arrays must have the same shape"  # as np.stack has it
_NOT_ONE = "vmap: a result whose out_axes is None differs from row to row"


# What takes a number of each row takes an array of them, and what returns a number returns an array. Where a function takes
# arrays and numbers, the numbers have to be annotated as what they may be: numbers or arrays.
if TYPE_CHECKING:

    @overload
    def vmap(f: np.ufunc, in_axes: Any = 0, out_axes: Any = 0) -> FunctionObject[..., Any]: ...
    @overload
    def vmap(f: Callable[[float], OneOfRow], in_axes: Any = 0, out_axes: Any = 0) -> FunctionObject[[Row], NDArray[Any]]: ...
    @overload
    def vmap(
        f: Callable[[float, float], OneOfRow], in_axes: Any = 0, out_axes: Any = 0
    ) -> FunctionObject[[Row, Row], NDArray[Any]]: ...
    @overload
    def vmap(
        f: Callable[[float, float, float], OneOfRow], in_axes: Any = 0, out_axes: Any = 0
    ) -> FunctionObject[[Row, Row, Row], NDArray[Any]]: ...
    @overload
    def vmap(f: Callable[P, OneOfRow], in_axes: Any = 0, out_axes: Any = 0) -> FunctionObject[P, NDArray[Any]]: ...
    @overload
    def vmap(f: Callable[P, R], in_axes: Any = 0, out_axes: Any = 0) -> FunctionObject[P, R]: ...


@entry
def vmap(f: Function, in_axes: Any = 0, out_axes: Any = 0) -> Function:
    """`f` for every row: what `np.stack([f(x) for x in xs])` gives, without the loop.

    Args:
        f: a function of one row. It may branch, loop and write into the arrays it makes; it gets copies of its arguments.
        in_axes: the axis of each argument along which its rows lie, counted from the end if negative; None where all rows
            get the same argument. One for all arguments, or a tuple with one for each, which may be a container of axes
            where the argument is one. Keyword arguments have their rows along the first axis.
        out_axes: where the rows of the results go, likewise; None for a result that is the same for all rows.

    Raises:
        ShapeError: arguments have different numbers of rows, or no such axis. It is a ValueError.

    >>> import numpy as np
    >>> vmap(np.dot)(np.ones((3, 2)), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    array([ 3.,  7., 11.])
    >>> vmap(lambda x, scale: x * scale, in_axes=(1, None), out_axes=1)(np.ones((2, 3)), 2.0).shape
    (2, 3)
    """
    require_function("vmap", f)

    def program(f: Function, *args: Any, **kwargs: Any) -> Any:
        return _record_rows(f, in_axes, out_axes, args, kwargs)

    key = ("vmap", _key(in_axes), _key(out_axes))

    @functools.wraps(f)
    def batched(*args: Any, **kwargs: Any) -> Any:
        trace, tries = current_trace(), TransformTries()
        if trace is None:
            args, kwargs = ours(args, kwargs)
        if trace is None and current_tape() is not None:  # what is differentiated as it runs is not captured
            return _one_by_one(converted(f), _rows(in_axes, args, kwargs), out_axes)
        is_plain = trace is None and (runs_untraced(args, kwargs) or was_refused(key, f, args, kwargs))
        if is_plain and (rows := _rows(in_axes, args, kwargs)):
            return _one_by_one(f, rows, out_axes)
        try:
            return attempt(key, lambda: program, f, args, kwargs, tries)[0]
        except Exception as error:
            pass_on(error)
            is_left = is_refusal(error) and getattr(error, "cause", None) is Cause.SYNTAX
            if trace is not None or not (isinstance(error, RowsDiffer) or is_programs_own(error) or is_left):
                raise
            rows = _rows(in_axes, args, kwargs)
            if not rows:
                raise
            if is_left:  # it has statements that only Python runs
                remember(error, "row by row", key, f, args, kwargs)
        if is_left:
            return _one_by_one(f, rows, out_axes)
        with np.errstate(all="ignore"):  # they say what they raise, in their own words
            return _one_by_one(convert(f), rows, out_axes)

    return Transformed(key, batched, functools.partial(vmap, f, in_axes, out_axes))


def _record_rows(f: Function, in_axes: Any, out_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record `f` for all rows, traced once for the first."""
    leaves, spec = flatten((args, kwargs))
    axes, size = _axes_and_size(in_axes, args, kwargs, lambda leaf: read(leaf).shape)
    mapped = [n for n, axis in enumerate(axes) if axis is not _WHOLE]
    results: list[tuple[list[Any], optree.PyTreeSpec]] = []

    def row(*varying: Any) -> Any:
        given = list(leaves)
        for n, x in zip(mapped, varying):
            given[n] = x
        passed, named = rebuilt(spec, list(map(copied, given)))
        _hand_on((*args, *kwargs.values()), (*passed, *named.values()), axes)
        with own_copies("vmap", (args, kwargs), (passed, named)):
            results.append(flatten(settled(active_trace(), convert(f)(*passed, **named))))
        out_leaves = results[-1][0]
        for leaf in out_leaves:
            if not is_number(leaf):
                raise DTypeError(f"vmap: the function returns {told(leaf)}, of which there are no rows", source=user_source())
        return out_leaves

    first = [_first_row(leaves[n], axes[n], size) for n in mapped]
    with shared_by_rows(size):
        subgraph = trace_subgraph(row, first, rows=True)
    operands: list[Operand] = [Batched(read(leaves[n]), axes[n]) for n in mapped]
    batch, found = spread_ragged(rows_of(size), subgraph.graph, [*operands, *subgraph.captured])
    return _shown([_of_one_size(batch, x) for x in found], *results[-1], out_axes, size)


def _hand_on(args: Sequence[Any], copies: Sequence[Any], axes: Iterable[Any]) -> None:
    """Hand the attributes of arguments on to their copies; `axes` are those of all leaves."""
    remaining = iter(axes)
    for arg, copy in zip(args, copies):
        of_leaves = list(itertools.islice(remaining, len(flatten(arg)[0])))
        is_whole = all(axis is _WHOLE for axis in of_leaves)
        hand_on_attributes("vmap", arg, copy, never if is_whole else is_inexact_or_array)


def _key(axes: Any) -> Hashable:
    """Axes as part of a key; what is known of those in lists and dicts, which have no hash, is known to one function alone."""
    if type(axes) is tuple:
        return tuple(map(_key, axes))
    return axes if axes is None or isinstance(axes, int) else object()


def _one_by_one(f: Function, rows: Iterable[Any], out_axes: Any) -> Any:
    """What `vmap` is short for; for rows that have sizes or ways of their own."""
    found = [flatten(f(*args, **kwargs)) for args, kwargs in rows]
    results, (spec, *others) = zip(*found)
    if any(other != spec for other in others):
        raise ValueError(_UNLIKE)
    axes = _spread_axes("out_axes", out_axes, unflatten(spec, results[0]))
    return rebuilt(spec, [_joined(column, axis) for column, axis in zip(zip(*results), axes, strict=True)])


def _rows(in_axes: Any, args: Sequence[Any], kwargs: Any) -> list[Any]:
    """The arguments, by position and by name, of each row."""
    leaves, spec = flatten((args, kwargs))
    axes, size = _axes_and_size(in_axes, args, kwargs, np.shape)
    return [rebuilt(spec, [_row_of_array(leaf, axis, n) for leaf, axis in zip(leaves, axes)]) for n in range(size)]


def _row_of_array(leaf: Any, axis: Any, n: int) -> Any:
    if not isinstance(leaf, np.ndarray):
        return leaf
    row = leaf if axis is _WHOLE else np.moveaxis(leaf, axis, 0)[n]
    return row.copy("K") if isinstance(row, np.ndarray) else row


def _joined(rows: Sequence[Any], axis: Any) -> Any:
    """The rows of a result along an axis, or the one that all of them are."""
    if axis is not _WHOLE:
        return np.stack(rows, axis) if current_trace() is None else call(np.stack, rows, axis)
    if any(np.asarray(row).tobytes() != np.asarray(rows[0]).tobytes() for row in rows):
        raise ShapeError(_NOT_ONE, source=user_source())
    return rows[0]


def _axes_and_size(in_axes: Any, args: Sequence[Any], kwargs: Any, shape: Callable[[Any], Any]) -> tuple[list[Any], Any]:
    """The axis of rows of each leaf of (args, kwargs), or `_WHOLE`; and how many rows there are."""
    leaves, spec = flatten((args, kwargs))
    axes = _in_axes(in_axes, args, kwargs)
    paths = [_path(*path) for path in spec.paths()]
    sizes = []
    for n, axis in enumerate(axes):
        if axis is not _WHOLE:
            axes[n] = _require_axis(paths[n], leaves[n], axis)
            sizes.append((paths[n], shape(leaves[n])[axes[n]]))
    return axes, _size(sizes)


def _in_axes(in_axes: Any, args: Sequence[Any], kwargs: Any) -> list[Any]:
    """The axis of each leaf of (args, kwargs), `_WHOLE` for None."""
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ShapeError(
            f"vmap: in_axes has {len(in_axes)} entries, but the function is called with {len(args)} arguments by position",
            source=user_source(),
            remedy="It has one entry for each of them. Arguments by keyword have their rows along axis 0.",
        )
    return [*_spread_axes("in_axes", in_axes, args), *_spread_axes("in_axes", 0, kwargs)]


def _spread_axes(what: str, axes: Any, tree: Any) -> list[Any]:
    """An axis for each leaf of a tree, from a tree of axes that is like it as far down as it goes."""

    def is_axis(x: Any) -> bool:
        return x is None or isinstance(x, int)

    marked = optree.tree_map(lambda axis: _WHOLE if axis is None else axis, axes, is_leaf=is_axis, namespace=NAMESPACE)
    try:
        try:
            found: list[Any] = optree.broadcast_prefix(marked, tree, namespace=NAMESPACE)
        except RecursionError:  # as `flatten` has it
            found = optree.broadcast_prefix(marked, tree, is_leaf=holds_itself, namespace=NAMESPACE)
    except ValueError:
        raise ShapeError(
            f"vmap: {what} is {axes!r}, which is not built as the {'result' if what == 'out_axes' else 'tuple of arguments'} is",
            source=user_source(),
            remedy=f"A container of axes, for one argument, is an item of a tuple: in_axes=({axes!r},)."
            if what == "in_axes" and not isinstance(axes, tuple)
            else "It is an axis, None, or a container of them, as deep as they differ.",
        ) from None
    for axis in found:
        if axis is not _WHOLE and (not isinstance(axis, int) or isinstance(axis, bool)):
            raise DTypeError(f"vmap: {what} holds {axis!r}; an axis is an int, or None", source=user_source())
    return found


def _path(which: int, *keys: Any) -> str:
    first, *rest = keys
    return (f"argument {first!r}" if which else f"argument {first}") + "".join(f"[{key!r}]" for key in rest)


def _require_axis(path: str, leaf: Any, axis: int) -> int:
    ndim = getattr(leaf, "ndim", 0)
    if not is_number(leaf) or not ndim:
        raise ShapeError(
            f"vmap: {path} is {told(leaf)}, which has no axis of rows",
            source=user_source(),
            remedy="An argument that is the same for all rows has None in in_axes: vmap(f, in_axes=(0, None))."
            if not path.endswith("]")
            else "A list of numbers has no rows: pass np.array of it.",
        )
    if not -ndim <= axis < ndim:
        raise ShapeError(f"vmap: {path} is {told(leaf)}, which has no axis {axis}", source=user_source())
    return axis % ndim


def _size(sizes: Sequence[tuple[str, Size]]) -> Size:
    if not sizes:
        raise ShapeError("vmap: no argument has rows: all of in_axes is None, or there are no arguments", source=user_source())
    (first, size), *others = sizes
    for path, other in others:
        if other != size:
            raise ShapeError(
                f"vmap: {first} has {size} rows, {path} has {other}",
                source=user_source(),
                remedy="An argument that is the same for all rows has None in in_axes: vmap(f, in_axes=(0, None)).",
            )
    return size


def _first_row(leaf: Any, axis: int, size: Size) -> Any:
    """What the function is traced with: it stands for any row. Nothing reads it where rows are known to be alike."""
    x = read(leaf)
    row = _row_of_zeros(x, axis) if type(size) is int and size == 0 else _row(x, axis)
    if not row.ndim:
        return wrap(row)
    sizes, strides = ((*of[:axis], *of[axis + 1 :]) for of in layout_of(leaf))
    return fresh(row, kept_strides([(sizes, strides)], row.shape))


def _row(x: Value, axis: int) -> Value:
    sizes = tuple(1 if a == axis else n for a, n in enumerate(x.shape))
    starts = [ops.full(value=0, shape=(), dtype=I64)] * x.ndim
    window = ops.dynamic_slice(x, *starts, sizes=sizes, step=(1,) * x.ndim)
    row: Value = ops.reshape(window, shape=(*x.shape[:axis], *x.shape[axis + 1 :]))
    return row


def _row_of_zeros(x: Value, axis: int) -> Value:
    row: Value = ops.full(value=0, shape=(*x.shape[:axis], *x.shape[axis + 1 :]), dtype=x.dtype)
    return row


def _of_one_size(rows: RaggedRows, x: Given) -> Operand:
    """A result whose rows may differ in size, which NumPy does not stack."""
    value = rows.packed(x)
    if not isinstance(x, Ragged):
        return value
    shape = list(x.shape)
    for axis, size in enumerate(shape):
        if rows.is_open(size):
            counts = rows.batch.with_one_more(rows.batch.front(rows.count(size)), 0)
            first = ops.gather(counts, number(0), axis=0)
            alike = ops.eq(rows.batch.front(rows.count(size)), rows.batch.front(first))
            ok = ops.reduce_all(alike, axes=(0,))
            first = ops.check(first, ok, error="ValueError", message=_UNLIKE)
            shape[axis] = named(first, 0, bound(rows.whole(size)))
            value = rows.window(value, axis, shape[axis])
    return value


def _shown(values: Sequence[Operand], leaves: Sequence[Any], spec: optree.PyTreeSpec, out_axes: Any, size: Size) -> Any:
    """The result with its rows where `out_axes` wants them."""
    axes = _spread_axes("out_axes", out_axes, unflatten(spec, leaves))
    return rebuilt(spec, [_show(value, leaf, axis, rows_of(size)) for value, leaf, axis in zip(values, leaves, axes)])


def _show(value: Operand, leaf: Any, axis: Any, batch: Batch) -> Any:
    ndim = value.value.ndim if isinstance(value, Batched) else value.ndim + 1
    if axis is not _WHOLE:
        if not -ndim <= axis < ndim:
            raise ShapeError(f"vmap: out_axes has {axis} for a result of {ndim - 1} axes in each row", source=user_source())
        return fresh(batch.at(value, axis % ndim))
    if isinstance(value, Batched):
        raise ShapeError(_NOT_ONE, source=user_source())
    return fresh(value) if isinstance(leaf, np.ndarray) else wrap(value)
