"""In which order do the axes of a new array lie in memory?  As NumPy lays it out, which a later reshape or view can tell.

NumPy itself says it: where an operand does not lie by rows, its function is called on small arrays that lie like the operands
(`stand_in`), and what it makes of them shows the order. Ufuncs know theirs without that (`tracers.fresh_like`), and so does
what is made of operands by rows: it lies by rows too, but for what says otherwise (`put_in_order`, `beside_each_other`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.dims import bound
from jitml.ir.graph import Value
from jitml.numpy.operands import reshape_value
from jitml.trace.context import outside_trace
from jitml.trace.registry import after_call
from jitml.trace.standins import Traced
from jitml.trace.strides import Ints, largest_stride, lying_like, small_layout, surely_contiguous
from jitml.trace.tracers import TracedArray, TracedNumber, fresh, layout_of
from jitml.trace.tree import flatten, unflatten

Array = np.ndarray[Any, Any]

# Not by rows even where all operands do.
_IN_AN_ORDER_OF_THEIR_OWN = {np.einsum, np.quantile, np.percentile, np.nanquantile, np.nanpercentile}
# By rows whatever the operands are; and shapes of stand-ins are not those that these are called with.
_BY_ROWS = {np.reshape, np.ndarray.reshape, np.resize}
_FEW = 4  # elements an axis, where that will do: for np.cross they have to be as many
_MOST_BYTES = 1 << 28
_HOMES = ("numpy", "scipy")


_KNOWN: dict[Any, tuple[Ints | None, ...] | None] = {}
_MOST_KNOWN = 4096


@after_call
def _lay_out_as_numpy_does(function: Callable[..., Any], result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
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
    orders = _orders(function, leaves, spec, _FEW) or _orders(function, leaves, spec, None)
    if orders is not None and len(orders) == len(results):
        for x, order in zip(results, orders):
            if any(x is one for one in made) and order is not None and len(order) == x.ndim:
                put_in_order(x, order)


def _orders(function: Callable[..., Any], leaves: Sequence[Any], spec: Any, most: int | None) -> tuple[Ints | None, ...] | None:
    """The axes of each result, outermost in memory first, if it is an array; None if the function does not take stand-ins.

    Args:
        most: how many elements an axis of those has.
    """
    key = (function, spec, *(_kind(x, most) for x in leaves)) if all(map(_is_plain, leaves)) else None
    if key is not None and key in _KNOWN:
        return _KNOWN[key]
    shown = _shown(function, leaves, spec, most)
    orders = None if shown is None else tuple(map(_order, shown))
    if key is not None:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[key] = orders
    return orders


def _is_plain(leaf: Any) -> bool:
    return isinstance(leaf, (Traced, TracedNumber, np.ndarray, int, float, complex, str, type, np.dtype, slice))


def _kind(leaf: Any, most: int | None) -> Any:
    """What of a plain leaf its stand-in depends on."""
    if type(leaf) in (TracedArray, np.ndarray):
        return (*small_layout(*map(tuple, layout_of(leaf)), most), leaf.dtype)
    if isinstance(leaf, slice):
        return repr(leaf)
    plain = _stands_for(leaf, most)
    return type(plain), plain


def _order(x: Any) -> Ints | None:
    if type(x) is not np.ndarray or not x.size:
        return None
    return tuple(sorted(range(x.ndim), key=lambda n: (-abs(x.strides[n]), n)))


def _is_told(function: Any) -> bool:
    """Whether NumPy's function tells by its result where axes lie, and does nothing else."""
    if isinstance(function, np.ufunc):
        return function.signature is not None
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ufunc):
        return True
    home = getattr(getattr(function, "__objclass__", None) or function, "__module__", None) or ""
    if home.startswith("numpy.random"):  # a draw would change the generator
        return False
    is_method = owner is not None and not isinstance(owner, type(np))
    return callable(function) and not is_method and function not in _BY_ROWS and home.split(".")[0] in _HOMES


def _is_users(leaf: Any) -> bool:
    """Whether an argument is a function that is not NumPy's, which must not be called for its layout, or hides what is traced."""
    if isinstance(leaf, slice):
        return any(isinstance(x, (Traced, TracedNumber)) for x in (leaf.start, leaf.stop, leaf.step))
    return callable(leaf) and not isinstance(leaf, (type, np.ufunc, Traced, TracedNumber)) and not _is_told(leaf)


def _shown(function: Callable[..., Any], leaves: Sequence[Any], spec: Any, most: int | None) -> Sequence[Any] | None:
    """What the function makes of stand-ins; None if it does not take them."""
    sizes = [[min(bound(n), most or bound(n)) for n in layout_of(x)[0]] for x in leaves if type(x) in (TracedArray, np.ndarray)]
    if sum(int(np.prod(size)) for size in sizes) * 16 > _MOST_BYTES:
        return None
    args, kwargs = unflatten(spec, [_stands_for(x, most) for x in leaves])
    try:
        with outside_trace(), np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shown = function(*args, **kwargs)
    except Exception:  # of any kind: they are other arguments than the function was called with
        return None
    return shown if isinstance(shown, tuple) or type(shown) is list else (shown,)


def _stands_for(leaf: Any, most: int | None) -> Any:
    if type(leaf) in (TracedArray, np.ndarray):
        return stand_in(*layout_of(leaf), leaf.dtype, most)
    if type(leaf) is TracedNumber:
        return leaf.kind(1) if leaf.slot is None else leaf.concrete
    return leaf.dtype.type(1) if isinstance(leaf, Traced) else leaf


def stand_in(sizes: Ints, layout: Ints, dtype: np.dtype[Any], most: int | None = _FEW) -> Array:
    """An array of at most so many elements an axis that lies in memory as one of these strides, in elements, does.

    It holds zeros, which are valid indices, or numbers of which matrices can be inverted and factorized.
    """
    small = lying_like(sizes, layout, dtype, most)
    if dtype.kind in "fc":
        small[...] = 1
        if small.ndim > 1 and 0 not in small.strides:
            diagonal = np.arange(min(small.shape[-2:]))
            small[..., diagonal, diagonal] = 4
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
