"""Transforms on the tape, `grad`, `jacobian` and their kin: how is a function differentiated that no graph can hold?

It runs as Python, once, on values that are known; what NumPy computes on the way is recorded. Then derivatives go along the tape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import optree

from jitml.autograd.arguments.attributes import is_inexact
from jitml.autograd.arguments.point import Domain, Place, _check_result, _check_scalar, _check_varying, _parted, article
from jitml.autograd.tape.calls import converted
from jitml.autograd.tape.escapes import close
from jitml.autograd.tape.memory import OwnMemory
from jitml.autograd.tape.recording import record
from jitml.autograd.tape.sweeps import pulled, pushed
from jitml.autograd.tape.tape import Slot, Taking, Tape, taping
from jitml.autograd.tape.values import Taped, kind_of, of_slot, wrapped
from jitml.errors import DerivativeError
from jitml.ir.graph import Value
from jitml.ir.types import aval_of, dtype_name
from jitml.records import dataclass
from jitml.trace.record.pytree import children, flatten, is_own_kind, is_record, places_in, structure_of, unflatten
from jitml.trace.record.recording import user_source

Function = Callable[..., Any]


@dataclass(frozen=True)
class Seen:
    """What the leaves of arguments and result are."""

    inputs: tuple[Value, ...]
    results: tuple[Value, ...]


@dataclass(eq=False)
class Recorded:
    """A function at one point, as it has run.

    inputs: the slots of the varying leaves. spec, arrays: their structure, as one tuple, and which are arrays.
    results: the leaves of the result; slots: theirs.
    part: what it has entered on the tape.
    """

    tape: Tape
    inputs: list[int]
    given: list[Any]
    spec: optree.PyTreeSpec
    results: list[Any]
    slots: list[Slot]
    result_spec: optree.PyTreeSpec
    aux: Any
    part: slice
    is_inner: bool

    @property
    def seen(self) -> Seen:
        inputs, results = (tuple(Value(aval_of(np.asarray(_bare(x)))) for x in xs) for xs in (self.given, self.results))
        return Seen(inputs, results)

    @property
    def value(self) -> Any:
        return unflatten(self.result_spec, self.results)

    def pull(self, cts: Sequence[Any]) -> list[Any]:
        """A cotangent for each varying leaf, for one for each result."""
        given = [(slot, ct) for slot, ct in zip(self.slots, cts) if slot is not None]
        return self._like(pulled(self.tape, self.part, given, self.inputs, self.is_inner), self.given)

    def push(self, tangents: Sequence[Any]) -> list[Any]:
        given = dict(zip(self.inputs, tangents))
        return self._like(pushed(self.tape, self.part, given, self.slots, self.is_inner), self.results)

    def ones(self) -> list[Any]:
        """A cotangent of 1 for each result, which is a number."""
        return [np.asarray(_bare(x)).dtype.type(1) for x in self.results]

    def fitting(self, what: str, tree: Any, *, of_arguments: bool) -> list[Any]:
        """The leaves of what has to look like the arguments, or the result: same structure and shapes, dtypes as if assigned."""
        leaves, spec = flatten(tree)
        wanted = self.spec if of_arguments else self.result_spec
        if spec != wanted:
            raise DerivativeError(
                f"{what} has the structure {structure_of(spec)}, where {structure_of(wanted)} is wanted", source=user_source()
            )
        return [self._fitting(what, x, value) for x, value in zip(leaves, self.given if of_arguments else self.results)]

    def _fitting(self, what: str, x: Any, value: Any) -> Any:
        like, given = np.asarray(_bare(value)), np.asarray(_bare(x))
        if like.shape != given.shape or (given.dtype.kind == "c" and like.dtype.kind != "c") or given.dtype.kind not in "biufc":
            found, wanted = (f"{dtype_name(a.dtype)}[{','.join(map(str, a.shape))}]" for a in (given, like))
            raise DerivativeError(f"{what} is {found} where {wanted} is wanted", source=user_source())
        if type(x) is Taped and x.is_active:
            if not self.is_inner:
                raise DerivativeError(
                    f"{what} is differentiated, and the function has run before on a tape of its own", source=user_source()
                )
            return x if given.dtype == like.dtype else x.astype(like.dtype)
        return given.astype(like.dtype) if like.shape else given.astype(like.dtype)[()]

    def rows(self, result: int) -> list[Any]:
        """The derivatives of one leaf of the result, by each varying leaf: a sweep for each of its elements."""
        y = _bare(self.results[result])
        rows = []
        for unit in _units(y):
            cts = [] if (slot := self.slots[result]) is None else [(slot, unit)]
            rows.append(pulled(self.tape, self.part, cts, self.inputs, self.is_inner))
        return [self._block(y, x, [row[n] for row in rows], 0) for n, x in enumerate(self.given)]

    def columns(self, result: int) -> list[Any]:
        """The Jacobian of a result, a block for each argument, pushed forward column by column."""
        y, slot = _bare(self.results[result]), self.slots[result]
        blocks = []
        for number, x in zip(self.inputs, self.given):
            columns = [pushed(self.tape, self.part, {number: unit}, [slot], self.is_inner)[0] for unit in _units(_bare(x))]
            blocks.append(self._block(y, x, columns, -1))
        return blocks

    def _block(self, y: Any, given: Any, parts: Sequence[Any], axis: int) -> Any:
        """Derivatives in all directions, one beside the other."""
        x = _bare(given)
        shape = (*np.shape(y), *np.shape(x))
        filled = [self._one_like(part, x if axis == 0 else y) for part in parts]
        if not filled:
            return np.zeros(shape, np.asarray(y).dtype)
        is_scalar = not shape and not isinstance(x, np.ndarray) and not isinstance(y, np.ndarray)
        if is_scalar:
            return filled[0]
        whole = record(np.stack, (filled, axis), {}) if any(type(part) is Taped for part in filled) else np.stack(filled, axis)
        return whole.reshape(shape)

    def _like(self, found: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        return [self._one_like(x, value) for x, value in zip(found, values)]

    def _one_like(self, x: Any, value: Any) -> Any:
        """A derivative in memory of its own, an array where its value is one."""
        raw = value.value if type(value) is Taped else value
        is_array = type(raw) is np.ndarray
        if x is None:
            zeros = np.zeros(np.shape(raw), np.asarray(raw).dtype)
            return zeros if is_array else zeros[()]
        if self.is_inner and type(x) is Taped:
            return x.copy() if is_array else x
        x = x.value if type(x) is Taped else x
        return np.array(x, order="C") if is_array else np.asarray(x)[()]


def plain(x: Any) -> Any:
    """A value that leaves the tape."""
    if type(x) is not Taped:
        return x
    storage = x.storage
    if storage is not None and storage.cell is not None:
        storage.before_write()  # its new owner may write it
    return x.value


@contextmanager
def recorded(
    what: str,
    f: Function,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    places: Sequence[Place],
    *,
    has_aux: bool,
    domain: Domain = Domain.ANY,
    keeps_all: bool = False,
) -> Iterator[Recorded]:
    """Run `f(*args, **kwargs)` on a tape, its arguments at `places` varying; derivatives are asked for inside of the block.

    Raises:
        DerivativeError: a varying leaf or a result is not of the domain.
    """
    given: dict[Place, Any] = dict(enumerate(args))
    given.update(kwargs.items())
    varied = tuple(given[place] for place in places)
    leaves, spec = flatten(varied)
    paths = [f"argument {places[path[0]]}{rest}" for path, rest in zip(spec.paths(), places_in(spec, 1))]
    for leaf, path in zip(leaves, paths):
        _check_varying(what, _bare(leaf), path, domain)
    with taping() as tape:
        is_inner = tape.depth > 1
        keeps, tape.keeps_all = tape.keeps_all, tape.keeps_all or keeps_all
        try:
            with np.errstate(**_unheard()):
                inputs = [_entered(tape, leaf, tape.new(kind_of(_bare(leaf)))) for leaf in leaves]
                slots, start = [x.slot for x in inputs], len(tape.entries)
                passed = {place: _handed(tape, arg) for place, arg in given.items()}
                passed.update(zip(places, unflatten(spec, inputs)))
                for place, arg in given.items():
                    _hand_on(arg, passed[place], place in places)
                copies = _copies([*given.values()], [*passed.values()])
                result = _called(tape, f, [passed[n] for n in range(len(args))], {name: passed[name] for name in kwargs})
            _require_apart(what, copies, tape)
            aux = None
            if has_aux:
                result, aux = _parted(what, result)
            outcomes, result_spec = flatten(result)
            for leaf in outcomes:
                _check_result(what, _bare(leaf), domain)
            if domain.is_scalar:
                _check_scalar(
                    what, [_bare(leaf) for leaf in outcomes], _bare(result) if outcomes and outcomes[0] is result else result
                )
            found = [x.slot if type(x) is Taped else None for x in outcomes]
            if not is_inner:
                aux_leaves, aux_spec = flatten(aux)
                aux = unflatten(aux_spec, [plain(x) for x in aux_leaves])
                outcomes, leaves = list(map(plain, outcomes)), list(map(_bare, leaves))
                del aux_leaves, result, passed, inputs, copies, leaf  # of which nothing outlives the tape
            yield Recorded(
                tape,
                [s for s in slots if s is not None],
                leaves,
                spec,
                outcomes,
                found,
                result_spec,
                aux,
                slice(start, len(tape.entries)),
                is_inner,
            )
        finally:
            tape.keeps_all = keeps
            if not is_inner:
                close(tape)


def _called(tape: Tape, f: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A refusal is the result, whatever has been made of it: NumPy's own error, or what the function does when it handles it."""
    try:
        result = converted(f)(*args, **kwargs)
    except Exception:
        if tape.refusal is None:
            raise
    if tape.refusal is None:
        return result
    raise tape.refusal


def _units(x: Any) -> list[Any]:
    """Every array of a kind that is 1 at one place and 0 elsewhere, one after the other."""
    like = np.asarray(x)
    if not like.shape:
        return [like.dtype.type(1)]
    return [*np.eye(like.size, dtype=like.dtype).reshape(like.size, *like.shape)]


def _unheard() -> Mapping[str, Any]:
    """Transforms do not warn; what raises does."""
    return {kind: "raise" if how == "raise" else "ignore" for kind, how in np.geterr().items()}


def _bare(x: Any) -> Any:
    return x.value if type(x) is Taped else x


def _entered(tape: Tape, leaf: Any, slot: int) -> Taped:
    """A varying leaf: a copy, with a slot of its own."""
    raw = _bare(leaf)
    if type(leaf) is Taped and leaf.slot is not None:
        tape.entries.append(Taking(None, leaf.slot, slot))
    if isinstance(raw, np.ndarray):
        array = np.array(raw, order="F" if raw.flags.f_contiguous and not raw.flags.c_contiguous else "C")
        return Taped(tape, array, OwnMemory(array, slot))
    return of_slot(tape, raw, slot)


def _handed(tape: Tape, arg: Any) -> Any:
    """An argument that does not vary: copies of its arrays."""
    leaves, spec = flatten(arg)
    return unflatten(spec, [_copied(tape, leaf) for leaf in leaves])


def _copied(tape: Tape, leaf: Any) -> Any:
    if type(leaf) is Taped:
        return leaf.copy() if leaf.storage is not None else leaf
    return wrapped(tape, leaf.copy(order="K")) if type(leaf) is np.ndarray else leaf


def _hand_on(given: Any, copy: Any, varies: bool) -> None:
    """The attributes of dataclasses that are no fields; those that may depend on what varies are left out."""
    if given is copy:
        return
    parts, spec = children(given)
    if spec.is_leaf():
        return
    if is_record(given) and not is_own_kind(given) and hasattr(given, "__dict__"):
        for name, value in vars(given).items():
            if name not in vars(copy) and not (varies and any(map(is_inexact, flatten(value)[0]))):
                object.__setattr__(copy, name, value)
    for part, other in zip(parts, children(copy)[0]):
        _hand_on(part, other, varies)


class _Copy:
    """An array among the arguments, and the copy that the function gets.

    is_written: what tells whether that has been written.
    """

    def __init__(self, original: Any, copy: Taped, storage: OwnMemory) -> None:
        self.original, self.storage, self.slot = _bare(original), storage, storage.slot
        self.was = None if storage.slot is not None else storage.buffer.copy()

    @property
    def is_written(self) -> bool:
        return self.storage.slot != self.slot or (self.was is not None and self.was.tobytes() != self.storage.buffer.tobytes())


def _copies(given: Any, passed: Any) -> list[_Copy]:
    both = zip(flatten(given)[0], flatten(passed)[0])
    return [_Copy(x, copy, copy.storage) for x, copy in both if type(copy) is Taped and copy.storage is not None]


def _require_apart(what: str, copies: Sequence[_Copy], tape: Tape) -> None:
    """Arguments are copies: none that is known by another name, too, may be written."""
    text = ""
    for n, copy in enumerate(copies):
        if not copy.is_written:
            if copy.original.tobytes() != copy.storage.buffer.tobytes():
                text = "an argument is written by another name that it has"
            continue
        if any(m != n and np.may_share_memory(copy.original, other.original) for m, other in enumerate(copies)):
            text = "an argument is written that shares memory with another one"
        if any(np.may_share_memory(copy.original, x) for x in tape.met.values()):
            text = "an argument is written that the function also uses by another name"
    if text:
        raise DerivativeError(
            f"{what}: {text}: the function gets copies of its arguments, which share nothing",
            source=user_source(),
            remedy="Pass a copy of it (x.copy()), or write into a copy inside the function.",
        )


__all__ = ["Recorded", "article", "plain", "recorded"]
