"""Unrolling: which loops inside others are so short that their few elements are better off in registers, one by one?

    for t in 0:n { for i in 0:3 { m[i] = x[i] * 2.0 } for j in 0:3 { x[j] = m[j] + 1.0 } }
        ->  for t in 0:n { x[0] = x[0] * 2.0 + 1.0; x[1] = x[1] * 2.0 + 1.0; x[2] = x[2] * 2.0 + 1.0 }

A vector of them would be put together, and taken apart again by what wants one element, through memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jitml.fusion.scalar_loops.hoist_checks import is_true
from jitml.kernels.analysis.substitution import new_names, substituted, with_expressions, with_loads
from jitml.kernels.ir import (
    Apply,
    Cell,
    Const,
    Expr,
    Let,
    Load,
    Loop,
    Observe,
    Stmt,
    Store,
    Update,
    Var,
    While,
    affine,
    children,
    sub,
    walk,
    walk_expression,
    walk_expressions,
    with_blocks,
)
from jitml.kernels.metrics import known_trips
from jitml.kernels.target import work_of
from jitml.records import replace

SHORT = 4  # iterations: as many as fit into half a vector, of which the other half would be idle
MOST = 64  # statements that loops become
_COSTLY = 4.0  # work of a function that takes as long for one element as for a vector of them


def with_short_loops_unrolled(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements with short loops inside others written out, and names for what is loaded after it has been stored."""
    return _Unroller(body).block(body, is_inside=False)


class _Unroller:
    def __init__(self, body: Sequence[Stmt]) -> None:
        self.names = new_names(body, "u")

    def block(self, body: Sequence[Stmt], *, is_inside: bool) -> tuple[Stmt, ...]:
        made: list[Stmt] = []
        written_out = False
        for stmt in body:
            is_loop = isinstance(stmt, (Loop, While))
            stmt = with_blocks(stmt, lambda block, _, i=is_inside or is_loop: self.block(block, is_inside=i))  # type: ignore[misc]
            copies = self.copies(stmt) if is_inside and isinstance(stmt, Loop) else None
            written_out |= copies is not None
            made += [stmt] if copies is None else copies
        return tuple(with_stores_forwarded(_with_sums_begun(made), self.names)) if written_out else tuple(made)

    def copies(self, loop: Loop) -> list[Stmt] | None:
        """All iterations of a loop, if these are few and simple."""
        trips = known_trips(loop)
        plain = all(isinstance(s, (Cell, Let, Observe, Store, Update)) for s in loop.body)
        if trips is None or trips > SHORT or not plain or not isinstance(loop.start, Const) or trips * len(loop.body) > MOST:
            return None
        if any(isinstance(e, Apply) and work_of(e.fn) > _COSTLY for e in walk_expressions(loop.body)):
            return None
        start = int(loop.start.value)
        return [stmt for k in range(trips) for stmt in self.copy(loop, start + k * loop.step)]

    def copy(self, loop: Loop, place: int) -> Iterator[Stmt]:
        """One iteration, with names of its own."""
        values: dict[str, Expr] = {loop.index: Const(place)}

        def known(expr: Expr) -> Expr:
            return _decided(substituted(expr, values))

        for stmt in loop.body:
            (new,) = with_expressions((stmt,), known)
            if isinstance(new, (Cell, Let)):
                name = next(self.names)
                dtype = (new.init if isinstance(new, Cell) else new.value).dtype
                values[new.name] = Var(name, dtype)
                new = replace(new, name=name)
            elif isinstance(new, Update) and isinstance(own := values.get(new.cell), Var):
                new = replace(new, cell=own.name)
            yield new


def _decided(expr: Expr) -> Expr:
    """An expression with the side of each choice that numbers alone make."""
    match expr:
        case Apply("select", (condition, x, y)) if not any(isinstance(e, (Var, Load)) for e in walk_expression(condition)):
            return _decided(x if is_true(condition) else y)
        case Apply(_, args):
            return replace(expr, args=tuple(map(_decided, args)))
    return expr


def _with_sums_begun(body: Sequence[Stmt]) -> Iterator[Stmt]:
    """A block whose sums of squares begin with the first one, and not with a zero: one addition less to wait for."""
    waiting: dict[str, Cell] = {}
    for stmt in body:
        if isinstance(stmt, Cell) and stmt.init.dtype.kind == "f" and stmt.init == Const(0.0, stmt.init.dtype):
            waiting[stmt.name] = stmt
            continue
        if isinstance(stmt, Update) and stmt.cell in waiting and stmt.combine == "add":
            match stmt.value:
                case Apply("mul", (x, y)) if x == y:  # no negative zero, which a zero would have made a positive one
                    yield replace(waiting.pop(stmt.cell), init=stmt.value)
                    continue
        used = {e.name for e in walk_expressions((stmt,)) if isinstance(e, Var)}
        used |= {s.cell for s in walk((stmt,)) if isinstance(s, Update)}
        yield from [waiting.pop(name) for name in [*waiting] if name in used]
        yield stmt
    yield from waiting.values()


def with_stores_forwarded(body: Iterable[Stmt], names: Iterator[str]) -> Iterator[Stmt]:
    """A block with names for what it loads after it has stored or loaded it.

    Args:
        names: new ones.
    """
    held: dict[Load, Expr] = {}
    lets: set[str] = set()  # names that stand for the same to the end of the block, as those of cells do not

    def known(expr: Expr) -> Expr:
        return with_loads(expr, lambda load: held.get(load, load))

    for stmt in body:
        (new,) = (stmt,) if children(stmt) else with_expressions((stmt,), known)
        if isinstance(new, Store) and new.combine is None and not (isinstance(new.value, Const) or _names_of(new.value) <= lets):
            let = Let(next(names), new.value)
            lets.add(let.name)
            yield let
            new = replace(new, value=Var(let.name, let.value.dtype))
        yield new
        stores = [s for s in walk((new,)) if isinstance(s, Store)]
        for load in [load for load in held if any(_may_meet(load, s) for s in stores)]:
            del held[load]
        if isinstance(new, Store) and new.combine is None:
            held[Load(new.buffer, new.at, new.value.dtype)] = new.value
        if isinstance(new, Let):
            lets.add(new.name)
            if isinstance(new.value, Load):
                held[new.value] = Var(new.name, new.value.dtype)


def _may_meet(load: Load, store: Store) -> bool:
    """Whether a store may be to the element that was loaded: not where a number tells their indices apart."""
    gaps = [affine(sub(a, b)) for a, b in zip(load.at, store.at)] if load.buffer == store.buffer else [{"": 1}]
    return not any(gap is not None and gap.keys() == {""} and gap[""] for gap in gaps)


def _names_of(value: Expr) -> set[str]:
    """The name that a value is; of another one, a name that nothing has."""
    return {value.name if isinstance(value, Var) else ""}
