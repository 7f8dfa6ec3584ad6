"""Joins: what is handed out by a region of two branches?

`Merge`: where their ends differ, results, and beside them what those may be.

What both end with is left alone. Numbers of two types become one that holds either, a name that one branch leaves unbound goes on
with the truth of its being there, and arrays get new memory; which arrays they may be is up to `join_aliases.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, NoReturn

from jitml.ir import ops
from jitml.ir.dims import syms_in
from jitml.ir.graph import Value
from jitml.trace.record.recording import active_trace
from jitml.trace.regions.cond import conditional
from jitml.trace.regions.join_aliases import AliasFork, AliasJoin, AliasView, Output
from jitml.trace.rewrite.driver_protocol import OURS, UNDEF
from jitml.trace.speculation.modes import decisions
from jitml.trace.storage.storage import Storage
from jitml.trace.symbolic.booleans import Truth, choose
from jitml.trace.values.aliases import either
from jitml.trace.values.boxing import TracedArray, read
from jitml.trace.values.container_identity import HandedOut, find
from jitml.trace.values.kinds import (
    FLAG,
    HeldValue,
    Kind,
    by_leaves,
    is_filled,
    kind_of,
    same,
    take_all_apart,
    take_apart,
    told,
    widest,
)
from jitml.trace.values.numbers import TracedNumber
from jitml.trace.values.open_names import may_be_apart, may_be_unbound, open_name, parts
from jitml.trace.values.ragged import SIZE, RaggedKind, ragged
from jitml.trace.values.type_unions import Doubts, doubt, doubt_of, is_exact, is_of, own_type, same_value, types_of

Finish = Callable[[], Any]  # makes what a name holds once the results are there


class Merge:
    """Of the ends of a fork's sides.

    changed: ids of what the sides change, which holds again what it held before.
    outputs: what the region hands out. twins: of views that the sides end with. views: of results that have another name.
    lists: those that loops of the sides have filled.
    """

    def __init__(self, fork: AliasFork, changed: Collection[int]) -> None:
        self.fork = fork
        self.changed = changed
        self.handing = HandedOut(fork.decider, [side.body.trace for side in fork.sides.values()])
        self.outputs: list[Output] = []
        self.twins: dict[tuple[int, int], TracedArray] = {}
        self.views: list[AliasView] = []
        self.lists: set[int] = set()

    def name(self, name: str, a: Any, b: Any) -> Finish:
        """Of a name that is one thing in one branch and another one, perhaps, in the other."""
        if same(a, b):
            return lambda: self._one_of(a, b)
        if self.changed and not find((a, b)).keys().isdisjoint(self.changed):
            text = "a list, a dict or an object that a name comes to hold under a traced condition is changed there"
            self.fork.give_up(text, "Change it outside of the branch, or make a copy.")
        if name.startswith(OURS):
            return self._bound(name, a, b)
        is_open = may_be_unbound(a) or may_be_unbound(b)
        if (a is UNDEF or b is UNDEF) and not is_open and not decisions().wants(name, self.fork.site):
            return lambda: UNDEF
        ends = [self._in(branch, partial(parts, x)) for branch, x in ((True, a), (False, b))]
        if may_be_apart(name, a, b):
            ends = [(UNDEF, bound, False) if value is None else (value, bound, there) for value, bound, there in ends]
        (a, *mine), (b, *others) = ends
        made, (bound, there) = self._bound(name, a, b), map(self._truth, mine, others)
        return lambda: open_name(name, made(), bound(), there(), self.fork.decider)

    def _in(self, branch: bool, ask: Callable[[], Any]) -> Any:
        """What a branch can tell."""
        body = self.fork.sides[branch].body
        body.resume()
        found = ask()
        body.suspend()
        return found

    def _truth(self, x: Truth, y: Truth) -> Callable[[], Truth]:
        """A function that tells, after both branches, what each of them tells at its end."""
        trace = active_trace()
        if all(isinstance(end, bool) or trace.sees(end) for end in (x, y)):
            return lambda: choose(self.fork.test, x, y)
        then, orelse = (end if isinstance(end, bool) else TracedNumber.of_value(trace, end) for end in (x, y))
        output = self._output(FLAG, (then, orelse))
        return lambda: read(output.result)

    def _output(self, kind: Kind, leaves: tuple[Any, Any], **more: Any) -> Output:
        self.outputs.append(Output(kind, leaves, **more))
        return self.outputs[-1]

    def _bound(self, name: str, a: Any, b: Any) -> Finish:
        """Of what the name holds where it is bound."""
        if same(a, b):
            return lambda: self._one_of(a, b)
        if a is UNDEF or b is UNDEF:
            held = self._new(name, a, b)
            xs, ys = (held.leaves if x is not UNDEF else (UNDEF,) * len(held.leaves) for x in (a, b))
            return self._handed(name, (b if a is UNDEF else a,), self._leaves(name, held, xs, ys))
        one, other = take_apart(a), take_apart(b)
        if one.spec != other.spec:
            self._refuse(name, a, b)
        return self._handed(name, (a, b), self._leaves(name, one, one.leaves, other.leaves))

    def _handed(self, name: str, ends: tuple[Any, ...], finish: Finish) -> Finish:
        """What a name holds, which may be one of the containers that it holds in the branches."""
        others = [value for side in self.fork.sides.values() for key, value in side.ends.items() if key != name]
        return lambda: self.handing.hand_out(name, finish(), ends, others)

    def _new(self, name: str, a: Any, b: Any) -> HeldValue:
        """What the name holds that only one branch binds; a list that a loop of that branch has filled comes out as a new one."""
        present = b if a is UNDEF else a
        if not is_filled(present) or not any(side.body.has_made([present]) for side in self.fork.sides.values()):
            return take_apart(present)
        if id(present) in self.lists:
            self.fork.give_up(f"after a branch on a traced condition {name} is a list that has another name, too", "Make a copy.")
        self.lists.add(id(present))
        return take_all_apart(present)

    def _leaves(self, name: str, held: HeldValue, xs: Sequence[Any], ys: Sequence[Any]) -> Finish:
        made = [self._merge_leaf(name, kind, x, y) for kind, x, y in zip(held.kinds, xs, ys)]
        return lambda: held.rebuild([output.result for output in made])

    def _merge_leaf(self, name: str, kind: Kind | None, x: Any, y: Any) -> Output | AliasView:
        if same(x, y):
            return Output(None, (x, y), self._one_of(x, y))
        missing, is_none = x is UNDEF or y is UNDEF, x is None or y is None
        present = y if x is UNDEF else x
        if missing and not name.startswith("__jm_") and self._is_outer(present):
            return Output(None, (x, y), present)  # where the name is bound at all, it is that very array
        known = next((output for output in self.outputs if output.takes(x, y)), None)
        if known is not None:
            return known if known.is_very(x, y) else self._view(known, x, y)
        kinds = [k for k in (kind_of(x), kind_of(y)) if k is not None]
        wide = ragged(kinds, active_trace(), is_complete=not missing) if kinds and not is_none else None
        if wide is not None:
            return self._ragged(wide, x, y)
        if missing and kind is None:
            return Output(None, (x, y), present)  # an object beside nothing
        common = kind if missing else None
        if len(kinds) == 2:
            common = widest(kinds[0], kinds[1], (x, y))
            if common is not None and kinds[0] != kinds[1]:
                decisions().widened.add(self.fork.site)
        elif is_none and kinds and kinds[0].form != "array":  # a number, or None
            common = kinds[0]
        if common is None:
            self._refuse(name, x, y)
        if not _is_known(common):
            self._refuse_size(name, common)
        return self._output(common, (x, y), types=self._types(common, x, y))

    def _ragged(self, wide: RaggedKind, x: Any, y: Any) -> Output:
        """Of two arrays of unknown sizes. What has the same sizes in both branches has the same after them."""
        sizes = [wide.sizes(leaf) if leaf is not UNDEF else [UNDEF] * len(wide.axes) for leaf in (x, y)]
        extents = []
        for pair in zip(*sizes):
            found = next((o for o in self.outputs if o.kind is SIZE and all(map(same, o.leaves, pair))), None)
            extents.append(self._output(SIZE, pair) if found is None else found)
        return self._output(wide, (x, y), extents=extents)

    def _one_of(self, x: Any, y: Any) -> Any:
        """What is the same in both branches; of two views of one array, it is one or the other object."""
        return by_leaves(x, y, self._one_leaf_of)

    def _one_leaf_of(self, x: Any, y: Any) -> Any:
        if x is y or type(x) is not TracedArray:
            return x
        if (id(x), id(y)) not in self.twins:
            self.twins[id(x), id(y)] = either(x, y, self.fork.decider)
        return self.twins[id(x), id(y)]

    def _view(self, known: Output, x: Any, y: Any) -> AliasView:
        """Of another name for a result, which is not the very object on both sides."""
        others = [view for view in self.views if view.of is known]
        view = next((view for view in others if view.leaves[0] is x and view.leaves[1] is y), None)
        if view is None:
            before: list[Output | AliasView] = [known, *others]
            partners = [p for p in before if any(a is b is not UNDEF for a, b in zip(p.leaves, (x, y)))]
            view = AliasView(known, (x, y), self.fork.decider, partners)
            self.views.append(view)
        return view

    def _refuse(self, name: str, a: Any, b: Any) -> NoReturn:
        self.fork.give_up(
            f"after a branch on a traced condition {_subject(name)} {told(a)} or {told(b)}",
            "Write a number for none, -1 or np.nan, or keep a flag beside it."
            if {True, False} == {x is None for x in (a, b)} and all(x is None or own_type(x) is not None for x in (a, b))
            else "Give both branches values of one type: arrays of the same shape and dtype, or numbers.",
        )

    def _refuse_size(self, name: str, kind: Kind) -> NoReturn:
        self.fork.give_up(
            f"after a branch on a traced condition {_subject(name)} {kind.aval}, whose size only that branch knows",
            "Compute it before the branch, or use it inside.",
        )

    def _shown(self, output: Output, value: Value) -> Any:
        kind = output.kind
        assert kind is not None
        if type(kind) is RaggedKind:
            return kind.cut(value, [read(extent.result) for extent in output.extents])
        return kind.show(self._typed(output, value))

    def _types(self, kind: Kind, x: Any, y: Any) -> dict[type, Callable[[], Truth]]:
        """Which other types the result may have, and what tells after both branches whether it has."""
        types = {t for leaf in (x, y) for t in types_of(leaf)} - {kind.which}
        return {t: self._truth(self._is_of(True, x, t), self._is_of(False, y, t)) for t in types}

    def _is_of(self, branch: bool, leaf: Any, which: type) -> Truth:
        """Whether what a branch ends with is of a type, as the branch can tell."""
        if doubt_of(leaf) is None:
            return is_of(leaf, which)
        truth, test = self._in(branch, partial(is_of, leaf, which)), self.fork.test
        maker = active_trace().builder.maker(test)
        if truth is test:  # `x is None` has been asked
            return branch
        return not branch if maker is not None and maker.op is ops.bit_not and maker.inputs[0] is truth else truth

    def _typed(self, output: Output, value: Value) -> Value:
        """The result, which may stand for numbers of other types."""
        if not output.types and value not in active_trace().call[Doubts]:
            return value
        value = same_value(value)  # it may be one from before the branch, of which something else is open
        cases = {which: tell() for which, tell in output.types.items()}
        exact = {which for which in cases if all(is_exact(leaf, which, value.dtype) for leaf in output.leaves)}
        inner = next((d for d in map(doubt_of, output.leaves) if d is not None), None)
        is_inner = inner is not None and len({own_type(leaf) for leaf in output.leaves}) == 1
        decider = inner.decider if inner is not None and is_inner else self.fork.decider
        doubt(value, cases, decider, exact, is_strict=self.fork.is_strict)
        return value

    def _is_outer(self, leaf: Any) -> bool:
        """Whether it is an array from outside the branches, seen through nothing that they have computed."""
        if type(leaf) is not TracedArray or self.fork.is_made_here(leaf):
            return False
        trace = active_trace()
        params = tuple(param for step in leaf.steps for param in step.params.values())
        numbers = [trace.sizes.values[sym] for sym in {*leaf.aval.syms, *syms_in(params)}]
        return all(map(trace.sees, (*numbers, *(start for step in leaf.steps for start in step.starts))))

    def emit(self, storages: Sequence[Storage]) -> None:
        """Record the region: its results are there, and storages are written."""
        sharing = AliasJoin(self.fork, self.outputs)
        outputs, sides = sharing.outputs, self.fork.sides
        ends: dict[bool, list[Value]] = {}
        for branch, side in sides.items():
            side.body.resume()
            ends[branch] = [_end(output, 0 if branch else 1) for output in outputs]
            ends[branch] += [storage.load() for storage in storages]
            side.body.suspend()
        results = conditional(self.fork.test, sides[True].body, sides[False].body, ends[True], ends[False])
        for output, value in sorted(zip(outputs, results), key=lambda pair: pair[0].is_ragged):  # sizes come first
            output.result = self._shown(output, value)
        sharing.finish()
        for storage, value in zip(storages, results[len(outputs) :]):
            storage.store(value)


def _end(output: Output, which: int) -> Value:
    leaf, kind = output.leaves[which], output.kind
    assert kind is not None
    if leaf is UNDEF or leaf is None:  # not bound here, and not read where it is not; or no number
        return ops.full(value=0, shape=kind.aval.shape, dtype=kind.aval.dtype)
    return kind.take(leaf)


def _is_known(kind: Kind) -> bool:
    """Whether the sizes of such an array are known outside the branches."""
    trace = active_trace()
    return all(trace.sees(trace.sizes.values[sym]) for sym in kind.aval.syms)


def _subject(name: str) -> str:
    if not name.startswith("__jm_"):
        return f"{name} is"
    return "the function returns" if name == "__jm_value__" else "the value is"


__all__ = ["Merge"]
