"""The user's rules on the tape: functions with a derivative of their own, `custom_vjp` and `custom_jvp`.

The rules run as Python, when derivatives go along the tape. One that is given for the other direction is linear in what it
gets, and is differentiated by that on a tape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import optree

from jitml.autograd.arguments.point import told
from jitml.autograd.tape.calls import converted
from jitml.autograd.tape.rules import is_float
from jitml.autograd.tape.tape import RuledEntry, Slot, Tape, current_tape, inputs_of, recalled
from jitml.autograd.tape.transforms import recorded
from jitml.autograd.tape.values import Taped, bare, kind_of, of_saved, of_slot, saved, wrapped
from jitml.errors import DerivativeError, UnsupportedError
from jitml.interrupts import unset
from jitml.ir.types import Aval
from jitml.trace.record.pytree import NAMESPACE, flatten, structure_of, unflatten
from jitml.trace.record.recording import user_source

Function = Callable[..., Any]


def is_taped(tree: Any) -> bool:
    """Whether something in a container is on a tape, and is differentiated."""
    return current_tape() is not None and orders() > 0 and any(type(x) is Taped and x.is_active for x in flatten(tree)[0])


def detached(x: Any) -> Any:
    """The same value, without its past; an array is a copy."""
    if type(x) is not Taped:
        return x
    return wrapped(x.tape, x.value.copy()) if x.storage is not None else x.value


class RememberedTree:
    """A container of values as they are now."""

    def __init__(self, tape: Tape, tree: Any) -> None:
        leaves, self.spec = flatten(tree)
        self.tape = tape
        self.slots = [x.slot if type(x) is Taped else None for x in leaves]
        self.saved = [saved(tape, x) if type(x) in (Taped, np.ndarray) else x for x in leaves]

    def recalled(self, is_recorded: bool) -> Any:
        """The values, in memory of their own."""
        both = zip(self.saved, self.slots)
        return unflatten(self.spec, [_own(of_saved(self.tape, x, slot) if is_recorded else recalled(x)) for x, slot in both])


def _own(x: Any) -> Any:
    """The same value as an array that a rule may write."""
    return wrapped(current_tape(), _copied(x))


def _copied(x: Any) -> Any:
    return x.copy() if isinstance(x, np.ndarray) else x


_orders: ContextVar[int | None] = ContextVar("jitml_orders", default=None)


def orders() -> int:
    """How often what runs now may be differentiated; in a rule, less often than around it."""
    tape, known = current_tape(), _orders.get()
    return known if known is not None else 0 if tape is None else tape.depth


@contextmanager
def at_order(order: int) -> Iterator[None]:
    token = _orders.set(order)
    try:
        yield
    finally:
        unset(_orders, token)


@contextmanager
def alone(name: str, tape: Tape, args: Sequence[Any]) -> Iterator[Callable[[Any], None]]:
    """See that what runs inside is given all that it differentiates; what it yields asks the same of residuals."""
    given = {x.slot for x in flatten(tuple(args))[0] if type(x) is Taped}
    first, start = len(tape.kinds), len(tape.entries)

    def require_alone(tree: Any) -> None:
        read = [x.slot for x in flatten(tree)[0] if type(x) is Taped]
        for entry in tape.entries[start:]:
            read += inputs_of(entry)
        if any(slot is not None and slot < first and slot not in given for slot in read):
            raise not_given(name)

    yield require_alone


def not_given(name: str) -> DerivativeError:
    return DerivativeError(
        f"{name} uses a variable that is differentiated without being given it",
        source=user_source(),
        remedy="Pass it as an argument; its rule then has a cotangent, or a tangent, for it.",
    )


class RuledCall:
    """A call of a function with a rule: what goes in, by position, and what has come out.

    name: the function's, for messages.
    """

    def __init__(self, name: str, tape: Tape, args: Sequence[Any], value: Any) -> None:
        self.name, self.tape, self.order = name, tape, orders() - 1
        self.args, self.arguments = tuple(args), RememberedTree(tape, tuple(args))
        self.leaves = flatten(self.args)[0]
        found, self.result_spec = flatten(value)
        for x in found:
            if not isinstance(x, (np.ndarray, np.generic, bool, int, float, complex)):
                raise DerivativeError(f"{name} returns {told(x)}, not numbers", source=user_source())
        plain = [x.value if type(x) is Taped else x for x in found]
        self.results = [_copied(x) for x in plain]
        self.outputs: list[Slot] = [tape.new(kind_of(x)) if is_float(x) else None for x in self.results]

    def shown(self, pull: Any, push: Any) -> Any:
        """Enter the call on the tape; its result."""
        self.tape.entries.append(RuledEntry(self.arguments.slots, self.outputs, pull, push))
        made = [x if slot is None else of_slot(self.tape, x, slot) for x, slot in zip(self.results, self.outputs)]
        return unflatten(self.result_spec, made)

    def zeros(self, leaves: Sequence[Any]) -> list[Any]:
        """Of each float; of the others None."""
        return [_zeros(x) if is_float(x) else None for x in leaves]

    def cotangents(self, found: Any) -> list[Any]:
        """What a backward rule has returned, leaf by leaf."""
        what = f"{self.name}: the cotangent that its backward rule returns"
        if not isinstance(found, tuple) or len(found) != len(self.args):
            got = f"a tuple of {len(found)}" if isinstance(found, tuple) else told(found)
            raise DerivativeError(
                f"the backward rule of {self.name} returns {got}, not a tuple of {len(self.args)}, one for each argument",
                source=user_source(),
                remedy="None stands for a cotangent of zero.",
            )
        leaves: list[Any] = []
        for ct, arg in zip(found, self.args):
            own, spec = flatten(arg)
            given, structure = flatten(ct)
            if structure != spec:
                given = [None] * len(own) if ct is None else optree.tree_leaves(ct, none_is_leaf=True, namespace=NAMESPACE)
            if len(given) != len(own):
                wanted, got = structure_of(spec), structure_of(structure)
                raise DerivativeError(f"{what} has the structure {got}, where {wanted} is wanted", source=user_source())
            leaves += [_fitting(what, x, like) for x, like in zip(given, own)]
        return leaves

    def like_results(self, what: str, tree: Any) -> list[Any]:
        leaves, spec = flatten(tree)
        if spec != self.result_spec:
            wanted = structure_of(self.result_spec)
            raise DerivativeError(
                f"{what} has the structure {structure_of(spec)}, where {wanted} is wanted", source=user_source()
            )
        return [_fitting(what, x, like) for x, like in zip(leaves, self.results)]


def _zeros(x: Any) -> Any:
    raw = np.asarray(x.value if type(x) is Taped else x)
    return np.zeros_like(raw) if raw.shape else raw.dtype.type(0)


def _fitting(what: str, x: Any, like: Any) -> Any:
    """A derivative in the dtype of its value, which it has to have the shape of."""
    if x is None or not is_float(like):
        return None
    wanted = np.asarray(like.value if type(like) is Taped else like)
    given = np.asarray(x.value if type(x) is Taped else x)
    if given.shape != wanted.shape or (given.dtype.kind == "c" and wanted.dtype.kind != "c"):
        raise DerivativeError(
            f"{what} is {Aval(given.shape, given.dtype)} where {Aval(wanted.shape, wanted.dtype)} is wanted", source=user_source()
        )
    if type(x) is Taped and x.is_active:
        return (
            x if given.dtype == wanted.dtype and type(x.value) not in (float, complex) else np.multiply(x, wanted.dtype.type(1))
        )
    return given.astype(wanted.dtype)[() if not wanted.shape else ...]


def pair(what: str, wanted: str, found: Any) -> tuple[Any, Any]:
    if not (isinstance(found, tuple) and len(found) == 2):
        raise DerivativeError(f"{what} returns {told(found)}, not a pair {wanted}", source=user_source())
    return found


def call_with_vjp(name: str, args: Sequence[Any], whole: Function, fwd: Function, bwd: Function) -> Any:
    """A call of a function with a rule for reverse mode.

    Args:
        args: those that vary. whole: calls a function with them, and the others in their places.
    """
    tape = current_tape()
    assert tape is not None
    with alone(name, tape, args) as require_alone, at_order(orders() - 1):
        found = whole(converted(fwd), *args)
    value, rest = pair(f"the forward rule of {name}", "(result, residuals)", found)
    require_alone(rest)
    call, kept = RuledCall(name, tape, args, value), RememberedTree(tape, rest)

    def pull(cts: Sequence[Any], is_recorded: bool) -> Sequence[Any]:
        filled = [ct if ct is not None else zero for ct, zero in zip(cts, call.zeros(call.results))]
        return backward(filled, is_recorded)

    def backward(cts: Sequence[Any], is_recorded: bool) -> list[Any]:
        with at_order(call.order):
            return call.cotangents(converted(bwd)(kept.recalled(is_recorded), unflatten(call.result_spec, [*map(_own, cts)])))

    def push(tangents: Sequence[Any], is_recorded: bool) -> Sequence[Any]:
        """`bwd` is linear in the cotangent: pulled back, it pushes."""
        varying = [n for n, x in enumerate(call.results) if is_float(x)]

        def linear(*cts: Any) -> Any:
            given = dict(zip(varying, cts))
            found = backward([given.get(n) for n in range(len(call.results))], is_recorded)
            return [ct if ct is not None else 0.0 for ct in found]

        like = [call.results[n] for n in varying]
        moved = dict(zip(varying, _transposed(name, linear, like, tangents, is_recorded)))
        return [moved.get(n) for n in range(len(call.results))]

    return call.shown(pull, push)


def _transposed(name: str, linear: Function, like: Sequence[Any], derivatives: Sequence[Any], is_recorded: bool) -> list[Any]:
    """The transpose of a linear function of arrays like these, applied.

    Raises:
        DerivativeError: it is seen not to be linear.
    """
    anywhere = [_anything_like(x) for x in like]
    with recorded(name, linear, anywhere, {}, range(len(anywhere)), has_aux=False) as point:
        point.is_inner = is_recorded
        given = _filled(derivatives, point.results)
        found = point.pull(given)
        there, back = _inner(given, point.results), _inner(found, anywhere)
    if np.isfinite(there) and np.isfinite(back) and abs(there - back) > 1e-4 * (1 + abs(there) + abs(back)):
        raise DerivativeError(f"{name}: its rule is not linear in the derivative that it is given", source=user_source())
    return found


def _anything_like(x: Any) -> Any:
    """An array of no special numbers: a linear function has the same derivative everywhere."""
    raw = np.asarray(x.value if type(x) is Taped else x)
    numbers = (0.5 + np.modf(np.arange(1.0, raw.size + 1) * 0.6180339887)[0]).reshape(raw.shape).astype(raw.dtype)
    return numbers if raw.shape else raw.dtype.type(numbers)


def _inner(xs: Sequence[Any], ys: Sequence[Any]) -> Any:
    pairs = [
        (np.asarray(x.value if type(x) is Taped else x), np.asarray(y.value if type(y) is Taped else y)) for x, y in zip(xs, ys)
    ]
    return sum((complex((x * y).sum()) for x, y in pairs), 0j)


def _filled(derivatives: Sequence[Any], like: Sequence[Any]) -> list[Any]:
    return [_zeros(x) if d is None else d for d, x in zip(derivatives, like)]


def call_with_jvp(name: str, args: Sequence[Any], whole: Function, function: Function, rule: Function) -> Any:
    """A call of a function with a rule for its tangent; `rule` takes primals and tangents."""
    tape = current_tape()
    assert tape is not None
    leaves, spec = flatten(tuple(args))
    plain = unflatten(spec, [_copied(x.value) if type(x) is Taped else x for x in leaves])
    value = whole(converted(function), *plain)
    if any(isinstance(x, np.ndarray) and x.tobytes() != bare(y).tobytes() for x, y in zip(flatten(plain)[0], leaves)):
        raise UnsupportedError(
            f"{name} has a derivative of its own, and writes into its argument",
            source=user_source(),
            remedy="Copy it first: x = x.copy().",
        )
    if any(type(x) is Taped and x.is_active for x in flatten(value)[0]):
        raise not_given(name)
    call = RuledCall(name, tape, args, value)
    varying = [n for n, x in enumerate(leaves) if is_float(x)]

    def moved(tangents: Sequence[Any], is_recorded: bool) -> list[Any]:
        given = dict(zip(varying, tangents))
        directions = unflatten(spec, [_own(given.get(n)) for n in range(len(leaves))])
        with at_order(call.order):
            found = converted(rule)(call.arguments.recalled(is_recorded), directions)
        found = pair(f"the jvp rule of {name}", "(result, tangent)", found)
        return call.like_results(f"{name}: the tangent that its jvp rule returns", found[1])

    def push(tangents: Sequence[Any], is_recorded: bool) -> Sequence[Any]:
        return moved(_filled([tangents[n] for n in varying], [leaves[n] for n in varying]), is_recorded)

    def pull(cts: Sequence[Any], is_recorded: bool) -> Sequence[Any]:
        """The rule is linear in the tangents: pulled back, that is its transpose."""

        def forward(*tangents: Any) -> Any:
            return [0.0 if dy is None else dy for dy in moved(tangents, is_recorded)]

        found = dict(zip(varying, _transposed(name, forward, [leaves[n] for n in varying], cts, is_recorded)))
        return [found.get(n) for n in range(len(leaves))]

    return call.shown(pull, push)
