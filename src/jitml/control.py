"""Loops and branches as functions, for those who write them so: `cond`, `while_loop`, `fori_loop`, `scan`, with JAX's signatures.

They are plain Python, and outside `jit` they run as that. Inside, tracing converts them as it does the user's own functions, and
their loops and branches are captured. Arguments and results may be nested containers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jitml.trace.lists.traced_list import Stacked, columns
from jitml.trace.record.pytree import flatten
from jitml.trace.values.kinds import rebuilt

if TYPE_CHECKING:
    from typing import TypeVar

    from jitml.typing.functions import R, T, Ts

    Carry = TypeVar("Carry")


def cond(pred: Any, true_fun: Callable[[*Ts], R], false_fun: Callable[[*Ts], R], *operands: *Ts) -> R:
    """`true_fun(*operands)` if `pred`, else `false_fun(*operands)`. Only one of them runs.

    Raises:
        TypeError: `true_fun` or `false_fun` is no function, as in the form that JAX once had.

    >>> cond(2 > 1, lambda x: x + 1, lambda x: x - 1, 10)
    11
    """
    if not (callable(true_fun) and callable(false_fun)):
        raise TypeError(
            "cond takes two functions, and then what they are called with: cond(pred, true_fun, false_fun, *operands)"
        )
    if pred:
        result = true_fun(*operands)
    else:
        result = false_fun(*operands)
    return result


def while_loop(cond_fun: Callable[[T], Any], body_fun: Callable[[T], T], init_val: T) -> T:
    """Apply `body_fun` to the value again and again, as long as `cond_fun` of it is true. Returns the last value.

    >>> while_loop(lambda x: x < 100, lambda x: 2 * x, 3)
    192
    """
    value = init_val
    while cond_fun(value):
        value = body_fun(value)
    return value


def fori_loop(lower: int, upper: int, body_fun: Callable[[int, T], T], init_val: T, *, unroll: object = None) -> T:
    """`value = body_fun(i, value)` for i from lower to upper - 1.

    Args:
        unroll: is JAX's, and changes nothing: jitml decides.

    >>> fori_loop(0, 5, lambda i, total: total + i, 0)
    10
    """
    value = init_val
    for i in range(lower, upper):
        value = body_fun(i, value)
    return value


def scan(
    f: Callable[[Carry, Any], tuple[Carry, Any]],
    init: Carry,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: object = None,
) -> tuple[Carry, Any]:
    """`carry, y = f(carry, x)` for each x along the first axes of `xs`. Returns the last carry, and all y stacked in an array.

    Args:
        xs: arrays of one length, nested as you like; None, with `length`, where f needs none.
        reverse: False, the only value; for the other direction pass xs[::-1] and take ys[::-1].
        unroll: is JAX's, and changes nothing: jitml decides.

    Raises:
        TypeError: `reverse` is True.
        ValueError: lengths differ or are not given, or are 0, for then nobody knows what the ys look like.

    >>> import numpy as np
    >>> scan(lambda total, x: (total + x, total), 0, np.arange(4))
    (np.int64(6), array([0, 0, 1, 3]))
    """
    if reverse:
        raise TypeError("scan(reverse=True) is JAX's: pass xs[::-1], and take ys[::-1] of what it returns")
    carry = init
    ys = []
    for i in range(_length(xs, length)):
        carry, y = f(carry, _row(xs, i))
        ys.append(Stacked(y))
    return carry, columns(ys)


def _length(xs: Any, length: int | None) -> int:
    lengths = {len(leaf) for leaf in flatten(xs)[0]}
    if length is not None:
        lengths.add(length)
    if not lengths:
        raise ValueError("scan: there are no xs, and no length is given")
    if len(lengths) != 1:
        raise ValueError(f"scan: xs and length have the lengths {sorted(lengths)}, not one")
    (count,) = lengths
    if count == 0:
        raise ValueError("scan over no elements: the results have no known shape")
    return int(count)


def _row(xs: Any, i: Any) -> Any:
    leaves, spec = flatten(xs)
    return rebuilt(spec, [leaf[i] for leaf in leaves])


__all__ = ["cond", "fori_loop", "scan", "while_loop"]
