"""Sweeps: how do derivatives go along a tape?  Cotangents against the order of time, tangents with it.

Where a transform around this one records what the sweep computes, slopes of slopes, values on the tape take the place of
NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jitml.autograd.tape.recording import enter
from jitml.autograd.tape.rules import LocalRule, NoRule, Sweepable, rule_of
from jitml.autograd.tape.tape import Operation, Replacement, RuledEntry, Slot, Taking, Tape, recalled, source_of
from jitml.autograd.tape.values import Taped, of_saved, wrapped
from jitml.errors import DerivativeError


class _Sweep:
    """Derivatives of values on a tape, by slot.

    own: whose arrays nobody else sees, laid out as the values are.
    is_recorded: whether the sweep itself is recorded.
    """

    def __init__(self, tape: Tape, is_recorded: bool) -> None:
        self.tape, self.is_recorded = tape, is_recorded
        self.known: dict[int, Any] = {}
        self.own: set[int] = set()

    def zeros(self, slot: int) -> Any:
        zeros = self.tape.kinds[slot].zeros()
        return wrapped(self.tape, zeros) if self.is_recorded else zeros

    def owned(self, slot: int) -> Any:
        """What is known of a slot, zeros if nothing is, as an array that may be written."""
        if slot not in self.own:
            array, known = self.zeros(slot), self.known.get(slot)
            if known is not None:
                array[...] = known
            self.known[slot] = array
            self.own.add(slot)
        return self.known[slot]

    def add(self, slot: Slot, x: Any) -> None:
        if slot is None or x is None:
            return
        known = self.known.get(slot)
        if known is None:
            self.known[slot] = x
        elif slot in self.own:
            np.add(known, x, out=known)
        else:
            self.known[slot] = known + x

    def pop(self, slot: Slot) -> Any:
        if slot is None:
            return None
        self.own.discard(slot)
        return self.known.pop(slot, None)

    def like(self, x: Any, slot: int) -> Any:
        """A derivative in the shape and of the dtype that the value of a slot has, which may have been stretched."""
        kind = self.tape.kinds[slot]
        if np.shape(x) != kind.shape:
            x = _unstretched(x, kind.shape)
        if x.dtype != kind.dtype:
            x = (x.real if x.dtype.kind == "c" and kind.dtype.kind != "c" else x).astype(kind.dtype)
        return x if kind.is_array else x[()]

    def applied(self, sweepable: Sweepable, entry: Operation, given: Sequence[Any], slots: Sequence[Slot]) -> Sequence[Any]:
        """A graph of saved values, and of derivatives."""
        if not self.is_recorded:
            return sweepable.run(*map(recalled, entry.saved[: len(sweepable.raw.inputs) - len(given)]), *given)
        reads = sweepable.reads
        saved = [of_saved(self.tape, x, slot) if read else None for x, slot, read in zip(entry.saved, slots, reads)]
        return recorded_graph(self.tape, sweepable, [*saved, *given])


def recorded_graph(tape: Tape, sweepable: Sweepable, leaves: Sequence[Any]) -> Sequence[Any]:
    """The outputs of a graph, recorded as one operation."""
    plain = [x.value if type(x) is Taped else x for x in leaves]
    results = [np.array(x) if isinstance(x, np.ndarray) and x.ndim else np.asarray(x)[()] for x in sweepable.run(*plain)]
    wrt = tuple(n for n, x in enumerate(leaves) if type(x) is Taped and x.is_active)
    if not wrt:
        return [wrapped(tape, x) for x in results]
    rule = rule_of(sweepable.raw, wrt)
    return enter(tape, rule, _DERIVATIVE, leaves, wrt, [None] * len(results), results)


def _DERIVATIVE() -> None:
    """What the derivative of a derivative is named after."""


def _unstretched(x: Any, shape: tuple[int, ...]) -> Any:
    """The sum over axes along which an array of this shape is the same."""
    x = x.sum(tuple(range(x.ndim - len(shape)))) if x.ndim > len(shape) else x
    alike = tuple(axis for axis, n in enumerate(shape) if n == 1 and np.shape(x)[axis] != 1)
    x = x.sum(alike, keepdims=True) if alike else x
    return np.reshape(x, shape)


def _refuse_unknown(entry: Operation) -> None:
    if isinstance(entry.rule, NoRule):
        raise DerivativeError(
            f"{entry.name} is differentiated, and has no derivative here: {entry.rule.reason}",
            source=source_of(entry.place),
            remedy="If its result may be taken as a constant, give it jitml.stop_gradient(x); else give it a rule, "
            "with jitml.custom_vjp.",
        )


def pulled(
    tape: Tape, part: slice, cotangents: Iterable[tuple[int, Any]], wanted: Sequence[Slot], is_recorded: bool
) -> list[Any]:
    """Cotangents of values, given those of others; None where there is none.

    Args:
        part: the entries that lie between them.
        cotangents: by slot; one value may have several, which add up.
    """
    sweep = _Sweep(tape, is_recorded)
    for slot, ct in cotangents:
        sweep.add(slot, ct)
    with np.errstate(all="ignore"):
        for entry in reversed(tape.entries[part]):
            _PULL[type(entry)](sweep, entry)
    return [None if slot is None else sweep.known.get(slot) for slot in wanted]


def _pull_operation(sweep: _Sweep, entry: Operation) -> None:
    cts = [sweep.pop(slot) for slot in entry.outputs]
    if all(ct is None for ct in cts):
        return
    _refuse_unknown(entry)
    rule = entry.rule
    assert type(rule) is LocalRule
    given = [_dense(sweep, cts[n], entry.outputs[n], rule.graph.outputs[n]) for n in rule.moving]
    slopes = sweep.applied(rule.pull, entry, given, (*entry.inputs, *entry.outputs))
    for n, slope in zip(rule.wrt, slopes):
        sweep.add(entry.inputs[n], slope)


def _dense(sweep: _Sweep, ct: Any, slot: Slot, value: Any) -> Any:
    if ct is not None:
        return ct
    return np.zeros(value.shape, value.dtype) if slot is None else sweep.zeros(slot)


def _pull_read(sweep: _Sweep, entry: Taking) -> None:
    ct = sweep.pop(entry.output)
    if ct is None:
        return
    if entry.place is None:
        sweep.add(entry.source, ct)
    else:
        entry.place.add(sweep.owned(entry.source), ct)


def _pull_write(sweep: _Sweep, entry: Replacement) -> None:
    if entry.output not in sweep.known:
        return
    whole = sweep.owned(entry.output)
    if entry.value is not None:
        part = entry.place.take(whole)
        if entry.adds < 0:
            part = -part
        elif not entry.adds and (last := entry.place.last_written(sweep.tape.kinds[entry.output].shape)) is not None:
            part = part * last
        sweep.add(entry.value, sweep.like(part, entry.value))
    sweep.pop(entry.output)
    if entry.before is None:
        return
    if not entry.adds:
        entry.place.put(whole, 0)
    if entry.before in sweep.known:
        sweep.add(entry.before, whole)
    else:
        sweep.known[entry.before] = whole
        sweep.own.add(entry.before)


def _pull_custom(sweep: _Sweep, entry: RuledEntry) -> None:
    cts = [sweep.pop(slot) for slot in entry.outputs]
    if all(ct is None for ct in cts):
        return
    for slot, ct in zip(entry.inputs, entry.pull(cts, sweep.is_recorded), strict=True):
        sweep.add(slot, ct)


def pushed(tape: Tape, part: slice, tangents: Mapping[int, Any], wanted: Sequence[Slot], is_recorded: bool) -> list[Any]:
    """Tangents of values, given those of others; None where there is none."""
    sweep = _Sweep(tape, is_recorded)
    sweep.known.update(tangents)
    with np.errstate(all="ignore"):
        for entry in tape.entries[part]:
            _PUSH[type(entry)](sweep, entry)
    return [None if slot is None else sweep.known.get(slot) for slot in wanted]


def _push_operation(sweep: _Sweep, entry: Operation) -> None:
    if not any(slot in sweep.known for slot in entry.inputs):
        return
    _refuse_unknown(entry)
    rule = entry.rule
    assert type(rule) is LocalRule
    given = []
    for n in rule.wrt:
        slot = entry.inputs[n]
        assert slot is not None
        given.append(sweep.known[slot] if slot in sweep.known else sweep.zeros(slot))
    moved = sweep.applied(rule.push, entry, given, entry.inputs)
    for slot, tangent in zip(entry.outputs, moved):
        if slot is not None:
            sweep.known[slot] = tangent


def _push_read(sweep: _Sweep, entry: Taking) -> None:
    if entry.source in sweep.known:
        place = entry.place
        sweep.known[entry.output] = sweep.known[entry.source] if place is None else place.take(sweep.owned(entry.source))


def _push_write(sweep: _Sweep, entry: Replacement) -> None:
    if entry.before not in sweep.known and entry.value not in sweep.known:
        return
    whole = sweep.zeros(entry.output)
    if entry.before is not None and entry.before in sweep.known:
        whole[...] = sweep.known[entry.before]
    part = 0 if entry.value is None else sweep.known.get(entry.value, 0)
    if entry.adds:
        entry.place.add(whole, part * entry.adds)
    else:
        entry.place.put(whole, part)
    sweep.known[entry.output] = whole
    sweep.own.add(entry.output)


def _push_custom(sweep: _Sweep, entry: RuledEntry) -> None:
    tangents = [None if slot is None else sweep.known.get(slot) for slot in entry.inputs]
    if all(t is None for t in tangents):
        return
    for slot, tangent in zip(entry.outputs, entry.push(tangents, sweep.is_recorded), strict=True):
        if slot is not None and tangent is not None:
            sweep.known[slot] = tangent


_PULL: dict[type, Callable[[_Sweep, Any], None]] = {
    Operation: _pull_operation, Taking: _pull_read, Replacement: _pull_write, RuledEntry: _pull_custom,
}  # fmt: skip
_PUSH: dict[type, Callable[[_Sweep, Any], None]] = {
    Operation: _push_operation, Taking: _push_read, Replacement: _push_write, RuledEntry: _push_custom,
}  # fmt: skip
