"""Host calls: what becomes of a NumPy or SciPy function that is not compiled?

A host call: Python runs it at that point of the program.

What it will return is learned from its result of today (`concrete_evaluation.py`): number, dtype, shape and kind of the results.
Should they differ in a later call, another program is compiled, which leaves the sizes open that have changed
(`host_results.py`).
"""

from __future__ import annotations

import functools
import pickle
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import copy_context
from enum import Enum
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, NoReturn

import numpy as np
import optree

from jitml.errors import Cause, TraceError, UnsupportedError
from jitml.interrupts import pass_on
from jitml.ir import ops
from jitml.ir.dims import Dim, bound
from jitml.ir.graph import Value
from jitml.ir.op import Op
from jitml.ir.ops.host import HostFunction, unpadded
from jitml.ir.types import is_supported
from jitml.records import dataclass
from jitml.trace.host_calls.array_ownership import own_arrays
from jitml.trace.host_calls.rules import WHY_NOT, HostCallRules, require_allowed
from jitml.trace.host_calls.written_arguments import differ, lent, require_no_output
from jitml.trace.record.concrete_evaluation import address_of, examples_of, remember
from jitml.trace.record.guards import IMMUTABLE
from jitml.trace.record.libraries import is_distribution, is_library, is_of_numpy, is_scipys
from jitml.trace.record.object_state import parts_of
from jitml.trace.record.pytree import children, flatten, unflatten
from jitml.trace.record.recording import Attempt, active_trace, home_of, outside_trace, refuse, unsupported
from jitml.trace.record.user_code import caller, is_converted_inside
from jitml.trace.rewrite.driver_protocol import HOOKS
from jitml.trace.speculation import paths
from jitml.trace.speculation.host_results import Kind, Returned, checked, returned
from jitml.trace.storage.strides import Ints, kept_strides, lying_like, ordered_as, surely_contiguous
from jitml.trace.symbolic.broadcasting import Sizes, common_sizes
from jitml.trace.symbolic.sizes import value_of_size
from jitml.trace.values.array_writes import assign_cast
from jitml.trace.values.boxing import TracedArray, TracedScalar, fresh, is_traced, layout_of, lift, read, scalar
from jitml.trace.values.numbers import TracedNumber
from jitml.trace.values.opaque_objects import is_opaque, refuse_opaque
from jitml.trace.values.ragged import window
from jitml.trace.values.registry import call_for_each_type, full_name
from jitml.trace.values.type_unions import in_doubt

Array = np.ndarray[Any, Any]

# Called for what they do to files, or to their arguments.
_WRITERS = {"save", "savetxt", "savez", "savez_compressed", "tofile"}
_EFFECTS = _WRITERS | {
    "fill", "itemset", "partition", "put", "resize", "sort",
    "at", "byteswap", "copyto", "fill_diagonal", "place", "put_along_axis", "putmask", "setfield", "setflags",
}  # fmt: skip
# Compiled for every argument that makes sense: what they refuse is a size that nobody knows.
_CREATIONS = {"arange", "empty", "eye", "full", "identity", "indices", "linspace", "ones", "tri", "zeros"}
# They look at where arrays lie, and the program puts them elsewhere.
_PLACES = {"shares_memory", "may_share_memory"}
ON_HOST = object()
_CONSTANTS = (
    bool, int, float, complex, str, bytes, np.generic, np.dtype, type, Enum, range, slice, type(...), type(None), *IMMUTABLE,
)  # fmt: skip


@dataclass(frozen=True)
class _ArgumentForm:
    """The structure of arguments, whose leaves are arrays and numbers of these kinds, or fixed values."""

    spec: optree.PyTreeSpec
    kinds: tuple[Kind | None, ...]  # None for a fixed one
    fixed: tuple[Any, ...]
    shapes: tuple[Sizes, ...]  # of those that are not fixed
    layouts: tuple[Ints, ...]  # of the same: their strides, in elements

    def plain(self, arrays: Sequence[Array]) -> Any:
        """What the arrays stand for, as Python shall see it; a program may not have moved them for a reshape.

        They stay the program's own: whoever writes into them gets NumPy's ValueError.

        Args:
            arrays: behind them come the sizes that only the running program knows, in their order.
        """
        sizes = iter(arrays[len(self.shapes) :])
        shapes = (tuple(int(next(sizes)) if isinstance(n, Dim) else n for n in shape) for shape in self.shapes)
        given = map(lent, map(unpadded, arrays, shapes))
        leaves = [x if kind is None else _plain(kind, next(given)) for kind, x in zip(self.kinds, self.fixed)]
        return unflatten(self.spec, leaves)


def call_on_host(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The traced result of a function that Python will run.

    Raises:
        UnsupportedError: it cannot be run so, or the user forbids it.
    """
    name = full_name(function)
    require_allowed(name)
    _require_no_python(function)
    if not _is_known(function):
        _refuse(name)
    if isinstance(function, np.ufunc) and kwargs.get("where", True) is not True:
        unsupported(f"{name} with where= is not compiled", "Use np.where.")
    target = kwargs.pop("out", None) if isinstance(function, np.ufunc) else None
    _require_data(name, function, flatten((args, kwargs))[0])
    outside = active_trace().outside
    for owner in (function, getattr(function, "__self__", None)):  # a polynomial, say
        if (slot := outside.places.get(id(owner))) is not None:
            outside.read[slot] = owner
    result = record(ops.host_call, name, function, args, kwargs)
    return result if target is None else assign_cast(target, result, function.__name__)


def call_back(name: str, function: Callable[..., Any], args: tuple[Any, ...], shapes: Sequence[Sizes]) -> Any:
    """The traced result of a function that depends on its arguments alone, as the user promises, and gives these shapes."""
    require_allowed(name)
    _require_data(name, function, flatten(args)[0])
    return record(ops.host_call, name, function, args, {}, shapes=shapes)


def _require_data(name: str, function: Any, leaves: Sequence[Any]) -> None:
    """Refuse functions of the user's, and objects, methods of which change what the program does not see."""
    owner = getattr(function, "__self__", None)
    is_free = owner is None or isinstance(owner, ModuleType | type | np.ufunc) or is_distribution(owner)
    for x in leaves if is_free else (owner, *leaves):
        if is_opaque(x):
            refuse_opaque(x, f"is given to {name}")
        if not _is_data(x):
            what = f"{x.__name__}, a function" if hasattr(x, "__name__") else f"a {type(x).__qualname__}, an object"
            unsupported(f"{name} is given {what} that Python alone can use", "Call it outside of the jitted function.")


def _is_data(x: Any) -> bool:
    """Whether what a host call is given is data, or code of a library's that keeps nothing."""
    if is_traced(x) or type(x) is np.ndarray or isinstance(x, _CONSTANTS):
        return True
    if isinstance(x, FunctionType):
        return not _is_users_function(x) and not x.__closure__
    is_code = isinstance(x, BuiltinFunctionType | np.ufunc) or type(x).__name__ == "_ArrayFunctionDispatcher"
    return is_code and isinstance(getattr(x, "__self__", None), ModuleType | None)


def _refuse(name: str) -> NoReturn:
    unsupported(f"{name} is not supported in jitted code", WHY_NOT)


def record(
    op: Op,
    name: str,
    function: Callable[..., Any],
    args: Any,
    kwargs: dict[str, Any],
    *,
    draws: bool = False,
    makes: bool = False,
    shapes: Sequence[Sizes] = (),
) -> Any:
    """Record that the program calls a function, and give the traced result; `shapes`: of its parts, where these are known."""
    number = in_doubt((args, kwargs))
    if number is not None:  # Python sees of which type it is
        return call_for_each_type(number, record, op, name, function, args, kwargs, draws=draws, makes=makes, shapes=shapes)
    require_no_output(name, function, args, kwargs)
    form, operands = take_apart(name, args, kwargs)
    seen, examples = _try_out(name, function, form, operands, draws)
    claim: int | None
    if not kwargs and (shape := _shape_of_all(function, args, form)) is not None:
        shapes = [shape] * len(seen.shapes)
    if any(isinstance(n, Dim) for shape in shapes for n in shape):
        claim, foreseen = None, seen.open_as([tuple(-bound(n) if isinstance(n, Dim) else n for n in shape) for shape in shapes])
    else:
        claim, foreseen = paths.result(seen)
        shapes = foreseen.shapes
    run = checked(name, partial(_call, partial(caller(), function), form), foreseen, claim)
    orders = examples
    arguments = None if kwargs else tuple(x if kind_of(x) is None else ... for x in args)
    values = op(*operands, function=HostFunction(name, run, foreseen.avals, draws, makes=makes, arguments=arguments))
    if foreseen.admits(seen):
        remember(values, foreseen.hand_over(examples))
    else:  # what is seen is that of a loop's first iteration, and a later one is as foreseen
        examples = [np.ones(aval.shape, aval.dtype) for aval in foreseen.avals]
        remember(values, examples)
    operands_lie = [(shape, layout) for shape, layout in zip(form.shapes, form.layouts) if layout]
    results = [x if x.shape == shape else window(x, shape) for x, shape in zip(values, shapes, strict=True)]
    if _is_of_elements(function) and not kwargs and operands_lie:  # today's result may have an axis of one element
        layouts: list[Ints | None] = [kept_strides(operands_lie, x.shape) if x.ndim else None for x in results]
    else:
        layouts = [None if x.flags.c_contiguous else ordered_as(x, value.shape) for x, value in zip(orders, results)]
    return unflatten(foreseen.spec, list(map(_show, foreseen.kinds, results, layouts)))


def _is_of_elements(function: Callable[..., Any]) -> bool:
    """Whether each element of the results is computed from those at its place."""
    return function is np.i0 or (isinstance(function, np.ufunc) and function.signature is None)


def _shape_of_all(function: Callable[..., Any], args: Sequence[Any], form: _ArgumentForm) -> Sizes | None:
    """The shape of each result of a function of elements, where it holds sizes that only the running program knows."""
    if not _is_of_elements(function) or any(isinstance(x, (list, tuple)) for x in args) or len(args) != len(form.kinds):
        return None  # an output, or what is an array to NumPy alone
    if len(args) != (function.nin if isinstance(function, np.ufunc) else 1):
        return None
    shape = common_sizes(*form.shapes)  # of fixed numbers there is none
    return shape if any(isinstance(n, Dim) for n in shape) else None


def call_now(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a library's function that is not in the registry makes now of what it is given; `ON_HOST` if it wants numbers."""
    _require_no_python(function)
    if getattr(function, "__name__", "") in _WRITERS:
        _refuse(full_name(function))
    leaves, _ = flatten((args, kwargs))
    is_scipy = is_scipys(function) and not is_of_numpy(function)
    is_theirs = is_scipy and (any(map(is_traced, leaves)) or any(map(_is_users_function, leaves)))
    if (is_theirs and _is_known(function)) or any(map(is_opaque, leaves)):
        return ON_HOST
    attempt = Attempt()
    try:
        with nothing_drawn(full_name(function)):
            box = [function(*args, **kwargs)]
        if is_scipy and (found := next((x for x in flatten(box[0])[0] if _is_object(x)), None)) is not None:
            unsupported(_of_object(full_name(function), found), WHY_NOT, Cause.OBJECT)
        if not (_is_known(function) and _holds_traced(box[0]) and attempt.undo()):
            if type(box[0]) is not np.ndarray:
                return box.pop()
            own_arrays(box)
            return lift(box[0])
    except (TraceError, UnsupportedError):
        if not any(map(is_traced, leaves)) or not _is_known(function) or not attempt.undo():
            raise
    return ON_HOST


def _is_object(x: Any) -> bool:
    """Whether a result is nothing that a program computes with, and nothing that never changes."""
    return type(x) is not np.ndarray and not isinstance(x, _CONSTANTS) and not is_traced(x)


def _holds_traced(x: Any) -> bool:
    """Whether an object of NumPy's or SciPy's has been made with tracers in it, which its own code cannot use."""
    is_theirs = home_of(type(x)).partition(".")[0] in ("numpy", "scipy")
    return is_theirs and _is_object(x) and any(map(is_traced, parts_of([x])))


def _is_users_function(x: Any) -> bool:
    """Whether what a library is given to call runs code of the user's, or was made of traced values."""
    if type(x) is functools.partial:
        return any(is_traced(part) or _is_users_function(part) for part in (x.func, *x.args, *x.keywords.values()))
    plain = x.__func__ if type(x) is MethodType else x
    if type(plain) is not FunctionType:
        own = getattr(type(plain), "__call__", None)  # noqa: B004  # that of the class
        return type(own) is FunctionType and not is_traced(x) and not is_library(own)
    return is_converted_inside(plain) or HOOKS in plain.__code__.co_freevars or not is_library(plain)


@contextmanager
def nothing_drawn(name: str) -> Iterator[None]:
    """While a function is tried out, nobody draws from the generators of `np.random` and `random`."""
    legacy, pythons = before = np.random.get_state(legacy=False), random.getstate()
    yield
    if pickle.dumps((np.random.get_state(legacy=False), random.getstate())) != pickle.dumps(before):
        np.random.set_state(legacy)
        random.setstate(pythons)
        unsupported(
            f"{name} draws random numbers, or calls a function that does", "Draw them before, and hand them on.", Cause.RANDOM
        )


def _require_no_python(function: Any) -> None:
    """Refuse what `np.frompyfunc` has made: it calls a function of the user's out of sight."""
    ufunc = function if isinstance(function, np.ufunc) else getattr(function, "__self__", None)
    if isinstance(ufunc, np.ufunc) and ufunc.__name__.endswith(" (vectorized)"):
        unsupported(f"{full_name(function)} calls a function of Python's, and returns objects", WHY_NOT, Cause.OBJECT)


def _is_known(function: Any) -> bool:
    """Whether a function is a library's, and called for its result."""
    owner = getattr(function, "__self__", None)
    home = getattr(function, "__objclass__", None) or (type(owner) if isinstance(owner, np.ufunc) else function)
    module = "numpy" if isinstance(function, np.ufunc) else getattr(home, "__module__", None) or ""
    if getattr(function, "__name__", "") in (_EFFECTS | _CREATIONS | _PLACES) or module.startswith("scipy.io"):
        return False
    return module.split(".")[0] in ("numpy", "scipy") or is_scipys(function)


def take_apart(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_ArgumentForm, list[Value]]:
    """The form of the arguments, and the values among them."""
    leaves, spec = flatten((args, kwargs))
    kinds: list[Kind | None] = []
    operands: list[Value] = []
    layouts: list[Ints] = []
    for leaf in leaves:
        kind = kind_of(leaf)
        kinds.append(kind)
        if kind is not None:
            operands.append(read(leaf))
            layouts.append(layout_of(leaf)[1] if kind is np.ndarray else ())
    shapes = tuple(value.shape for value in operands)
    operands += [value_of_size(n) for shape in shapes for n in shape if isinstance(n, Dim)]
    fixed = tuple(None if kind else leaf for kind, leaf in zip(kinds, leaves))
    return _ArgumentForm(spec, tuple(kinds), fixed, shapes, tuple(layouts)), operands


def kind_of(leaf: Any) -> Kind | None:
    """As what a leaf is shown to Python; None if it is not computed."""
    if type(leaf) is TracedNumber:
        return leaf.kind
    if type(leaf) is TracedScalar:
        return np.generic
    return np.ndarray if type(leaf) is TracedArray or type(leaf) is np.ndarray else None


def _plain(kind: Kind, x: Array) -> Any:
    """An array as Python shall see it."""
    return x if kind is np.ndarray else x[()] if kind is np.generic else x.item()


def _show(kind: Kind, value: Value, layout: Ints | None) -> Any:
    """A result as traced code shall see it."""
    if kind is np.generic:
        return scalar(value)
    if kind is not np.ndarray:
        return TracedNumber.of_value(active_trace(), value)
    return fresh(value, layout)


def _try_out(
    name: str, function: Callable[..., Any], form: _ArgumentForm, operands: Sequence[Value], draws: bool
) -> tuple[Returned, list[Array]]:
    """Call the function on what the operands are in this call: what it gives."""
    given = [address_of(operands[0]), *examples_of(operands[1:])] if draws else examples_of(operands)
    given[: len(form.layouts)] = map(_lying, given, form.layouts)
    before = [np.array(x) for x in given]
    apply = partial(caller(), function)
    root = active_trace().root
    calls = root.call[HostCallRules]
    calls.trials = trials = calls.trials or copy_context()
    plain: list[Any] = []

    def unheard() -> Any:
        with (
            nullcontext() if draws else nothing_drawn(name),
            outside_trace(),
            np.errstate(all="ignore"),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # the program will call it again
            plain[:] = form.plain(given)
            return apply(*plain)

    try:
        try:
            result = trials.run(unheard)
        except np.linalg.LinAlgError:
            # It may be a matrix that a loop has not filled yet; the program itself raises where it has to.
            given = before = list(map(_regular, given))
            result = trials.run(unheard)
        except ValueError as error:
            if draws or "read-only" not in str(error):
                raise
            unsupported(f"{name} writes into its argument, or might for all that it knows", WHY_NOT)
    except TraceError:
        unsupported(f"{name} calls a function that is made in the jitted one", "Define that one outside.")
    except Exception as error:
        pass_on(error)
        raise error
    if differ(before, given):
        unsupported(f"{name} writes into its argument, which is not supported in jitted code", WHY_NOT)
    _check_results(name, plain, given, result)
    return returned(result)


def _containers(tree: Any) -> set[int]:
    """The containers in a structure that can be changed, by their identities."""
    found, waiting = dict[int, Any](), [tree]
    while waiting:
        x = waiting.pop()
        parts, spec = children(x)
        if not spec.is_leaf() and id(x) not in found:
            found[id(x)] = x
            waiting += parts
    return {n for n, x in found.items() if not isinstance(x, tuple | None)}


def _lying(x: Array, layout: Ints) -> Array:
    """The same as it lies in memory for the program, which results may follow."""
    if surely_contiguous(x.shape, layout):
        return x
    moved = lying_like(x.shape, layout, x.dtype)
    moved[...] = x
    return moved


def _regular(x: Array) -> Array:
    """Matrices that can be inverted and factorized, in place of others."""
    is_matrix = x.ndim >= 2 and x.dtype.kind in "fc"
    return np.array(np.broadcast_to(np.eye(*x.shape[-2:], dtype=x.dtype), x.shape)) if is_matrix else x


def _call(apply: Callable[..., Any], form: _ArgumentForm, arrays: Sequence[Array]) -> Any:
    return apply(*form.plain(arrays))


def _check_results(name: str, plain: Any, given: Sequence[Array], result: Any) -> None:
    if _containers(plain) & _containers(result):  # the program makes them for each call, and they are not the user's
        unsupported(f"{name} returns a container that it was given", "Use the one that is at hand.")
    leaves, _ = flatten(result)
    for leaf in leaves:
        _check_result(name, leaf, given)
    if not leaves:
        unsupported(f"{name} returns no array", WHY_NOT)


def _check_result(name: str, leaf: Any, given: Sequence[Array]) -> None:
    if type(leaf) in (bool, int, float, complex):
        return
    if isinstance(leaf, np.generic) or type(leaf) is np.ndarray:
        if not is_supported(leaf.dtype):
            unsupported(f"{name} returns {leaf.dtype}, which jitml does not compile", "Leave this part outside jit.")
        if type(leaf) is np.ndarray and any(np.may_share_memory(leaf, x) for x in given):
            unsupported(f"{name} returns its argument, or a view of it, which only compiled functions may", WHY_NOT)
        return
    unsupported(_of_object(name, leaf), WHY_NOT, Cause.OBJECT)


def _of_object(name: str, x: Any) -> str:
    return f"{name} returns a {type(x).__module__}.{type(x).__qualname__}, which cannot be compiled"


def call_instead(
    refusal: UnsupportedError | None, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """In place of a missing implementation, or of one that refuses these arguments; its refusal stands if this is no way out."""
    if refusal is None:
        return call_on_host(function, args, kwargs)
    if not active_trace().call[HostCallRules].allowed or not _is_known(function) or "out" in kwargs:
        refuse(refusal)
    attempt = Attempt()
    try:
        return call_on_host(function, args, kwargs)
    except UnsupportedError:
        attempt.undo()
    refuse(refusal)
