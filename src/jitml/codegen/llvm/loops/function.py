"""Functions and code placement: where does an instruction go?

Functions as nested regions of straight-line text that stay open for hoisting.

A `CodeRegion` is a stretch of code that runs from its first line to its last: a function's body, a loop's body, an arm of
a branch. Regions form a stack while statements are emitted. An instruction is appended to the outermost region in which all of
its operands are known, so whatever is invariant in a loop lands before it, and equal instructions are written once.
No optimiser has to find this again, which is what makes compiling fast.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from jitml.codegen.llvm.ir.builder import Builder, Operand
from jitml.ir.types import I64
from jitml.records import dataclass, field


@dataclass(eq=False)
class CodeRegion:
    """Straight-line code at one depth of nesting.

    Args:
        depth: number of regions around it.
        kind: what its first line is reached by.
        entry: label of its first block.
        stored: buffer groups that the loop stores to; a load of one of them must not leave the loop.
        is_certain: the code from here on runs at least once whenever the region around it runs.
    """

    depth: int
    kind: Literal["function", "loop", "branch"]
    entry: str
    stored: frozenset[str] = frozenset()
    is_certain: bool = True
    lines: list[str] = field(default_factory=list)
    memo: dict[Hashable, Operand] = field(default_factory=dict)
    # group -> the keys in `memo` of loads from it
    loads: dict[str, list[tuple[tuple[Hashable, ...], Hashable]]] = field(default_factory=dict)
    label: str = ""  # of the block that the next line belongs to

    def __post_init__(self) -> None:
        self.label = self.label or self.entry


class Function:
    """One LLVM function under construction."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        # What must be there before all loops (stack, scratch) goes into a block of its own in front of this one.
        builder.label = "start"
        self.regions = [CodeRegion(0, "function", "start", lines=builder.lines)]
        self.active = self.regions[0]  # the region that the builder writes to
        self.depths: dict[str, int] = {}
        self.has_loops = False

    # ---------------------------------------------------------------------------------------------- placement

    @property
    def here(self) -> CodeRegion:
        return self.regions[-1]

    def depth(self, x: Operand) -> int:
        """Depth of the region that a value is computed in; constants and parameters are known everywhere."""
        return self.depths.get(x.names[0], 0) if x.names[0].startswith("%") else 0

    def pin(self, x: Operand, depth: int) -> Operand:
        self.depths[x.names[0]] = depth
        return x

    @contextmanager
    def at(self, region: CodeRegion) -> Iterator[None]:
        """Inside, the builder appends to `region`, which must be on the stack."""
        b, outside = self.builder, self.active
        outside.label = b.label
        self.active, b.lines, b.label = region, region.lines, region.label
        try:
            yield
        finally:
            region.label = b.label
            self.active, b.lines, b.label = outside, outside.lines, outside.label

    def compute(self, key: Hashable, operands: tuple[Operand, ...], emit: Callable[[], Operand], *, floor: int = 0) -> Operand:
        """The value of `emit()`, written once, in the outermost region that knows its operands (not above `floor`).

        `key` names the operation apart from its operands.
        """
        places = tuple([(x.names, x.dtype, x.lanes) for x in operands])
        full = (key, places)
        for region in self.regions:
            if (known := region.memo.get(full)) is not None:
                return known
        region = self.regions[max([floor, *[self.depth(x) for x in operands]])]
        if region is self.active:
            result = emit()
        else:
            with self.at(region):
                result = emit()
        region.memo[full] = result
        if isinstance(key, tuple) and key[0] == "load":
            region.loads.setdefault(key[1], []).append((key, places))
        if result.names[0] not in self.depths:
            self.pin(result, region.depth)
        return result

    def branch_floor(self) -> int:
        """Depth of the innermost branch: costly work must not be hoisted out of the test that guards it."""
        return max([region.depth for region in self.regions if region.kind == "branch"], default=0)

    def load_floor(self, group: str) -> int:
        """Depth that a load of a buffer in `group` may be hoisted to."""
        for region in reversed(self.regions):
            if region.kind != "loop" or not region.is_certain or group in region.stored:
                return region.depth
        return 0

    def has_plain_load(self, group: str) -> bool:
        """Whether a load that is under no mask is known of a buffer in `group`."""
        return any(key[-1] is not True for region in self.regions for key, _ in region.loads.get(group, ()))

    def forget_loads(self, groups: frozenset[str]) -> None:
        """Loads of these buffers seen so far must not be reused: they have been, or will be, stored to."""
        for region in self.regions:
            for group in groups & region.loads.keys():
                for key in region.loads.pop(group):
                    del region.memo[key]

    def hold_loads(self) -> None:
        """A check stands here: what is loaded after it may lie anywhere if it fails, so that no such load may leave a loop."""
        for region in self.regions:
            region.is_certain = region.is_certain and region.kind != "loop"

    def keep_loads(self, group: str) -> None:
        """Scratch is declared here: every loop around it writes it anew, so that no load of it may leave one."""
        for region in self.regions:
            region.stored |= {group}

    # -------------------------------------------------------------------------------------------------- nesting

    @contextmanager
    def _nested(self, child: CodeRegion) -> Iterator[None]:
        self.regions.append(child)
        with self.at(child):
            yield
        self.regions.pop()

    def merge(self, stem: str, edges: list[tuple[str, Operand]]) -> Operand:
        """The value that arrives at the current block, by the label of the block that it comes from."""
        first = edges[0][1]
        if all(x.names == first.names for _, x in edges):
            return self._surface(first)
        name = f"%{self.builder.fresh(stem)}"
        self.builder.emit(f"{name} = phi {first.type} {', '.join(f'[ {x.names[0]}, %{label} ]' for label, x in edges)}")
        return self.pin(Operand(first.dtype, first.lanes, (name,)), self.here.depth)

    def _surface(self, x: Operand) -> Operand:
        """A value from a region that has just ended, as one of the current region."""
        return self.pin(x, min(self.depth(x), self.here.depth))

    def loop(
        self,
        start: Operand,
        stop: Operand,
        step: int,
        carried: Mapping[str, Operand],
        body: Callable[[Operand, dict[str, Operand]], Mapping[str, Operand]],
        *,
        stored: frozenset[str] = frozenset(),
        is_certain: bool = False,
        stem: str = "i",
    ) -> dict[str, Operand]:
        """`for index in start:stop:step`, tested at the end; returns the carried values after it.

        Args:
            carried: values that change from one iteration to the next, by name, before the first.
            body: emits one iteration, given the index and the carried values; returns the new ones.
            stored: buffer groups that the body stores to.
            is_certain: there is at least one iteration.
        """
        b, parent, self.has_loops = self.builder, self.here, True
        self.forget_loads(stored)
        header, done = b.fresh(f"{stem}.loop"), b.fresh(f"{stem}.done")
        child = CodeRegion(parent.depth + 1, "loop", header, stored, is_certain)
        index = self.pin(Operand(I64, 1, (f"%{b.fresh(stem)}",)), child.depth)
        inside = {name: self.pin(Operand(x.dtype, x.lanes, (f"%{b.fresh(name)}",)), child.depth) for name, x in carried.items()}
        with self._nested(child):
            after = body(index, dict(inside))
            following = b.count(index, step)
            again = b.define(f"icmp {'slt' if step > 0 else 'sgt'} i64 {following}, {stop.names[0]}")
        before = b.label
        if is_certain:
            b.emit(f"br label %{header}")
        else:
            enter = b.define(f"icmp {'slt' if step > 0 else 'sgt'} i64 {start.names[0]}, {stop.names[0]}")
            b.emit(f"br i1 {enter}, label %{header}, label %{done}")
        b.start_block(header)
        b.emit(f"{index.names[0]} = phi i64 [ {start.names[0]}, %{before} ], [ {following}, %{child.label} ]")
        for name, x in inside.items():
            edges = f"[ {carried[name].names[0]}, %{before} ], [ {after[name].names[0]}, %{child.label} ]"
            b.emit(f"{x.names[0]} = phi {x.type} {edges}")
        b.lines += child.lines
        b.emit(f"br i1 {again}, label %{header}, label %{done}")
        b.start_block(done)
        self.forget_loads(stored)
        if is_certain:
            return {name: self._surface(after[name]) for name in carried}
        return {name: self.merge(name, [(before, carried[name]), (child.label, after[name])]) for name in carried}

    def while_loop(
        self,
        carried: Mapping[str, Operand],
        test: Callable[[dict[str, Operand]], Operand],
        body: Callable[[], Mapping[str, Operand]],
        *,
        stored: frozenset[str],
    ) -> dict[str, Operand]:
        """`while test: body`, tested at the top; the carried values after it.

        Args:
            carried: values that change from one iteration to the next, by name, before the first.
            test: emits the test, given the carried values; returns whether to go on.
            body: emits one iteration; returns the new carried values.
            stored: buffer groups that test or body store to.
        """
        b, parent, self.has_loops = self.builder, self.here, True
        self.forget_loads(stored)
        header, inner, done = b.fresh("while"), b.fresh("do"), b.fresh("done")
        head = CodeRegion(parent.depth + 1, "loop", header, stored)
        inside = {name: self.pin(Operand(x.dtype, x.lanes, (f"%{b.fresh(name)}",)), head.depth) for name, x in carried.items()}
        rest = CodeRegion(head.depth + 1, "branch", inner)
        with self._nested(head):
            again = test(dict(inside))
            with self._nested(rest):
                after = body()
                b.emit(f"br label %{header}")
            b.emit(f"br i1 {again.names[0]}, label %{inner}, label %{done}")
        before = b.label  # hoisting may have ended the block in which the loop was met
        b.emit(f"br label %{header}")
        b.start_block(header)
        for name, x in inside.items():
            edges = f"[ {carried[name].names[0]}, %{before} ], [ {after[name].names[0]}, %{rest.label} ]"
            b.emit(f"{x.names[0]} = phi {x.type} {edges}")
        b.lines += head.lines
        b.start_block(inner)
        b.lines += rest.lines
        b.start_block(done)
        self.forget_loads(stored)
        return {name: self._surface(x) for name, x in inside.items()}

    def branch(
        self, condition: Operand, arms: tuple[Callable[[], Mapping[str, Operand]], Callable[[], Mapping[str, Operand]]]
    ) -> dict[str, Operand]:
        """`if condition: arms[0]() else: arms[1]()`; the values that both return, merged."""
        b, parent = self.builder, self.here
        done = b.fresh("joined")
        children = [CodeRegion(parent.depth + 1, "branch", b.fresh(stem)) for stem in ("then", "else")]
        results = []
        for child, arm in zip(children, arms, strict=True):
            with self._nested(child):
                results.append(dict(arm()))
                b.emit(f"br label %{done}")
        b.emit(f"br i1 {condition.names[0]}, label %{children[0].entry}, label %{children[1].entry}")
        for child in children:
            b.start_block(child.entry)
            b.lines += child.lines
        b.start_block(done)
        return {
            name: self.merge(name, [(child.label, result[name]) for child, result in zip(children, results, strict=True)])
            for name in results[0]
        }
