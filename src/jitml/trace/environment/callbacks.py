"""Callbacks: a function that jitml does not read runs as it is, at that point of the program, on arrays of its own.

Other compiled code (Numba, Cython, ctypes) is called so. What comes back is known before: `result_like` says it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import optree

from jitml.diagnostics.tracebacks import entry
from jitml.errors import DerivativeError, DTypeError, ShapeError
from jitml.functions import require_function
from jitml.records import dataclass
from jitml.trace.environment.guarded_loads import CalledArguments, place_of
from jitml.trace.environment.value_classification import Way, way_of
from jitml.trace.host_calls.call import call_back, kind_of
from jitml.trace.record.pytree import flatten, unflatten
from jitml.trace.record.recording import Trace, current_trace, unsupported
from jitml.trace.record.user_code import is_converted_inside
from jitml.trace.rewrite.driver_protocol import HOOKS
from jitml.trace.values.opaque_objects import is_opaque

_NUMBERS = (bool, int, float, complex)


@entry
def pure_callback(f: Callable[..., Any], result_like: Any, /, *args: Any) -> Any:
    """`f(*args)`, run by Python wherever it stands: how compiled code calls other compiled code (Numba, Cython, ctypes).

    jitml neither reads nor compiles `f`. It must depend on its arguments alone and change nothing: it may be called twice, or
    not at all. It gets NumPy arrays of its own, and NumPy's or Python's numbers.

    Args:
        f: a function that is made outside of the jitted one; methods of objects, and partials, are left to Python.
        result_like: what `f` returns: an array or a number of that shape and dtype, say `np.empty_like(x)`, whose values are
            not looked at; or containers of these.
        args: arrays and numbers, or containers of these.

    Raises:
        ShapeError: `f` has returned another shape, or another number of results.
        DTypeError: `f` has returned another dtype.
        DerivativeError: a derivative is asked for. Give one by `jitml.custom_vjp` or `custom_jvp`.

    >>> import math, numpy as np, jitml
    >>> def gamma(x):  # code that jitml cannot compile
    ...     return np.array([math.gamma(v) for v in x])
    >>> @jitml.jit
    ... def f(x):
    ...     return pure_callback(gamma, np.empty_like(x), x) + 1
    >>> f(np.array([1.0, 4.0]))
    array([2., 7.])
    """
    require_function("pure_callback", f)
    trace = current_trace()
    if trace is not None:
        f = _always_this(trace, f)
    leaves, spec = flatten(result_like)
    name = f"pure_callback({getattr(f, '__name__', type(f).__name__)})"
    forms = tuple(map(_form_of, leaves))
    sizes = [n for leaf, form in zip(leaves, forms) for n in (leaf.shape if form.axes else ())]
    if any(hasattr(type(x), "__calling__") for x in flatten(args)[0]):
        raise DerivativeError(f"{name} has no derivative", remedy="Give it one by jitml.custom_vjp or jitml.custom_jvp.")
    called = PureCallback(f, name, spec, forms)
    if trace is None:
        return called(*sizes, *args)
    shapes = [getattr(leaf, "sizes", leaf.shape) if form.axes else () for leaf, form in zip(leaves, forms)]
    return call_back(name, called, (*sizes, *args), shapes)


@dataclass(frozen=True)
class _CallbackResult:
    """What one result is to be: a number of Python's or NumPy's, or an array; its dtype, and how many axes it has."""

    kind: type
    dtype: np.dtype[Any]
    axes: int


def _form_of(leaf: Any) -> _CallbackResult:
    kind = kind_of(leaf) or (type(leaf) if type(leaf) in _NUMBERS else np.generic if isinstance(leaf, np.generic) else np.ndarray)
    if kind in _NUMBERS:
        return _CallbackResult(kind, np.dtype(kind), 0)
    if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
        raise TypeError(f"pure_callback: result_like has a {type(leaf).__qualname__}, which has no shape and no dtype")
    return _CallbackResult(kind, np.dtype(leaf.dtype), len(leaf.shape))


@dataclass(frozen=True)
class PureCallback:
    """The function with a check of what it returns. It is given the sizes that results must have, and then its arguments."""

    function: Callable[..., Any]
    name: str
    spec: optree.PyTreeSpec
    forms: tuple[_CallbackResult, ...]

    def __call__(self, *given: Any) -> Any:
        count = sum(form.axes for form in self.forms)
        sizes, args = iter(given[:count]), given[count:]
        leaves, spec = flatten(args)
        own = unflatten(spec, [np.array(x) if isinstance(x, np.ndarray) else x for x in leaves])
        results, found = flatten(self.function(*own))
        if found != self.spec:
            raise ShapeError(f"{self.name} returns {found}, and result_like says {self.spec}")
        shapes = [tuple(next(sizes) for _ in range(form.axes)) for form in self.forms]
        return unflatten(self.spec, list(map(self._checked_result, results, self.forms, shapes)))

    def _checked_result(self, result: Any, form: _CallbackResult, shape: tuple[int, ...]) -> Any:
        x = np.asarray(result)
        if x.shape != shape:
            raise ShapeError(f"{self.name} returns the shape {x.shape}, and result_like says {shape}")
        if x.dtype != form.dtype:
            raise DTypeError(f"{self.name} returns {x.dtype}, and result_like says {form.dtype}")
        if form.kind is np.ndarray:
            return np.array(x)
        return x[()] if form.kind is np.generic else x.item()


def _always_this(trace: Trace, f: Any) -> Any:
    """The function, which is this one at each call of the program: it may come with the call, or by a name."""
    host = trace.root.host
    if is_opaque(f):
        original, slot = (object.__getattribute__(f, name) for name in ("_original", "_slot"))
        host.require_same(slot, original)
        return original
    reads_itself = type(getattr(type(f), "__call__", None)) is FunctionType  # noqa: B004  # that of the class
    if (way := way_of(f)) is Way.PARTS or (way is Way.ATTRIBUTES and reads_itself):
        what = f"a {type(f).__qualname__}, which may depend on more than its arguments"
        unsupported(f"pure_callback is given {what}", "Give it a function, and what that needs as arguments.")
    if type(f) is FunctionType and (is_converted_inside(f) or HOOKS in f.__code__.co_freevars):
        unsupported("pure_callback is given a function that is made in the jitted one", "Define it outside.")
    slot = trace.root.call[CalledArguments].get(f) if type(f) is FunctionType else None
    if slot is None:
        slot = place_of(trace.root, f)
    if slot is not None:
        host.require_same(slot, f)
    return f


__all__ = ["pure_callback"]
