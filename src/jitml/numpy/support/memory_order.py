"""Memory order: in which order do the axes of a new array lie in memory?

As NumPy lays it out, which a later reshape or view can tell.

NumPy itself says it: where an operand does not lie by rows, its function is called on small arrays that lie like the operands
(`_stand_in`), and what it makes of them shows the order. Ufuncs know theirs without that (`tracers.fresh_like`), and so does
what is made of operands by rows: it lies by rows too, but for what says otherwise (`put_in_order`, `beside_each_other`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from jitml.config import CONFIG
from jitml.interrupts import pass_on
from jitml.ir import ops
from jitml.ir.dims import bound
from jitml.ir.graph import Value
from jitml.numpy.support.arguments import reshape_value
from jitml.records import dataclass
from jitml.trace.record.pytree import flatten, unflatten
from jitml.trace.record.recording import outside_trace
from jitml.trace.storage.strides import Ints, largest_stride, lying_like, small_layout, surely_contiguous
from jitml.trace.values.boxing import TracedArray, TracedNumber, fresh, layout_of
from jitml.trace.values.registry import full_name
from jitml.trace.values.tracers import Tracer

Array = np.ndarray[Any, Any]

# Not by rows even where all operands do.
_IN_AN_ORDER_OF_THEIR_OWN = {np.einsum, np.quantile, np.percentile, np.nanquantile, np.nanpercentile}
# By rows whatever the operands are; and shapes of stand-ins are not those that these are called with.
_BY_ROWS = {np.reshape, np.ndarray.reshape, np.resize}
_MOST_BYTES = 1 << 28
_MOST_CONTENTS = 64  # elements of an array of integers that are handed on: weights, repetitions
_HOMES = ("numpy", "scipy")
_CLASSES = ("numpy", "builtins")


@dataclass(frozen=True, slots=True)
class _ArgumentWay:
    """How to stand for arguments.

    Args:
        most: elements along an axis, if there is a limit. np.cross needs as many as there are, np.diff more than it takes away.
        is_index: whether integers are to be valid indices; else they can be divided by, and matrices of them inverted.
        number: what stands for all integers that the program does not know; today's value, if there is one, for None.
    """

    most: int | None
    is_index: bool = False
    number: int | None = None


_WAYS = tuple(_ArgumentWay(most, is_index) for most in (4, 32, None) for is_index in (False, True))
_WAYS += (_ArgumentWay(32, number=3), _ArgumentWay(None, number=3))

_Order = tuple[Ints, Ints]  # axes, outermost in memory first, and the lengths that they had
_KNOWN: dict[Any, tuple[_Order | None, ...] | None] = {}
_MOST_KNOWN = 4096
_MISSING = object()


def lay_out_as_numpy_does(function: Callable[..., Any], result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    results = result if isinstance(result, tuple) or type(result) is list else (result,)  # a list of unknown length has no items
    made = [x for x in results if type(x) is TracedArray and x.ndim > 1 and not x.steps and not x.storage.is_external]
    if not made or not _is_told(function):
        return
    leaves, spec = flatten((args, kwargs))
    given = [x for x in leaves if type(x) in (TracedArray, np.ndarray)]
    if function not in _IN_AN_ORDER_OF_THEIR_OWN and all(surely_contiguous(*layout_of(x)) for x in given):
        return
    made = [x for x in made if not any(type(y) is TracedArray and x.storage is y.storage for y in given)]
    if not made or any(map(_is_users, leaves)):
        return
    # Sizes that the program finds are told by a result that has none of them: what broadcasts to it is as long.
    lengths = sorted({n for x in made for n in x.sizes if isinstance(n, int) and n > 1})
    for way in (*_WAYS, *map(_ArgumentWay, lengths)):
        orders = _orders(function, leaves, spec, way)
        if orders is None or len(orders) != len(results):
            continue
        told = [(x, order) for x, order in zip(results, orders) if order is not None and any(x is one for one in made)]
        if len(told) == len(made) and all(_tells(order, x.sizes) for x, order in told):
            for x, order in told:
                put_in_order(x, order[0])
            return
    assert not CONFIG.check, f"{full_name(function)} shows in no way how its result lies in memory"


def _tells(order: _Order, sizes: Ints) -> bool:
    """Whether an order is that of an array of some sizes: an axis of one element has no place in it."""
    axes, lengths = order
    return len(axes) == len(sizes) and all(n > 1 or bound(size) < 2 for n, size in zip(lengths, sizes))


def _orders(
    function: Callable[..., Any], leaves: Sequence[Any], spec: Any, way: _ArgumentWay
) -> tuple[_Order | None, ...] | None:
    """Of each result that is an array; None if the function does not take stand-ins."""
    key = (function, spec, way, *(_kind(x, way) for x in leaves)) if all(map(_is_plain, leaves)) else None
    known: Any = _KNOWN.get(key, _MISSING)
    if key is not None and known is not _MISSING:
        return known
    shown = _shown(function, leaves, spec, way)
    orders = None if shown is None else tuple(map(_order, shown))
    if key is not None:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[key] = orders
    return orders


def _is_plain(leaf: Any) -> bool:
    kinds = (Tracer, TracedNumber, int, float, complex, str, type, np.dtype, slice)
    return type(leaf) is np.ndarray or isinstance(leaf, kinds)


def _kind(leaf: Any, way: _ArgumentWay) -> Any:
    """What of a plain leaf its stand-in depends on."""
    if _has_contents(leaf):
        return leaf.dtype, leaf.shape, leaf.tobytes()
    if type(leaf) in (TracedArray, np.ndarray):
        return (*small_layout(*map(tuple, layout_of(leaf)), way.most), leaf.dtype)
    plain = _stands_for(leaf, way)
    return type(plain), repr(plain) if isinstance(plain, (slice, float, complex)) else plain


def _has_contents(leaf: Any) -> bool:
    return type(leaf) is np.ndarray and leaf.dtype.kind in "biu" and leaf.size <= _MOST_CONTENTS


def _order(x: Any) -> _Order | None:
    if type(x) is not np.ndarray:
        return None
    return tuple(sorted(range(x.ndim), key=lambda n: (-abs(x.strides[n]), n))), x.shape


def _is_told(function: Any) -> bool:
    """Whether NumPy's function tells by its result where axes lie, and does nothing else."""
    if isinstance(function, np.ufunc):
        return function.signature is not None
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ufunc):
        return True
    if getattr(function, "__objclass__", None) is np.generic:  # the operators of scalars, which make arrays by ufuncs
        return False
    home = getattr(getattr(function, "__objclass__", None) or function, "__module__", None) or ""
    if home.startswith("numpy.random"):  # a draw would change the generator
        return False
    is_method = owner is not None and not isinstance(owner, type(np))
    return callable(function) and not is_method and function not in _BY_ROWS and home.split(".")[0] in _HOMES


def _is_users(leaf: Any) -> bool:
    """Whether an argument is a function or class that is not NumPy's, which must not be called for its layout."""
    if isinstance(leaf, np.ufunc):
        return getattr(np, leaf.__name__, None) is not leaf
    if isinstance(leaf, type):
        return leaf.__module__.split(".")[0] not in _CLASSES
    return callable(leaf) and not isinstance(leaf, (Tracer, TracedNumber)) and not _is_told(leaf)


def _shown(function: Callable[..., Any], leaves: Sequence[Any], spec: Any, way: _ArgumentWay) -> Sequence[Any] | None:
    """What the function makes of stand-ins; None if it does not take them."""
    arrays = [x for x in leaves if type(x) in (TracedArray, np.ndarray)]
    sizes = [[min(bound(n), way.most or bound(n)) for n in layout_of(x)[0]] for x in arrays]
    if sum(prod(size) * x.dtype.itemsize for x, size in zip(arrays, sizes)) > _MOST_BYTES:
        return None
    try:
        args, kwargs = unflatten(spec, [_stands_for(x, way) for x in leaves])
        with outside_trace(), np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shown = function(*args, **kwargs)
    except Exception as error:  # of any kind: they are other arguments than the function was called with
        pass_on(error)
        return None
    return shown if isinstance(shown, tuple) or type(shown) is list else (shown,)


def _stands_for(leaf: Any, way: _ArgumentWay) -> Any:
    if type(leaf) is TracedArray or (type(leaf) is np.ndarray and not _has_contents(leaf)):
        return _stand_in(leaf, way)
    if type(leaf) is TracedNumber:
        is_open = leaf.slot is None or (way.number is not None and leaf.kind is int)
        return leaf.kind(3 if way.number is None else way.number) if is_open else leaf.concrete
    if isinstance(leaf, slice):
        return slice(*(_stands_for(x, way) for x in (leaf.start, leaf.stop, leaf.step)))
    return leaf.dtype.type(1) if isinstance(leaf, Tracer) else leaf


def _stand_in(x: TracedArray | Array, way: _ArgumentWay) -> Array:
    """An array that lies in memory as another one does."""
    small = lying_like(*layout_of(x), x.dtype, way.most)
    if way.is_index and x.dtype.kind in "iu":
        return small
    small[...] = 1 if x.dtype.kind in "biu" else 0.25  # fractions, as quantiles need
    if small.ndim > 1 and 0 not in small.strides[-2:]:
        diagonal = np.arange(min(small.shape[-2:]))
        small[..., diagonal, diagonal] = 4 * small[..., diagonal, diagonal]
    return small


def kept_rest(x: TracedArray, axes: Collection[int]) -> list[int]:
    """The axes of x but these, outermost in memory first."""
    return sorted((n for n in range(x.ndim) if n not in axes), key=lambda n: -abs(largest_stride(x.layout[n])))


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
