"""Tracing: what does a function compute for arguments like these?  `trace` runs it once on tracers and hands back a `Traced`.

A `Traced` is all that the layers below and the dispatcher need: the graph, the host program that feeds it, which
outputs land in the caller's arrays, and a recipe for what the call returns. Tracing is repeated until nothing has to be decided
otherwise (`modes.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import GeneratorType
from typing import Any

import numpy as np
import optree

from jitml.device.array import Array
from jitml.errors import FailedCheck, JitmlError, MoreIterations, UnsupportedError, take_places_from
from jitml.interrupts import pass_on, pass_on_what_it_hides
from jitml.ir import ops
from jitml.ir.capacity import learn
from jitml.ir.graph import Value
from jitml.ir.run_state import keeping_made
from jitml.process import fewer_collections
from jitml.records import replace
from jitml.trace.effects.write_back import changes_of, check_sealed, watch_arguments
from jitml.trace.environment.arguments import check_containers, enter_all, parameters, require_few
from jitml.trace.environment.guarded_loads import require_all_different
from jitml.trace.environment.snapshot import ChangedOutside, Snapshot, unchanged, undo
from jitml.trace.environment.unseen_reads import require_unchanged
from jitml.trace.hooks.convert import convert
from jitml.trace.host_calls.rules import HostCallRules
from jitml.trace.record.array_memory import all_disjoint, disjoint, meets_itself
from jitml.trace.record.device_arrays import ProgramDevice
from jitml.trace.record.fp_errors import recorded_errors, require_left
from jitml.trace.record.guards import Slot
from jitml.trace.record.pytree import flatten, is_nested, leaf_names, unflatten
from jitml.trace.record.recording import Trace, activate, last_user_source, user_source
from jitml.trace.record.user_code import about, begins_traces, stack_of, user_stack
from jitml.trace.refusal_causes import cause_of_room
from jitml.trace.result_trees import Settled, apart, require_rows_apart, settled
from jitml.trace.results import describe, place_numbers
from jitml.trace.returned_names import ReturnStatement
from jitml.trace.rewrite.driver_protocol import HOOKS, OpenType, Restart
from jitml.trace.speculation.dynamic_shapes import VariantKey
from jitml.trace.speculation.limits import NO_LIMITS, TraceLimits
from jitml.trace.speculation.modes import Decisions, OpenRegions, is_ours
from jitml.trace.speculation.paths import Decided, path_of
from jitml.trace.storage.storage import LentStorages, Storage
from jitml.trace.storage.strides import is_contiguous
from jitml.trace.traced import Traced
from jitml.trace.values.boxing import LiftedArrays, is_traced, lift
from jitml.trace.values.registry import REGISTRY
from jitml.trace.values.tracer_operators import install_operators
from jitml.trace.values.type_unions import require_type_known

install_operators()
_ANY = VariantKey()
_MOST_OTHERS = 3  # changes by others, finalizers say, while a function is traced


def trace(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    key: VariantKey = _ANY,
    *,
    host_calls: bool = True,
    rooted: bool = False,
    limits: TraceLimits = NO_LIMITS,
    exchanged: Collection[str] = (),
) -> Traced:
    """Run `function` on tracers standing for the arguments.

    Exceptions of the user's code come out as they are; no code of the function's that is converted has changed anything then.

    Args:
        key: what is known of this call's conditions, and sizes that are not taken for what they are in it (`dynamic_shapes.py`).
        host_calls: whether functions that are not compiled may be called by the compiled program.
        rooted: whether calls hand in `(args, kwargs)` behind the flattened arguments, if these are nested (`is_nested`), so that
            the containers among them can be changed.
        limits: of the program, tighter than those of the environment.
        exchanged: numbers and objects from outside, as the host program names them, that are others in other calls.

    Raises:
        UnsupportedError: the function does something that cannot be compiled.
        FailedCheck: the function has raised something, but the program would have left this call to NumPy before.
    """
    REGISTRY.register_imported()
    require_few(function, args, dict(kwargs))
    known = Decisions(key.path.modes, key.path.peeled, key.path.recursive, limits)
    known.moving.update(exchanged)
    roots = [(function, "the function"), (args, "arguments"), (kwargs, "arguments")]
    before, others = Snapshot(roots), 0
    attempt = partial(_attempt, function, args, kwargs, key, known, host_calls, rooted)
    while True:
        try:
            with unchanged(before), fewer_collections():
                traced = attempt()
        except Restart as restart:
            pass_on_what_it_hides(restart)
            continue
        except ChangedOutside as error:
            undo(error, before, attempt)
            before, others = Snapshot(roots), others + 1
            if others == _MOST_OTHERS:
                raise
            continue
        except Exception as error:
            pass_on(error)
            if isinstance(error, JitmlError):
                pass_on_what_it_hides(error)
            if known.exhausted is not None and error is not known.exhausted:
                raise known.exhausted from error
            if known.restart is not None or known.settle_place(error) or (not is_ours(error) and known.settle_sides()):
                continue
            if known.answered_otherwise and not is_ours(error):
                raise FailedCheck("a claim of the program fails in the call that it is traced for") from error
            if not isinstance(error, MoreIterations):
                raise
            learn(error)  # of what is computed while it is traced
            continue
        if known.exhausted is not None:  # no `except` of the user's can prevent it
            raise known.exhausted
        if known.restart is None:
            return traced


def _attempt(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    key: VariantKey,
    known: Decisions,
    host_calls: bool,
    rooted: bool,
) -> Traced:
    """Trace once, with what earlier attempts have taught.

    Raises:
        Restart: this one has taught something, too.
    """
    leaves, spec = flatten((args, dict(kwargs)))
    names = leaf_names(spec, parameters(function, args))
    recording = Trace()
    recording.call[HostCallRules] = HostCallRules(allowed=host_calls)
    recording.inputs.opened = key.opened
    recording.call[Decisions], recording.call[Decided] = known, Decided(key.path)
    known.begin(recording.effort)
    returned = ReturnStatement(function, args)
    with _explained(recording), activate(recording), keeping_made(), recorded_errors():
        tracers = enter_all(recording, leaves, names)
        traced_args, traced_kwargs = unflatten(spec, tracers)
        rooted = rooted and is_nested(spec)
        if rooted:
            given, copied = (args, dict(kwargs)), (traced_args, traced_kwargs)
            root = recording.host.argument(len(leaves), "arguments")
            traced_args, traced_kwargs = watch_arguments(recording, root, given, copied, parameters(function, args))
            leaves = [*leaves, given]
        try:
            result = convert(function)(*traced_args, **traced_kwargs)
        except OpenType as error:
            require_type_known(error.number)
        except Restart as restart:
            _end_generators(restart)
            raise
        except Exception as error:
            _end_generators(error)
            known.reconsider(recording, error)
            known.settle_open(recording, error)
            raise
        if recording.call[OpenRegions]:
            caught = UnsupportedError("an exception that leaves a captured region is caught")
            known.reconsider(recording, caught)
            known.settle_open(recording, caught)
        with returned.part():
            require_left(recording)
            check_sealed(recording)
            if not rooted:
                check_containers((args, kwargs), (traced_args, traced_kwargs), tracers, spec)
            return _make_traced(recording, key, spec, result, returned)


ATTEMPT = _attempt.__code__  # the frame where a function begins to be traced
begins_traces(ATTEMPT)
take_places_from(user_stack, cause_of_room)


def _end_generators(error: BaseException) -> None:
    """Close the generators that frames of a failed attempt have made, as long as the hooks in those have a trace."""
    place = error.__traceback__
    while place is not None:
        for value in [*place.tb_frame.f_locals.values()]:
            if type(value) is GeneratorType and HOOKS in value.gi_code.co_freevars and not value.gi_running:
                try:
                    value.close()
                except Exception as raised:  # of an attempt that nobody will hear of
                    pass_on(raised)
        place = place.tb_next


@contextmanager
def _explained(recording: Trace) -> Iterator[None]:
    """Errors of ours say where in the user's code; endless recursion says why."""
    try:
        yield
    except JitmlError as error:
        error.source = error.source or last_user_source(error)
        error.stack = error.stack or stack_of(error)
        raise


def _make_traced(recording: Trace, key: VariantKey, in_spec: optree.PyTreeSpec, result: Any, returned: ReturnStatement) -> Traced:
    changes, changed = changes_of(recording)
    whole = (result, changed) if changes else result
    require_rows_apart(whole)
    known = Settled()
    for n, part in enumerate(result if type(result) is tuple else ()):
        with returned.part(n):
            settled(recording, part, known)
    tree, repeated = apart(settled(recording, whole, known))
    parts = [flatten(part) for part in (*repeated, tree)]
    specs = tuple(spec for _, spec in parts)
    leaves = [lift(leaf) if _is_concrete_array(leaf) else leaf for part, _ in parts for leaf in part]
    outputs: list[Value] = []
    results = describe(recording, leaves, outputs, partial(returned.leaf, recording, specs, changes))
    host = recording.host
    require_all_different(recording)
    mutated = [(slot, storage) for slot, _, storage in recording.call[LiftedArrays].written()]
    aliases: dict[int, int] = {}
    for slot, storage in mutated:
        host.require_writeable(slot)
        aliases[len(outputs)] = entry = recording.inputs.origins.index(storage.entry)
        flat = recording.builder.inputs[entry].shape
        outputs.append(storage.value if storage.value.shape == flat else ops.reshape(storage.value, shape=flat))
    numbers = place_numbers(recording, results, outputs)
    _require_disjoint(recording, mutated)
    strides = {
        recording.inputs.origins.index(tracer.storage.entry): tracer.storage.strides
        for slot, (_, tracer) in recording.call[LiftedArrays].inputs.items()
        if tracer.storage.entry == slot and not is_contiguous(tracer.sizes, tracer.storage.strides)
    }
    copied = tuple((slot, storage.entry) for slot, storage in mutated if storage.entry != slot)
    return Traced(
        recording.builder.build(outputs), host, tuple(recording.inputs.origins), aliases, strides, copied, numbers, in_spec,
        specs, results, tuple(changes), replace(key, path=path_of(recording)),
        recording.call[ProgramDevice].device, recording.call[Decisions].profile,
    )  # fmt: skip


def _is_concrete_array(x: Any) -> bool:
    kind: Any = type(x)
    return (isinstance(x, np.ndarray) and not is_traced(x)) or kind is Array


def _require_disjoint(recording: Trace, mutated: Sequence[tuple[Slot, Storage]]) -> None:
    """A written array must not overlap another: partial overlap would need NumPy's order of writes.

    Nor one of which a transform's function has written a copy.
    """
    host, arrays = recording.host, recording.call[LiftedArrays].inputs
    itself = {slot for slot, _ in mutated}
    written = [slot for slot, (_, tracer) in arrays.items() if slot in itself or tracer.storage in recording.call[LentStorages]]
    for slot in written:
        if slot in itself and meets_itself(arrays[slot][0]):
            with about(host.name(slot)):
                raise UnsupportedError(
                    f"{host.name(slot)} is written, and one element of its memory stands in several places of it",
                    source=user_source(),
                    remedy="Pass a copy.",
                )
        for other, (array, _) in arrays.items():
            if other != slot and not disjoint(arrays[slot][0], array):
                first, second = host.name(slot), host.name(other)
                with about(first):
                    raise UnsupportedError(
                        f"{first} is written and overlaps {second} in memory",
                        source=user_source(),
                        remedy=f"Pass {second}.copy(), or one array of which the function takes both parts.",
                    )
    require_unchanged(recording, {slot: arrays[slot][0] for slot in written})
    others = [slot for slot in arrays if slot not in written]
    if written and len(written) + len(others) > 1:
        host.require_disjoint(written, others, all_disjoint)
