"""Wide accesses: how does a thread read and write several neighbours at once?

A vector loop of a few iterations loads what it needs of contiguous memory ahead of them, stores what it makes there after
them, and in between works on arrays in registers. Where the address is a multiple of the access's width, a piece is one
instruction; of pointers that come from outside only the running kernel knows that (`ji_aligned`).
"""

from __future__ import annotations

from jitml.codegen.cuda.emit.blocks import BlockStatements
from jitml.codegen.cuda.emit.expressions import CudaIndex, bare
from jitml.codegen.cuda.emit.spelling import memory_type_of
from jitml.codegen.cuda.emit.statements import ModuleText, earlier_end
from jitml.kernels.ir import (
    Apply,
    Cell,
    Const,
    Expr,
    Let,
    Load,
    Loop,
    Observe,
    Store,
    Update,
    Var,
    add,
    affine,
    expressions,
    mul,
    sub,
    variables_of,
    walk_expression,
)
from jitml.kernels.metrics import known_trips, most_trips
from jitml.records import dataclass

WIDTHS = (2, 4, 8, 16)
MOST_BYTES = 16  # of one access


@dataclass(frozen=True, slots=True)
class _WidePiece:
    """Neighbours in memory: the array in registers, and the address of the first."""

    array: str
    address: str
    mode: str  # what is known of the address: true, or the name of what the kernel finds out


class WideStatements(BlockStatements):
    """Statements whose vector loops are accesses of several elements where they can be."""

    def __init__(self, module: ModuleText, *, has_barriers: bool = True) -> None:
        super().__init__(module, has_barriers=has_barriers)
        self.unproven: dict[str, None] = {}  # pointers whose alignment the kernel has to look at
        self.sunk: dict[int, str] = {}  # stores whose values wait in registers

    def wide_loop(self, loop: Loop) -> bool:
        width = _width(loop)
        if width is None or self.is_single or not all(isinstance(s, (Let, Cell, Update, Store, Observe)) for s in loop.body):
            return False
        loads, stores = self._wide_accesses(loop, width)
        if not loads and not stores:
            return False
        if known_trips(loop) is None and affine(sub(loop.stop, loop.start)) is None:
            end = self.index(earlier_end(loop))
            start = self.index(add(loop.start, width))
            narrow = start.is_narrow and end.is_narrow
            with self.braces(f"if ({bare(start.at(narrow=narrow))} <= {bare(end.at(narrow=narrow))})"):
                self._write(loop, width, loads, stores)
            self.otherwise()
            self.counted(loop, "", "1", 1)
            self.close()
            return True
        self._write(loop, width, loads, stores)
        return True

    def store(self, stmt: Store) -> None:
        if id(stmt) in self.sunk:
            self.emit(f"{self.sunk[id(stmt)]} = {bare(self.value(stmt.value).text)};")
        else:
            super().store(stmt)

    # ---------------------------------------------------------------------------------------------- selection

    def _wide_accesses(self, loop: Loop, width: int) -> tuple[list[Load], list[Store]]:
        """The loads that may be done before the loop, and the stores that may be done after it."""
        loads = [
            (n, e) for n, s in enumerate(loop.body) for x in expressions(s) for e in walk_expression(x) if isinstance(e, Load)
        ]
        stores = [(n, s) for n, s in enumerate(loop.body) if isinstance(s, Store)]
        for n, s in stores:
            if s.combine is not None:
                loads.append((n, Load(s.buffer, s.at, s.value.dtype)))
        inside = {s.name for s in loop.body if isinstance(s, (Let, Cell))}
        wide_loads = {e for _, e in loads if self._is_wide(loop, width, e.buffer, e.at, inside)}
        wide_stores = {id(s) for _, s in stores if s.combine is None and self._is_wide(loop, width, s.buffer, s.at, inside)}
        for group in {self.buffers[s.buffer].group for _, s in stores}:
            own_loads = [(n, e) for n, e in loads if self.buffers[e.buffer].group == group]
            own_stores = [(n, s) for n, s in stores if self.buffers[s.buffer].group == group]
            first = min(n for n, _ in own_stores)
            in_order = all(e in wide_loads and n <= first for n, e in own_loads) and all(
                id(s) in wide_stores for _, s in own_stores
            )
            if not in_order:
                wide_loads -= {e for _, e in own_loads}
                wide_stores -= {id(s) for _, s in own_stores}
        found = dict.fromkeys(e for _, e in loads if e in wide_loads)
        return [*found], [s for _, s in stores if id(s) in wide_stores]

    def _is_wide(self, loop: Loop, width: int, buffer: str, at: tuple[Expr, ...], inside: set[str]) -> bool:
        """Whether the iterations access neighbours, from a multiple of the access's width on."""
        memory = self.buffers[buffer]
        itemsize = memory.buffer.dtype.itemsize
        first = self._first(loop, buffer, at)
        if first is None or variables_of(first) & inside:
            return False
        each = min(width, MOST_BYTES // itemsize)
        return self.index(first).factor % each == 0

    def _first(self, loop: Loop, buffer: str, at: tuple[Expr, ...]) -> Expr | None:
        """The offset of the first of neighbours, one for each iteration; None if they are none."""
        total: Expr = Const(0)
        slope = 0
        for index, step in zip(at, self.buffers[buffer].buffer.element_strides, strict=True):
            split = _along(index, loop.index)
            if split is None:
                return None
            slope += split[0] * step
            total = add(total, mul(split[1], step))
        return add(total, loop.start) if slope == 1 else None

    # ------------------------------------------------------------------------------------------------ writing

    def _write(self, loop: Loop, width: int, loads: list[Load], stores: list[Store]) -> None:
        saved = dict(self.loaded)
        counter = CudaIndex(self.name(f"{loop.index}_lane" if self.index(loop.start).text != "0" else loop.index))
        for load in loads:
            piece = self._piece(loop, load.buffer, load.at, width)
            self.emit(f"ji_load<{piece.mode}>({piece.array}, {piece.address});")
            self.loaded[load] = f"{piece.array}[{counter.text}]"
        after = []
        for store in stores:
            piece = self._piece(loop, store.buffer, store.at, width)
            self.sunk[id(store)] = f"{piece.array}[{counter.text}]"
            after.append(f"ji_store<{piece.mode}>({piece.address}, {piece.array});")
        self.emit("#pragma unroll")
        with self.braces(f"for (int {counter.text} = 0; {counter.text} < {width}; {counter.text} += 1)"):
            self._lane(loop, width, counter.text)
        for line in after:
            self.emit(line)
        for store in stores:
            del self.sunk[id(store)]
        self.loaded = saved

    def _lane(self, loop: Loop, width: int, counter: str) -> None:
        """One iteration."""
        from_zero = Loop(loop.index, Const(0), Const(width), 1, loop.kind, loop.body)
        index = self.limits(from_zero, 1)
        self.scope[loop.index] = CudaIndex(counter, index.bounds, is_narrow=True)
        start = loop.start
        if not (isinstance(start, Const) and start.value == 0):
            shift = self.index(add(start, Var(loop.index)))
            word = self.name(loop.index)
            if any(loop.index in variables_of(x) for s in loop.body for x in _asked(s, self)):
                self.emit(f"const {'int' if shift.is_narrow else 'i64'} {word} = {bare(shift.text)};")
            self.scope[loop.index] = CudaIndex(word, shift.bounds, shift.is_narrow)
        self.block(loop.body)

    def _piece(self, loop: Loop, buffer: str, at: tuple[Expr, ...], width: int) -> _WidePiece:
        memory, first = self.buffers[buffer], self._first(loop, buffer, at)
        assert first is not None
        array = self.name(f"{buffer}_near")
        self.emit(f"{memory_type_of(memory.buffer.dtype)} {array}[{width}];")
        offset = bare(self.index(first).text)
        if not memory.is_aligned:
            self.unproven[memory.text] = None
        address = memory.text if offset == "0" else f"{memory.text} + {offset}"
        return _WidePiece(array, address, "true" if memory.is_aligned else "wide")


def _asked(stmt: object, text: WideStatements) -> list[Expr]:
    """The expressions of a statement that are computed in each iteration: not the addresses of what is done ahead or later."""
    assert isinstance(stmt, (Let, Cell, Update, Store, Observe))
    found: list[Expr] = []
    stack = [stmt.value] if isinstance(stmt, Store) and id(stmt) in text.sunk else [*expressions(stmt)]
    while stack:
        expr = stack.pop()
        if isinstance(expr, Apply):
            stack += expr.args
        elif isinstance(expr, Load):
            stack += () if expr in text.loaded else expr.at
        else:
            found.append(expr)
    return found


def _width(loop: Loop) -> int | None:
    """The iterations of a loop that has a few, at the most."""
    most = most_trips(loop) if loop.step == 1 else None
    return most if most in WIDTHS else None


def _along(expr: Expr, index: str) -> tuple[int, Expr] | None:
    """An expression as c * index + rest; None if it is none."""
    if index not in variables_of(expr):
        return 0, expr
    match expr:
        case Var():
            return 1, Const(0)
        case Apply("add" | "sub" as fn, (x, y)):
            a, b = _along(x, index), _along(y, index)
            if a is None or b is None:
                return None
            return (a[0] + b[0], add(a[1], b[1])) if fn == "add" else (a[0] - b[0], sub(a[1], b[1]))
        case Apply("mul", (x, Const(factor))):
            a = _along(x, index)
            return None if a is None else (a[0] * int(factor), mul(a[1], int(factor)))
    return None
