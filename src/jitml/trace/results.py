"""Result recipes: how does a call make what the function returns?

`describe`: a recipe for each leaf, and the graph's outputs for it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any

import numpy as np
import optree

from jitml.errors import UnsupportedError
from jitml.ir import ops
from jitml.ir.dims import Sym, syms_in
from jitml.ir.graph import Graph, Value
from jitml.records import dataclass, field
from jitml.trace.environment.value_classification import is_librarys_code
from jitml.trace.host_calls.generators import TracedGenerator
from jitml.trace.record.escape_analysis import require_untraced
from jitml.trace.record.guards import IMMUTABLE, Slot
from jitml.trace.record.pytree import flatten
from jitml.trace.record.recording import Trace, unsupported, user_source
from jitml.trace.storage.index_maps import Step
from jitml.trace.storage.storage import APART, AliasOrigin, Storage
from jitml.trace.storage.strides import invert, memory_order
from jitml.trace.symbolic.booleans import Truth, all_of, any_of, as_value, negated
from jitml.trace.traced import Either, FixedResult, FromGraph, FromHost, Repeated, Result
from jitml.trace.values.aliases import others, require_told_apart, storages_of
from jitml.trace.values.array_writes import is_writeable
from jitml.trace.values.boxing import LiftedArrays, TracedArray, TracedScalar, read, require_one
from jitml.trace.values.kinds import value_if_any
from jitml.trace.values.numbers import TracedNumber
from jitml.trace.values.type_unions import NONE, doubt_of, is_pythons, typed_value


class Itself:
    """Stands, among what a function returns or keeps, for the caller's own container of which it has got a copy."""

    __slots__ = ("slot",)

    def __init__(self, slot: Slot) -> None:
        self.slot = slot


def describe(
    recording: Trace, leaves: Sequence[Any], outputs: list[Value], refusing: Callable[[int], AbstractContextManager[None]]
) -> tuple[Result, ...]:
    """How each returned leaf is made; fills the graph's outputs. What is returned twice has one recipe.

    Args:
        refusing: goes around what is done for the leaf of this number.
    """
    distinct = {id(leaf): leaf for leaf in leaves}
    first = {id(leaf): n for n, leaf in reversed([*enumerate(leaves)])}
    arrays = [leaf for leaf in distinct.values() if type(leaf) is TracedArray]
    bases = {leaf.storage: leaf for leaf in reversed(arrays) if not leaf.steps}
    uses = Counter(id(s) for leaf in arrays for s in storages_of(leaf.storage))
    results = Results(recording, outputs, uses, bases, [leaf for leaf in arrays if not leaf.storage.is_external])
    made: dict[int, Result] = {}
    for key, leaf in distinct.items():
        with refusing(first[key]):
            made[key] = results.describe(leaf)
    given = [array for array in recording.call[LiftedArrays].known.values() if id(array) not in distinct]
    objects = [[x, *results.seen.get(id(x), ())] for x in (*arrays, *given) if x.faces is not None or id(x) in results.seen]
    for one, other in itertools.combinations(objects, 2):
        require_told_apart(itertools.product(one, other))
    return tuple(made[id(leaf)] for leaf in leaves)


def told_by_flags(results: Sequence[Result], spec: optree.PyTreeSpec, graph: Graph) -> list[str]:
    """The returned numbers that may be of several types, or None, a line each; `spec` is the structure of what is returned."""
    lines = []
    for path, result in zip(spec.paths(), results[len(results) - spec.num_leaves :]):
        types = [_type_name(case, graph) for case in _cases(result)]
        if len({*types}) > 1 and None not in types:
            lines.append(f"result{''.join(f'[{key!r}]' for key in path)} is {' or '.join(map(str, dict.fromkeys(types)))}")
    return lines


def _cases(result: Result) -> list[Result]:
    return [*_cases(result.then), *_cases(result.orelse)] if isinstance(result, Either) else [result]


def _type_name(result: Result, graph: Graph) -> str | None:
    """The type of a number, or None's; None of what is neither."""
    if isinstance(result, FixedResult):
        return repr(result.value) if result.value is None else type(result.value).__name__
    if not isinstance(result, FromGraph) or result.kind is np.ndarray:
        return None
    return f"np.{graph.outputs[result.position].dtype}" if result.kind is np.generic else result.kind.__name__


@dataclass
class Results:
    """The graph's outputs, as they are filled.

    uses: how many leaves may be of a storage. `placed`: where that is handed out as a whole, `wholes`: what makes that.
    bases: the object that a storage was made as; others on all of it are views.
    own: the arrays among the leaves that may be memory of the function's own.
    arrays: what makes each array object, by `id`; several leaves may be one of them. `seen`: those that a leaf may be
    besides its own memory.
    """

    recording: Trace
    outputs: list[Value]
    uses: Counter[int]
    bases: dict[Storage, TracedArray]
    own: Sequence[TracedArray]
    placed: dict[Storage, int] = field(default_factory=dict)
    wholes: dict[Storage, FromGraph] = field(default_factory=dict)
    arrays: dict[int, tuple[TracedArray, FromGraph | FromHost]] = field(default_factory=dict)
    seen: dict[int, list[TracedArray]] = field(default_factory=dict)

    def describe(self, leaf: Any) -> Result:
        kind = type(leaf)
        if kind is TracedNumber and leaf.slot is not None:
            leaf._check_alive()
            return FromHost(leaf.slot)
        if kind is Itself:
            return FromHost(leaf.slot)
        if kind is Repeated:
            return leaf
        if kind is TracedNumber or kind is TracedScalar:
            return self._number(leaf)
        if kind is TracedGenerator and leaf.slot is not None:
            return FromHost(leaf.slot)
        if kind is not TracedArray:
            return _describe_object(self.recording, leaf)
        leaf.storage.load()  # refuses a tracer that has leaked
        return self._array(leaf) if leaf.storage.is_external else self._one_of(leaf)

    def _array(self, leaf: TracedArray) -> FromGraph | FromHost:
        """An array object that is certain."""
        if id(leaf) not in self.arrays:
            self.arrays[id(leaf)] = leaf, self._external(leaf) if leaf.storage.is_external else self._made(leaf)
        return self.arrays[id(leaf)][1]

    def _number(self, leaf: TracedNumber | TracedScalar) -> FromGraph | Either:
        """A number of Python's or NumPy's; which of the two, the program may have to say."""
        whole = value_if_any(leaf)
        self.outputs.append(whole)
        own = len(self.outputs) - 1
        result: FromGraph | Either = FromGraph(own, leaf.kind if type(leaf) is TracedNumber else np.generic)
        found = doubt_of(leaf)
        for which, test in found.cases.items() if found is not None else ():
            assert found is not None
            if which is NONE:
                continue
            value = typed_value(whole, which, test, exact=which in found.exact)
            place = own if value is whole else len(self.outputs)
            self.outputs += [] if place == own else [value]
            result = self._either(test, FromGraph(place, which if is_pythons(which) else np.generic), result)
        return result if found is None or NONE not in found.cases else self._either(found.cases[NONE], FixedResult(None), result)

    def _either(self, test: Truth, then: Result, orelse: Result) -> Either:
        """One result where the truth holds, else another one."""
        self.outputs.append(as_value(test))
        return Either(len(self.outputs) - 1, then, orelse)

    def _external(self, leaf: TracedArray) -> FromHost:
        """The caller's array itself or a view of it: NumPy takes the view of it after the call."""
        _require_view(leaf)
        if leaf.slot is not None:
            require_one(leaf)
            return FromHost(leaf.slot, (), is_writeable(leaf))
        return FromHost(leaf.storage.slot, leaf.steps, is_writeable(leaf), itself=False)

    def _one_of(self, leaf: TracedArray) -> Result:
        """An array that may be another one, as the first case that holds says, or else is one that the function made itself."""
        leaf.storage.require_apart(self.uses)
        cases = [case for test, origin in others(leaf) for case in self._there(test, origin, leaf)]
        while cases and cases[-1][1] is leaf:
            cases.pop()
        certain = next((other for test, other in cases if test is True), leaf)
        result: Result = self._array(certain)
        for test, other in reversed(cases):
            if test is not True:
                result = self._either(test, self._array(other), result)
        return result

    def _there(self, test: Truth, origin: AliasOrigin, leaf: TracedArray) -> list[tuple[Truth, TracedArray]]:
        """What a leaf is in one case: its own memory if nobody else has that."""
        storage = origin.storage()
        if storage is None:
            return [*self._heirs(test, origin, leaf), (test, leaf)]
        if not (storage.is_external or self.uses[id(storage)] > 1):
            return [(test, leaf)]
        array = origin.array()
        seen = self._seen(storage, origin, leaf) if array is None else array
        self.seen.setdefault(id(leaf), []).append(seen)
        return [(test, seen)]

    def _seen(self, storage: Storage, origin: AliasOrigin, leaf: TracedArray) -> TracedArray:
        """An object of which nothing is left but how it shows a storage."""
        there = (a for others in self.seen.values() for a in others if a.storage is storage and a.faces == origin.faces)
        # One object may be a view of this or that part: it is one and the same only where it shows the same.
        known = next((a for a in there if a.steps == origin.steps), None) if origin.faces[1] is None else None
        if known is not None:
            return known
        made = TracedArray(storage, origin.steps, leaf.aval, leaf.layout, origin.writeable)
        made.faces = origin.faces
        return made

    def _heirs(self, test: Truth, origin: AliasOrigin, leaf: TracedArray) -> Iterator[tuple[Truth, TracedArray]]:
        """The leaves before this one that are the same, if they are, of an array that has no name of its own any more."""
        for heir in itertools.takewhile(lambda other: other is not leaf, self.own):
            if heir.storage is leaf.storage:
                continue
            missed: list[Truth] = []
            for other_test, other in others(heir):
                if other.storage() is None and not other.serials.isdisjoint(origin.serials):
                    if other.steps != origin.steps or other.faces != origin.faces or origin.faces[1] is not None:
                        for rival in (*heir.storage.rivals, *leaf.storage.rivals):
                            rival.decider.refuse(*APART)
                        unsupported(*APART)
                    yield all_of(test, other_test, negated(any_of(*missed))), heir
                missed.append(other_test)

    def _made(self, leaf: TracedArray) -> FromGraph:
        """Of an array that the function made itself."""
        storage = leaf.storage
        if self.uses[id(storage)] == 1:
            value, steps = _in_memory_order(read(leaf), leaf.layout)
            self.outputs.append(value)
            return FromGraph(len(self.outputs) - 1, np.ndarray, steps, is_writeable(leaf))
        _require_view(leaf)
        value, steps = _in_memory_order(storage.value, storage.strides)
        if storage not in self.placed:
            self.placed[storage] = len(self.outputs)
            self.outputs.append(value)
        is_itself = not leaf.steps and self.bases.setdefault(storage, leaf) is leaf
        result = FromGraph(self.placed[storage], np.ndarray, (*steps, *leaf.steps), is_writeable(leaf), is_itself)
        return self.wholes.setdefault(storage, result) if is_itself else result


def _require_view(leaf: TracedArray) -> None:
    if any(step.op is ops.gather and step.starts for step in leaf.steps):
        unsupported("a view is returned whose elements overlap, or with a step that only the run knows", "Return a copy of it.")


def _in_memory_order(value: Value, strides: Sequence[Any]) -> tuple[Value, tuple[Step, ...]]:
    """A result with its axes in the order in which NumPy's lie in memory, and the step that shows it as it should be."""
    axes = memory_order(value.shape, strides)
    if axes is None:
        return value, ()
    ordered = ops.transpose(value, perm=axes)
    return ordered, (Step(ops.transpose, {"perm": invert(axes)}, ordered.aval),)


_CONSTANTS = (bool, int, float, complex, str, bytes, np.generic, np.dtype, type, Enum, range, type(...), *IMMUTABLE)


def _is_constant(leaf: Any) -> bool:
    return isinstance(leaf, _CONSTANTS) or (type(leaf) is frozenset and all(map(_is_constant, leaf)))


def _describe_object(recording: Trace, leaf: Any) -> Result:
    for slot, argument in recording.outside.objects.items():
        if argument is leaf:
            return FromHost(slot)
    if id(leaf) in recording.outside.places and not isinstance(leaf, _CONSTANTS):
        return FromHost(recording.outside.places[id(leaf)])
    kept = [key for key, value in recording.changes.stored.items() if any(leaf is x for x in flatten(value)[0])]
    what = f"{recording.host.name(recording.outside.places[kept[0][0]])}.{kept[0][1]} becomes" if kept else "the function returns"
    if _is_constant(leaf) or is_librarys_code(leaf):
        require_untraced(leaf, what)
        return FixedResult(leaf)
    kind: Any = type(leaf)
    raise UnsupportedError(
        f"{what} a {f'{kind.__module__}.'.removeprefix('builtins.')}{kind.__qualname__}, which cannot be compiled",
        source=user_source(),
        remedy=f"{'Keep' if kept else 'Return'} arrays, numbers, strings, and tuples, lists, dicts and dataclasses of them.",
    )


def _steps(result: Result) -> tuple[Step, ...]:
    match result:
        case Either(_, then, orelse):
            return _steps(then) + _steps(orelse)
        case FixedResult() | Repeated():
            return ()
        case _:
            return result.steps


def place_numbers(recording: Trace, results: Sequence[Result], outputs: list[Value]) -> dict[Sym | Value, int]:
    """Further outputs: sizes and places of the views that NumPy takes of results, where only the run tells them."""
    steps = [step for result in results for step in _steps(result)]
    wanted: list[Sym | Value] = [*syms_in(tuple(param for step in steps for param in step.params.values()))]
    wanted += [start for step in steps for start in step.starts]
    numbers: dict[Sym | Value, int] = {}
    for wish in dict.fromkeys(wanted):
        numbers[wish] = len(outputs)
        outputs.append(recording.sizes.values[wish] if isinstance(wish, Sym) else wish)
    return numbers
