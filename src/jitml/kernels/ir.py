"""The kernel IR on one page: loop nests over index expressions.

Four expressions (`Const`, `Var`, `Apply`, `Load`) and ten statements. Index expressions are ordinary i64 expressions;
"affine" is a view computed on demand (`affine`). The scalar functions of `Apply` are the pointwise ops of `jitml.ir` by
name, so a back end supplies one emitter per name and knows nothing of arrays. `show`, `parse`, `verify` and
`interpret` of kernels stand in the files of those names beside this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, TypeAlias

from jitml.errors import Source
from jitml.ir.types import BOOL, I64, DType
from jitml.records import dataclass, field, replace

# ---------------------------------------------------------------------------------------------------- expressions


class _IndexOperators:
    """Arithmetic on index expressions folds constants, so that lowering can write `i * 4 + 0` and print `i * 4`."""

    def __add__(self, other: Expr | int) -> Expr:
        return add(self, other)

    def __radd__(self, other: int) -> Expr:
        return add(other, self)

    def __sub__(self, other: Expr | int) -> Expr:
        return sub(self, other)

    def __rsub__(self, other: int) -> Expr:
        return sub(other, self)

    def __mul__(self, other: Expr | int) -> Expr:
        return mul(self, other)

    def __rmul__(self, other: int) -> Expr:
        return mul(other, self)


@dataclass(frozen=True, slots=True)
class Const(_IndexOperators):
    value: bool | int | float
    dtype: DType = I64


@dataclass(frozen=True, slots=True)
class Var(_IndexOperators):
    """A loop index (i64), a `Let`, or a `Cell` read."""

    name: str
    dtype: DType = I64


@dataclass(frozen=True, slots=True)
class Apply(_IndexOperators):
    """A pointwise op's name on scalars: add mul lt select exp convert ...; `dtype` is the result's."""

    fn: str
    args: tuple[Expr, ...]
    dtype: DType = I64


@dataclass(frozen=True, slots=True)
class Load(_IndexOperators):
    """The element of a buffer at one i64 expression per axis."""

    buffer: str
    at: tuple[Expr, ...]
    dtype: DType


Expr: TypeAlias = Const | Var | Apply | Load


# Symbol and binding strength of the functions that are written between their operands.
INFIX: dict[str, tuple[str, int]] = {
    **{fn: (symbol, 1) for fn, symbol in (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="))},
    **{fn: (symbol, 2) for fn, symbol in (("add", "+"), ("sub", "-"))},
    **{fn: (symbol, 3) for fn, symbol in (("mul", "*"), ("div", "/"), ("floor_divide", "//"), ("remainder", "%"))},
}
_INTEGERS = {n: Const(n) for n in range(-64, 257)}  # most index expressions are made of these


def _constant(x: bool | int | float) -> Const:
    return (_INTEGERS.get(x) if type(x) is int else None) or Const(x)


def as_expr(x: Any) -> Expr:
    return _constant(x) if isinstance(x, int) else x


def add(left: Any, right: Any) -> Expr:
    x, y = as_expr(left), as_expr(right)
    if isinstance(x, Const) and isinstance(y, Const):
        return _constant(x.value + y.value)
    if isinstance(x, Const):
        x, y = y, x
    if isinstance(y, Const):
        if y.value == 0:
            return x
        if isinstance(x, Apply) and x.fn == "add" and isinstance(x.args[1], Const):
            return add(x.args[0], x.args[1].value + y.value)
        if isinstance(x, Apply) and x.fn == "sub" and isinstance(x.args[1], Const):
            return add(x.args[0], y.value - x.args[1].value)
        if y.value < 0:
            return Apply("sub", (x, Const(-y.value)))
    return Apply("add", (x, y))


def sub(left: Any, right: Any) -> Expr:
    x, y = as_expr(left), as_expr(right)
    if isinstance(y, Const):
        return add(x, -y.value)
    return Apply("sub", (x, y))


def mul(left: Any, right: Any) -> Expr:
    x, y = as_expr(left), as_expr(right)
    if isinstance(x, Const) and isinstance(y, Const):
        return _constant(x.value * y.value)
    if isinstance(x, Const):
        x, y = y, x
    if isinstance(y, Const) and y.value in (0, 1):
        return x if y.value == 1 else _INTEGERS[0]
    return Apply("mul", (x, y))


def floor_divide(x: Any, y: int) -> Expr:
    """x // y for a known y > 0."""
    x = as_expr(x)
    if isinstance(x, Const):
        return Const(x.value // y)
    return x if y == 1 else Apply("floor_divide", (x, Const(y)))


def remainder(x: Any, y: int) -> Expr:
    """x % y for a known y > 0."""
    x = as_expr(x)
    if isinstance(x, Const):
        return Const(x.value % y)
    return Const(0) if y == 1 else Apply("remainder", (x, Const(y)))


def less(x: Any, y: Any) -> Expr:
    return Apply("lt", (as_expr(x), as_expr(y)), BOOL)


# ----------------------------------------------------------------------------------------------------- statements

Kind = Literal["serial", "parallel", "vector", "unroll", "block", "thread"]
FREE: frozenset[Kind] = frozenset(("parallel", "vector", "block", "thread"))  # kinds whose iterations may run in any order
Combine = Literal["add", "mul", "max", "min", "or", "and"]


def is_ordered(combine: Combine | None, dtype: DType) -> bool:
    """Whether elements are combined one after the other: NumPy's products of floats have the bits, and the errors, of that."""
    return combine == "mul" and dtype.kind == "f"


@dataclass(frozen=True, slots=True)
class Loop:
    """`for index in start:stop:step`.

    Kinds: `parallel` iterations may run on any thread in any order, and stand outermost only; `grain` is the least
    number of iterations worth handing to a thread. `vector` iterations run as SIMD lanes: the body may hold serial
    loops whose limits do not depend on the index, and cells of its own (one per lane). `unroll` repeats the body.

    Two kinds are for processors with blocks of threads. `block` iterations are taken by blocks, in any order and at once; such
    a loop stands outermost, or in nothing but other block loops. `thread` iterations are dealt out to the threads of a block:
    thread t of T takes t, t + T, and so on; T is no more than gives each `grain` iterations. What a thread loop combines into a
    cell from outside is there for all threads when it ends, and so is what it has stored: threads wait for each other. A
    block's statements outside thread loops are run by all its threads alike, but for stores and checks, which one of them runs;
    scratch there is shared by the threads.
    """

    index: str
    start: Expr
    stop: Expr
    step: int
    kind: Kind
    body: tuple[Stmt, ...]
    grain: int = 1


@dataclass(frozen=True, slots=True)
class Store:
    """`buffer[at] = value`, or `buffer[at] combine= value`, in the order of the loops."""

    buffer: str
    at: tuple[Expr, ...]
    value: Expr
    combine: Combine | None = None


@dataclass(frozen=True, slots=True)
class Let:
    """A name for a scalar, until the end of its block."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Cell:
    """A register that lives to the end of its block: accumulators, scan carries, counters. Read by `Var`."""

    name: str
    init: Expr


@dataclass(frozen=True, slots=True)
class Update:
    """`cell combine= value`: the order is free (a reduction), if it is not that of the loops (`is_ordered`).

    Without `combine`, `cell = value` in loop order.
    """

    cell: str
    value: Expr
    combine: Combine | None = None


@dataclass(frozen=True, slots=True)
class Draw:
    """A name for a random number, drawn here from the generator at an address: `routine` of `ir/ops/random.py`."""

    name: str
    routine: str
    args: tuple[Expr, ...]  # the address and limits
    dtype: DType


@dataclass(frozen=True, slots=True)
class If:
    condition: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class While:
    """Run `test`, leave if `condition` is false, run `body`; again and again.

    What the test names is in scope in the condition and in the body. State that changes lives in cells from outside.
    """

    test: tuple[Stmt, ...]
    condition: Expr
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Alloc:
    """Scratch that lives for the body, private to the iteration of the enclosing loops (and so to a thread)."""

    buffer: Buffer
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """Leave the program with an error if the condition is false.

    `error` is the name of a built-in exception; `message` may hold `{}` for the values of `values` (i64).
    """

    condition: Expr
    error: str
    message: str
    values: tuple[Expr, ...] = ()
    source: Source | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Observe:
    """Compute a value for the floating-point errors that come up on the way."""

    value: Expr


Stmt: TypeAlias = Loop | While | Store | Let | Draw | Cell | Update | If | Alloc | Check | Observe


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory as a kernel sees it: strides in elements (C order if None)."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None

    @property
    def element_strides(self) -> tuple[int, ...]:
        if self.strides is not None:
            return self.strides
        strides: list[int] = []
        step = 1
        for n in reversed(self.shape):
            strides.append(step)
            step *= n
        return tuple(reversed(strides))

    @property
    def is_c_contiguous(self) -> bool:
        return self.strides is None or self.strides == Buffer("", self.dtype, self.shape).element_strides

    @property
    def size(self) -> int:
        size = 1
        for n in self.shape:
            size *= n
        return size

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def reach(self) -> int:
        """Elements from the first to the last in memory, both counted."""
        return 1 + sum((n - 1) * abs(step) for n, step in zip(self.shape, self.element_strides)) if self.size else 0


@dataclass(frozen=True)
class Kernel:
    """Loop nests that run together: one fusion group.

    `params` are the program's buffers that the body touches, by their program-wide names. A kernel may see a buffer
    under another shape (axes collapsed), so shape and strides are the kernel's own. `updates` maps a written buffer
    to a read one whose contents it must hold when the kernel starts: an update in place, for which the memory
    planner either shares the storage or inserts a copy. `optimize` marks loops over single elements, with loads and
    branches that LLVM's optimiser can share and merge: there it pays. `ignored` are floating-point errors (bits of
    `ir/analysis/fp_errors.py`) that the user's code does not want to hear of where they come from.
    """

    name: str
    params: tuple[Buffer, ...]
    body: tuple[Stmt, ...]
    updates: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[Source, ...] = field(default=(), compare=False)
    optimize: bool = False
    ignored: int = field(default=0, compare=False)

    @cached_property
    def writes(self) -> tuple[str, ...]:
        """Names of the parameters that are stored to, in order."""
        return self._of_params(s.buffer for s in walk(self.body) if isinstance(s, Store))

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """Names of the parameters that are loaded from, in order."""
        return self._of_params(e.buffer for e in walk_expressions(self.body) if isinstance(e, Load))

    def _of_params(self, names: Iterable[str]) -> tuple[str, ...]:
        params = {b.name for b in self.params}
        return tuple(dict.fromkeys(name for name in names if name in params))


# ------------------------------------------------------------------------------------------------------ traversal


_NESTS = (Loop, Alloc, If, While)


def children(stmt: Stmt) -> tuple[Stmt, ...]:
    match stmt:
        case Loop() | Alloc():
            return stmt.body
        case If():
            return stmt.then + stmt.orelse
        case While():
            return stmt.test + stmt.body
    return ()


def with_blocks(stmt: Stmt, change: Callable[[tuple[Stmt, ...], tuple[int, ...]], tuple[Stmt, ...]]) -> Stmt:
    """A statement with other blocks in it; of each, its place among several is told."""
    match stmt:
        case Loop() | Alloc():
            return replace(stmt, body=change(stmt.body, ()))
        case If(_, then, orelse):
            return replace(stmt, then=change(then, (0,)), orelse=change(orelse, (1,)))
        case While(test, _, body):
            return replace(stmt, test=change(test, (0,)), body=change(body, (1,)))
    return stmt


def walk(body: Sequence[Stmt]) -> Iterator[Stmt]:
    """Every statement, outer before inner, in order."""
    stack = [*reversed(body)]
    while stack:
        stmt = stack.pop()
        yield stmt
        if isinstance(stmt, _NESTS):
            stack += reversed(children(stmt))


def walk_expression(*exprs: Expr) -> Iterator[Expr]:
    """Each expression and its parts, from left to right, the whole before its parts."""
    stack = [*reversed(exprs)]
    while stack:
        expr = stack.pop()
        yield expr
        if isinstance(expr, (Apply, Load)):
            stack += reversed(expr.args if isinstance(expr, Apply) else expr.at)


def expressions(stmt: Stmt) -> Iterator[Expr]:
    """The expressions that stand directly in a statement (not those in its body)."""
    match stmt:
        case Let(_, value) | Cell(_, value) | Update(_, value) | Observe(value):
            yield value
        case Store(_, at, value):
            yield from at
            yield value
        case Draw(args=args):
            yield from args
        case Loop(_, start, stop):
            yield start
            yield stop
        case If(condition) | While(condition=condition):
            yield condition
        case Check(condition, _, _, values):
            yield condition
            yield from values


def variables_of(*exprs: Expr) -> frozenset[str]:
    """The names that expressions mention."""
    found, stack = set(), [*exprs]
    while stack:
        expr = stack.pop()
        if isinstance(expr, Var):
            found.add(expr.name)
        elif isinstance(expr, Apply):
            stack += expr.args
        elif isinstance(expr, Load):
            stack += expr.at
    return frozenset(found)


def loaded_by(*exprs: Expr) -> frozenset[str]:
    """The buffers that expressions read."""
    return frozenset(e.buffer for e in walk_expression(*exprs) if isinstance(e, Load))


def stored_by(body: Iterable[Stmt]) -> set[str]:
    """The buffers that statements write."""
    return {s.buffer for s in walk(tuple(body)) if isinstance(s, Store)}


def touched_by(body: Iterable[Stmt]) -> set[str]:
    """The buffers that statements read or write."""
    found = tuple(body)
    return stored_by(found) | {e.buffer for e in walk_expressions(found) if isinstance(e, Load)}


def walk_expressions(body: Sequence[Stmt]) -> Iterator[Expr]:
    for stmt in walk(body):
        yield from walk_expression(*expressions(stmt))


def affine(expr: Expr) -> dict[str, int] | None:
    """The view of an i64 expression as a sum: variable name -> coefficient, "" -> constant; None if it is not one.

    >>> affine(Var("i") * 4 + Var("j") - 1)
    {'i': 4, 'j': 1, '': -1}
    """
    match expr:
        case Const(value):
            return {"": int(value)}
        case Var(name):
            return {name: 1, "": 0}
        case Apply("add" | "sub" as fn, (x, y)):
            a, b = affine(x), affine(y)
            if a is None or b is None:
                return None
            sign = 1 if fn == "add" else -1
            total = dict(a)
            for name, c in b.items():
                total[name] = total.get(name, 0) + sign * c
            constant = total.pop("", 0)
            return {name: c for name, c in total.items() if c} | {"": constant}
        case Apply("mul", (x, y)):
            a, b = affine(x), affine(y)
            if a is None or b is None:
                return None
            if len(b) > 1:
                a, b = b, a
            return {name: c * b[""] for name, c in a.items()} if len(b) == 1 else None
        case Apply("neg", (x,)):
            a = affine(x)
            return None if a is None else {name: -c for name, c in a.items()}
    return None
