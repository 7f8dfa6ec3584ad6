"""How does an `if` on a traced condition become a `cond` node?  Both branches are recorded from the same state, then merged.

What differs at their ends, names and storages that either writes, is a result of the region. A branch that ends with an exception
is never merged: a `check` claims that it is not taken, and where the claim fails the program's own Python says what happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from jitml.errors import UnsupportedError
from jitml.ir import ops
from jitml.ir.dims import syms_in
from jitml.ir.graph import Value
from jitml.trace.bodies import Body
from jitml.trace.conds import conditional
from jitml.trace.contents import iterators_among
from jitml.trace.context import active_trace, refuse, user_source
from jitml.trace.decisions import Decider, Site, decisions, is_ours, site
from jitml.trace.doubts import doubt, doubt_of, is_exact, is_of, own_type, types_of
from jitml.trace.drivers import OURS, UNDEF, Names, Values
from jitml.trace.names import FLAG, Held, Kind, join, kind_of, may_hold, same, take_apart, told, truth
from jitml.trace.numbers import TracedNumber
from jitml.trace.origins import one_of
from jitml.trace.ragged import SIZE, Ragged, ragged, widened
from jitml.trace.sharing import Output, Sharing, View
from jitml.trace.sizes import NO_FACTS, Facts
from jitml.trace.storage import Storage
from jitml.trace.tracers import TracedArray, read
from jitml.trace.truths import Truth, choose
from jitml.trace.unsure import Unsure, parts, unsure

_MOST_IN_ITSELF = 24


class Side:
    """One branch."""

    def __init__(self, branch: bool) -> None:
        self.branch = branch
        self.body = Body()
        self.ends: dict[str, Any] = {}


class Fork:
    """A condition on which two bodies hang."""

    def __init__(self, test: Any, place: Site | None = None) -> None:
        self.site = place or site()
        self.decider = Decider(self.site)
        self.source = user_source()
        self.test = truth(test)
        self.facts = facts_of(test)
        self.sides: dict[bool, Side] = {}
        self.place = self.site, decisions().apart
        self.raising = decisions().raising.get(self.place, set())
        self._open: Side | None = None
        self.iterators: dict[int, Any] = {}
        self.twins: dict[tuple[int, int], TracedArray] = {}  # of views that the sides end with
        self.views: list[View] = []
        for branch in self.raising:
            ok = ops.bit_not(self.test) if branch else self.test
            ops.check(self.test, ok, error="AssertionError", message="a branch was taken that ends with an exception")

    def enter_side(self, branch: bool) -> None:
        """Begin to record a branch; what a check has ruled out of the other one holds here, where no region is needed."""
        if not self.raising:
            self._require_end()
            self._open = self.sides[branch] = Side(branch)
            self._open.body.trace.facts = self.facts[0 if branch else 1]
            self._open.body.trace.iterators = self.iterators
            self._open.body.resume()
            active_trace().root.open.append(self)

    def _require_end(self) -> None:
        """Both sides are traced: a recursion that one of them would end does not end, and each level costs more than the last.

        Raises:
            RecursionError: this construct stands inside itself too often.
        """
        if sum(region.site[0] == self.site[0] for region in active_trace().root.open) >= _MOST_IN_ITSELF:
            raise RecursionError("a branch on a traced condition is entered again and again inside itself")

    def leave_side(self) -> None:
        side = self._open
        if side is not None:
            regions = active_trace().root.open
            if regions[-1] is not self:
                decisions().reconsider(active_trace(), UnsupportedError("an exception leaves a captured region"))
            regions.pop()
            side.body.suspend()
            self._open = None

    def carries(self, name: str) -> bool:
        return False

    def amend(self, error: BaseException) -> None:
        """Of an exception that is the program's own: the branch that raised it is not taken, or the program ends."""
        if self._open is not None and not is_ours(error):
            self.raise_here()

    def see_unbound(self, error: NameError) -> None:
        pass

    def settle(self, error: BaseException) -> None:
        """Only one side is traced."""
        decisions().demote(self.site, self.decider.mode, error)

    def _give_up(self, message: str, remedy: str) -> NoReturn:
        """The sides cannot be merged."""
        error = UnsupportedError(message, source=user_source(), remedy=remedy)
        decisions().reconsider(active_trace(), error)
        self.settle(error)
        refuse(error)

    def raise_here(self) -> None:
        """The open branch ends with an exception."""
        known = decisions()
        assert self._open is not None
        known.raising.setdefault(self.place, set()).add(self._open.branch)
        known.again()

    def merge(self, names: Sequence[str]) -> dict[str, Any]:
        """What the names hold after both branches; storages are written."""
        then, orelse = self.sides[True], self.sides[False]
        outputs: list[Output] = []
        merged = {name: self._merge(name, then.ends.get(name, UNDEF), orelse.ends.get(name, UNDEF), outputs) for name in names}
        storages = list(dict.fromkeys((*then.body.written, *orelse.body.written)))
        self._emit(outputs, storages)
        then.body.close()
        orelse.body.close()
        self.sides.clear()
        return {name: finish(outputs) for name, finish in merged.items()}

    def _merge(self, name: str, a: Any, b: Any, outputs: list[Output]) -> Any:
        """A function that makes the name's value once the outputs are there."""
        if same(a, b):
            return lambda _: self._one_of(a, b)
        if name.startswith(OURS):
            return self._merge_bound(name, a, b, outputs)
        if (a is UNDEF or b is UNDEF) and Unsure not in (type(a), type(b)) and not decisions().wants(name, self.site):
            return lambda _: UNDEF
        (a, in_then), (b, in_else) = parts(a), parts(b)
        made = self._merge_bound(name, a, b, outputs)
        if in_then is in_else is True:
            return made
        bound = self._merge_truths((in_then, in_else), outputs)
        return lambda outputs: unsure(name, made(outputs), bound())

    def _merge_truths(self, ends: tuple[Truth, Truth], outputs: list[Output]) -> Callable[[], Truth]:
        """A function that tells, after both branches, what each of them tells at its end."""
        trace = active_trace()
        if all(isinstance(end, bool) or trace.sees(end) for end in ends):
            return lambda: choose(self.test, *ends)
        x, y = (end if isinstance(end, bool) else TracedNumber.of_value(trace, end) for end in ends)
        output = Output(FLAG, (x, y))
        outputs.append(output)
        return lambda: read(output.result)

    def _merge_bound(self, name: str, a: Any, b: Any, outputs: list[Output]) -> Any:
        """The same of what it holds where it is bound."""
        if same(a, b):
            return lambda _: self._one_of(a, b)
        one, other = (take_apart(x if x is not UNDEF else None) for x in (a, b))
        if a is UNDEF:
            return self._merge_leaves(name, other, (None,) * len(other.leaves), other.leaves, outputs)
        if b is UNDEF:
            return self._merge_leaves(name, one, one.leaves, (None,) * len(one.leaves), outputs)
        if one.spec != other.spec:
            self._refuse(name, a, b)
        return self._merge_leaves(name, one, one.leaves, other.leaves, outputs)

    def _merge_leaves(self, name: str, held: Held, xs: Sequence[Any], ys: Sequence[Any], outputs: list[Output]) -> Any:
        made: list[Output | View] = []
        for kind, x, y in zip(held.kinds, xs, ys):
            if same(x, y):
                made.append(Output(None, (x, y), self._one_of(x, y)))
                continue
            missing = x is None or y is None
            if missing and not name.startswith("__jm_") and self._is_outer(present := y if x is None else x):
                made.append(Output(None, (x, y), present))  # where the name is bound at all, it is that very array
                continue
            known = next((output for output in outputs if output.takes(x, y)), None)
            if known is not None:
                made.append(known if known.is_very(x, y) else self._view(known, x, y))
                continue
            kinds = [k for k in (kind_of(x), kind_of(y)) if k is not None]
            wide = ragged(kinds, active_trace(), is_complete=not missing) if kinds else None
            if wide is not None:
                made.append(_ragged_output(wide, x, y, outputs))
                continue
            common = kind if missing else join(*kinds) if len(kinds) == 2 else None
            if common is not None and not missing and kinds[0] != kinds[1]:
                decisions().widened.add(self.site)
            if common is not None and not (may_hold(x, common) and may_hold(y, common)):
                common = None
            if common is None and missing and kind is None:
                made.append(Output(None, (x, y), y if x is None else x))  # an object beside nothing
                continue
            if common is None:
                self._refuse(name, x, y)
            if not _is_known(common):
                self._refuse_size(name, common)
            output = Output(common, (x, y))
            output.types = self._types(output, outputs)
            made.append(output)
            outputs.append(output)
        return lambda _: held.rebuild([output.result for output in made])

    def _one_of(self, x: Any, y: Any) -> Any:
        """What is the same in both branches; of two views of one array, it is one or the other object."""
        if x is y or type(x) is not TracedArray:
            return x
        whole = x.storage.whole and x.storage.whole()
        if whole is x or whole is y:
            self.settle(UnsupportedError("an array that may be another one, or a view of all of it", source=user_source()))
        if (id(x), id(y)) not in self.twins:
            self.twins[id(x), id(y)] = one_of(x, (x, y), self.decider)
        return self.twins[id(x), id(y)]

    def _view(self, known: Output, x: Any, y: Any) -> View:
        """Of another name for a result, which is not the very object on both sides."""
        others = [view for view in self.views if view.of is known]
        view = next((view for view in others if view.leaves[0] is x and view.leaves[1] is y), None)
        if view is None:
            before: list[Output | View] = [known, *others]
            partners = [p for p in before if any(a is b is not None for a, b in zip(p.leaves, (x, y)))]
            view = View(known, (x, y), self.decider, partners)
            self.views.append(view)
        return view

    def _refuse(self, name: str, a: Any, b: Any) -> NoReturn:
        self._give_up(
            f"after a branch on a traced condition {_subject(name)} {told(a)} or {told(b)}",
            "Give both branches values of one type: arrays of the same shape and dtype, or numbers.",
        )

    def _refuse_size(self, name: str, kind: Kind) -> NoReturn:
        self._give_up(
            f"after a branch on a traced condition {_subject(name)} {kind.aval}, whose size only that branch knows",
            "Compute it before the branch, or use it inside.",
        )

    def _shown(self, output: Output, value: Value) -> Any:
        kind = output.kind
        assert kind is not None
        if output.ragged is not None:
            kind, value = output.ragged.show(value, [read(extent.result) for extent in output.extents])
        self._note_types(output, value)
        return kind.show(value)

    def _types(self, output: Output, outputs: list[Output]) -> dict[type, Callable[[], Truth]]:
        """Which other types the result may have, and what tells after both branches whether it has."""
        kind, (x, y) = output.kind, output.leaves
        if kind is None or kind.form == "array":
            return {}
        types = {t for leaf in (x, y) if leaf is not None for t in types_of(leaf)} - {kind.python}
        return {t: self._merge_truths((x is not None and is_of(x, t), y is not None and is_of(y, t)), outputs) for t in types}

    def _note_types(self, output: Output, value: Value) -> None:
        """Whether the result stands for numbers of other types."""
        cases = {which: tell() for which, tell in output.types.items()}
        exact = {which for which in cases if all(is_exact(leaf, which, value.dtype) for leaf in output.leaves)}
        inner = next((d for d in map(doubt_of, output.leaves) if d is not None), None)
        is_inner = inner is not None and len({own_type(leaf) for leaf in output.leaves}) == 1
        doubt(value, cases, inner.decider if inner is not None and is_inner else self.decider, exact)

    def _is_outer(self, leaf: Any) -> bool:
        """Whether it is an array from outside the branches, seen through nothing that they have computed."""
        if type(leaf) is not TracedArray or self.is_made_here(leaf):
            return False
        trace = active_trace()
        params = tuple(param for step in leaf.steps for param in step.params.values())
        numbers = [trace.root.sizes[sym] for sym in {*leaf.aval.syms, *syms_in(params)}]
        return all(map(trace.sees, (*numbers, *(start for step in leaf.steps for start in step.starts))))

    def is_made_here(self, leaf: TracedArray) -> bool:
        return any(leaf.storage.trace is side.body.trace for side in self.sides.values())

    def _emit(self, outputs: list[Output], storages: list[Storage]) -> None:
        sharing = Sharing(self, outputs)
        outputs = sharing.outputs
        ends: dict[bool, list[Value]] = {}
        for branch, side in self.sides.items():
            side.body.resume()
            ends[branch] = [_end(output, 0 if branch else 1) for output in outputs]
            ends[branch] += [storage.load() for storage in storages]
            side.body.suspend()
        results = conditional(self.test, self.sides[True].body, self.sides[False].body, ends[True], ends[False])
        for output, value in sorted(zip(outputs, results), key=lambda pair: pair[0].ragged is not None):  # sizes come first
            output.result = self._shown(output, value)
        sharing.finish()
        for storage, value in zip(storages, results[len(outputs) :]):
            storage.store(value)


def _end(output: Output, which: int) -> Value:
    leaf, kind = output.leaves[which], output.kind
    assert kind is not None
    if leaf is None:  # not bound here, and not read where it is not
        return ops.full(value=0, shape=kind.aval.shape, dtype=kind.aval.dtype)
    return kind.take(leaf) if output.ragged is None else widened(read(leaf), kind.aval)


def _ragged_output(wide: Ragged, x: Any, y: Any, outputs: list[Output]) -> Output:
    """Of two arrays of unknown sizes. What has the same sizes in both branches has the same after them."""
    sizes = [wide.sizes(leaf) if leaf is not None else [None] * len(wide.axes) for leaf in (x, y)]
    extents = []
    for pair in zip(*sizes):
        found = next((o for o in outputs if o.kind is SIZE and all(map(same, o.leaves, pair))), None)
        if found is None:
            found = Output(SIZE, pair)
            outputs.append(found)
        extents.append(found)
    outputs.append(Output(wide.wide, (x, y), ragged=wide, extents=extents))
    return outputs[-1]


def _is_known(kind: Kind) -> bool:
    """Whether the sizes of such an array are known outside the branches."""
    trace = active_trace()
    return all(trace.sees(trace.root.sizes[sym]) for sym in kind.aval.syms)


def _subject(name: str) -> str:
    if not name.startswith("__jm_"):
        return f"{name} is"
    return "the function returns" if name == "__jm_value__" else "the value is"


class If(Fork):
    """The driver of an `if`."""

    drives = True

    def enter(self, names: Names, values: Values, targets: Names = ()) -> None:
        self.names = names
        self.entry = {name: values.get(name, UNDEF) for name in names}
        self.iterators = iterators_among(values)
        self.ends = self.entry

    def carries(self, name: str) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[bool]:
        for branch in (True, False):
            if branch not in self.raising or self.raising == {True, False}:
                self._branch = branch
                self.enter_side(branch)
                yield branch

    def load(self) -> tuple[Any, ...]:
        return tuple(self.entry.values())

    def step(self, values: Values, stop: Any = False) -> None:
        ends = {name: values.get(name, UNDEF) for name in self.names}
        if self.raising:
            self.ends = ends
        else:
            self.sides[self._branch].ends = ends
            self.leave_side()

    def result(self) -> tuple[Any, ...]:
        held = self.ends if self.raising else self.merge(self.names)
        self.ends, self.entry, self.iterators = {}, {}, {}  # whether an array is still there decides what may be written
        return tuple(held[name] for name in self.names)


def facts_of(test: Any) -> Facts:
    """What a condition says about sizes where it holds, and where it does not."""
    return test.facts if type(test) is TracedNumber else NO_FACTS


__all__ = ["Fork", "If", "facts_of"]
