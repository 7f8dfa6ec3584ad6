"""`checkpoint`: functions whose derivative computes again instead of remembering."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, overload

from jitml.autograd.api.calls import of_its_own
from jitml.autograd.core.differentiation_orders import levels
from jitml.autograd.tape.calls import converted
from jitml.autograd.tape.custom import is_taped
from jitml.diagnostics.tracebacks import entry
from jitml.functions import require_function
from jitml.ir import ops
from jitml.trace.environment.transformed import Transformed
from jitml.trace.hooks.convert import convert
from jitml.trace.record.checkpoints import checkpointed
from jitml.trace.record.pytree import flatten
from jitml.trace.record.recording import active_trace, current_trace
from jitml.trace.values.boxing import TracedArray, TracedNumber, fresh_like, is_traced, read, scalar
from jitml.trace.values.kinds import rebuilt

if TYPE_CHECKING:
    from numpy import ufunc

    from jitml.typing.functions import FunctionObject, P, R, T

Policy = str | int | Collection[str] | None


if TYPE_CHECKING:

    @overload
    def checkpoint(f: ufunc, *, policy: Policy = None) -> FunctionObject[..., Any]: ...
    @overload
    def checkpoint(f: Callable[P, R], *, policy: Policy = None) -> FunctionObject[P, R]: ...
    @overload
    def checkpoint(f: None = None, *, policy: Policy = None) -> Callable[[Callable[P, R]], FunctionObject[P, R]]: ...


@entry
def checkpoint(f: Callable[..., Any] | None = None, *, policy: Policy = None) -> Callable[..., Any]:
    """The same function; but reverse mode keeps fewer of its values, and computes the others again.

    That saves memory, and costs time. Without it, the gradient of a network keeps all values of each layer. With it around each
    layer, the gradient keeps the arguments of the layers, and computes the rest once more.

    Args:
        f: the function; without one, a decorator.
        policy: what may be kept beside the arguments. None or "nothing"; "dots": the results of matrix products; a collection
            of names that `checkpoint_name` has given; or a number of bytes, which are spent where they save most work. "sqrt" is
            for loops: it keeps everything outside of them, and their state every so many iterations. Memory for n iterations then
            grows with the root of n, and the iterations run once more.

    >>> import numpy as np, jitml
    >>> layer = checkpoint(lambda x: np.sin(np.sin(x)))
    >>> jitml.grad(lambda x: layer(layer(x)))(0.0)
    np.float64(1.0)
    """
    _check(policy)
    if f is None:
        return functools.partial(checkpoint, policy=policy)
    require_function("checkpoint", f)
    function = f
    kept = policy if isinstance(policy, str | int) or policy is None else frozenset(policy)

    @functools.wraps(function)
    def same(*args: Any, **kwargs: Any) -> Any:
        if current_trace() is None:
            return (converted(function) if is_taped((args, kwargs)) else function)(*args, **kwargs)
        if not levels():
            return convert(function)(*args, **kwargs)
        with checkpointed(kept):
            return convert(function)(*args, **kwargs)

    return Transformed(("checkpoint", kept), same, functools.partial(checkpoint, function, policy=kept))


def _check(policy: Policy) -> None:
    is_named = policy in ("nothing", "dots", "sqrt") if isinstance(policy, str) else isinstance(policy, Collection)
    if not (is_named or policy is None or (isinstance(policy, int) and not isinstance(policy, bool))):
        raise ValueError(
            f"checkpoint: no policy {policy!r}: there are 'nothing', 'dots', 'sqrt', a list of names, a number of bytes"
        )
    if isinstance(policy, int) and policy < 0:
        raise ValueError(f"checkpoint: a budget of {policy} bytes")


@entry
def checkpoint_name(x: T, name: str) -> T:
    """The same value, with a name: `checkpoint(f, policy=["that name"])` keeps it. Containers are named leaf by leaf.

    Arrays are new ones: what is written into `x` later does not change them, nor the reverse.

    >>> import functools
    >>> import numpy as np, jitml
    >>> @functools.partial(checkpoint, policy=["hidden"])
    ... def f(x):
    ...     h = checkpoint_name(np.exp(x), "hidden")
    ...     return np.sin(h)
    >>> jitml.grad(f)(0.0) == np.cos(1.0)
    np.True_
    """
    leaves, spec = flatten(x)
    named: T = rebuilt(spec, [_named(of_its_own(leaf), name) for leaf in leaves])
    return named


def _named(leaf: Any, name: str) -> Any:
    if not is_traced(leaf) or not levels() or (type(leaf) is TracedNumber and leaf.slot is not None):
        return leaf
    value = ops.keep(read(leaf), name=name)
    if type(leaf) is TracedNumber:
        return TracedNumber.of_value(active_trace(), value)
    return fresh_like(value, leaf) if type(leaf) is TracedArray else scalar(value)
