"""Cumulative operations: how does a running sum run on a GPU?

A row whose elements are close together is scanned by a block, tile by tile; rows that lie side by side have a thread each, and
neighbours are neighbours. Where there are too few rows, they are cut into pieces: what each piece comes to is found first, then
scanned, and each piece then begins with what those before it have come to (`scan.cuh`). All that depends on the shape alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jitml.codegen.cuda.calls.plan import CallPlan, blocks_for
from jitml.codegen.cuda.calls.strided import SharedAxis, extents_text, place_text, shared_axes, total_text
from jitml.codegen.cuda.calls.text import (
    combine_struct,
    entry,
    index_text,
    number_type,
    read_sizes,
    size_lets,
    template,
    wide_type,
)
from jitml.codegen.cuda.module import Launch
from jitml.codegen.cuda.target import PROCESSORS, THREADS
from jitml.ir.types import I32
from jitml.kernels.ir import Buffer, Const, Expr
from jitml.kernels.program import Call, KernelProgram, seen_as

_TILE = 2048
_SHORT = 64  # elements that one thread scans
_MANY = PROCESSORS * 512  # threads that keep a device busy


def plan_scan(call: Call, program: KernelProgram, name: str) -> CallPlan:
    """writes[0] = reads[0] combined with all that come before along an axis."""
    y = program.buffers[call.writes[0]]
    x = seen_as(program.buffers[call.reads[0]], y.shape)
    if not y.size:
        return CallPlan()
    extents = program.extents.get(y.name) or program.extents.get(x.name) or tuple(map(Const, y.shape))
    return _ScanPlanner(call, x, y, extents, program, name).plan()


class _ScanPlanner:
    def __init__(self, call: Call, x: Buffer, y: Buffer, extents: Sequence[Expr], program: KernelProgram, name: str) -> None:
        self.call, self.x, self.y, self.name = call, x, y, name
        axis = call.params["axis"]
        self.steps = tuple(b.element_strides[axis] for b in (y, x))
        self.most, self.extent = y.shape[axis], extents[axis]
        rows_y, rows_x = (_without(b, axis) for b in (y, x))
        self.axes: list[SharedAxis] = shared_axes(rows_y, rows_x, [e for a, e in enumerate(extents) if a != axis])
        self.rows = prod(a.size for a in self.axes)
        self.lets, self.sizes = size_lets([self.extent, *(a.extent for a in self.axes)], program.sizes)
        self.kind, self.op = wide_type(y.dtype), f"{name}_op"
        # Whether a row's elements are closer than rows are.
        self.is_dense = self.rows == 1 or (self.most > _SHORT and min(map(abs, self.steps)) <= abs(self.axes[-1].target))
        self.pieces, self.length = self._pieces()

    def _pieces(self) -> tuple[int, int]:
        """Into how many pieces a row is cut, and how long they are."""
        if self.is_dense:
            few = self.rows < PROCESSORS and self.most > 4 * _TILE
            return (-(-self.most // _TILE), _TILE) if few else (1, self.most)
        wanted = min(-(-_MANY // self.rows), self.most // _SHORT)
        if self.rows >= _MANY // 8 or wanted < 2:
            return 1, self.most
        length = -(-self.most // wanted)
        return -(-self.most // length), length

    def plan(self) -> CallPlan:
        struct = combine_struct(self.op, self.call.params["combine"], self.y.dtype)
        templates = (template("common"), template("scan"))
        if self.pieces == 1:
            text, launch = self._whole()
            return CallPlan(struct + text, templates, (launch,))
        parts = Buffer(f"{self.name}_parts", I32 if self.kind == "int" else self.y.dtype, (self.rows, self.pieces))
        stages = (self._totals(parts), self._between(parts), self._each(parts))
        return CallPlan(struct + "".join(t for t, _ in stages), templates, tuple(launch for _, launch in stages), (parts,))

    # ---------------------------------------------------------------------------------------------------- functions

    def _whole(self) -> tuple[str, Launch]:
        """Rows that nothing cuts."""
        if self.is_dense:
            body = [*self._over_rows("rows"), *self._reach(), f"  ji_scan_row<{self.op}>(&shared, n, get, put);", "}"]
            return self._function_and_launch(self.name, ["y", "x"], [self._shared(), *body], self.rows, 1)
        scan = f"  ji_scan_alone<{self.op}>({self.op}::identity(), 0, n, get, put);"
        return self._function_and_launch(
            self.name, ["y", "x"], [*self._over_rows("rows", alone=True), *self._reach(), scan, "}"], self.rows
        )

    def _totals(self, parts: Buffer) -> tuple[str, Launch]:
        """What each piece comes to."""
        nothing = f"[](long long, {self.kind}) {{}}"
        scan = self._piece(f"{self.op}::identity()", nothing)
        return self._launch_over_pieces("totals", parts, f"parts[row * {self.pieces} + piece] = ", scan)

    def _each(self, parts: Buffer) -> tuple[str, Launch]:
        """Each piece, after those before it."""
        carry = f"piece ? parts[row * {self.pieces} + piece - 1] : {self.op}::identity()"
        return self._launch_over_pieces("each", parts, "", self._piece(carry, "put"))

    def _piece(self, carry: str, put: str) -> str:
        if not self.is_dense:
            return f"ji_scan_alone<{self.op}>({carry}, begin, end, get, {put});"
        return (
            f"ji_scan_tile<{self.op}>(&shared, {carry}, (int)(end - begin), [=](int e) {{ return get(begin + e); }}, "
            f"[=](int e, {self.kind} value) {{ ({put})(begin + e, value); }});"
        )

    def _launch_over_pieces(self, what: str, parts: Buffer, target: str, scan: str) -> tuple[str, Launch]:
        body = [
            *([self._shared()] if self.is_dense else []),
            *self._over_rows(f"rows * {self.pieces}", alone=not self.is_dense),
            *self._reach(writes=not target),
            f"  const long long begin = piece * {self.length} < n ? piece * {self.length} : n;",
            f"  const long long end = begin + {self.length} < n ? begin + {self.length} : n;",
            f"  const {self.kind} total = {scan}" if target else f"  {scan}",
            *([f"  {'if (threadIdx.x == 0) ' if self.is_dense else ''}{target}total;"] if target else []),
            "}",
        ]
        names = ["x", "parts"] if target else ["y", "x", "parts"]
        return self._function_and_launch(
            f"{self.name}_{what}", names, body, self.rows * self.pieces, 1 if self.is_dense else THREADS, parts
        )

    def _between(self, parts: Buffer) -> tuple[str, Launch]:
        """What the pieces of a row have come to, scanned by a block, or by a thread if they are few."""
        alone = self.pieces <= _SHORT
        start, step = _strides(alone)
        how = f"ji_scan_alone<{self.op}>({self.op}::identity(), 0" if alone else f"ji_scan_row<{self.op}>(&shared"
        body = [
            *([] if alone else [self._shared()]),
            f"for (long long row = {start}; row < {self.rows}; row += {step}) {{",
            f"  const auto get = [=](long long k) {{ return parts[row * {self.pieces} + k]; }};",
            f"  const auto put = [=](long long k, {self.kind} value) {{ parts[row * {self.pieces} + k] = value; }};",
            f"  {how}, {self.pieces}, get, put);",
            "}",
        ]
        return self._function_and_launch(f"{self.name}_between", ["parts"], body, self.rows, THREADS if alone else 1, parts)

    # -------------------------------------------------------------------------------------------------------- texts

    def _shared(self) -> str:
        return f"__shared__ ji_scan_shared<{self.kind}> shared;"

    def _over_rows(self, total: str, *, alone: bool = False) -> list[str]:
        """A loop over rows, or pieces of rows, for blocks or (alone) for threads; `row` and `piece` are known in it.

        Threads that are neighbours take neighbouring rows, blocks that are neighbours the pieces of one row.
        """
        start, step = _strides(alone)
        row, piece = ("t % rows", "t / rows") if alone else (f"t / {self.pieces}", f"t % {self.pieces}")
        return [
            *extents_text(self.axes, "long long"),
            f"const long long n = {index_text(self.extent)}, rows = {total_text(self.axes)};",
            f"for (long long t = {start}; t < {total}; t += {step}) {{",
            f"  const long long row = {row if self.pieces > 1 else 't'};",
            *([f"  const long long piece = {piece};"] if self.pieces > 1 else []),
        ]

    def _reach(self, writes: bool = True) -> list[str]:
        """`get` and `put` for the elements of a row."""
        at = "n - 1 - k" if self.call.params["reverse"] else "k"
        element = number_type(self.y.dtype)
        return [
            f"  {place_text('row_x', [axis.source for axis in self.axes], 'long long')}",
            f"  const {element}* const from = x + row_x(row);",
            f"  const auto get = [=](long long k) {{ return ({self.kind})from[({at}) * {self.steps[1]}LL]; }};",
            *(self._putting(element, at) if writes else []),
        ]

    def _putting(self, element: str, at: str) -> list[str]:
        return [
            f"  {place_text('row_y', [axis.target for axis in self.axes], 'long long')}",
            f"  {element}* const to = y + row_y(row);",
            f"  const auto put = [=](long long k, {self.kind} value) {{ to[({at}) * {self.steps[0]}LL] = ({element})value; }};",
        ]

    def _function_and_launch(
        self, symbol: str, names: Sequence[str], body: Sequence[str], count: int, each: int = THREADS, parts: Buffer | None = None
    ) -> tuple[str, Launch]:
        element = number_type(self.y.dtype)
        types = {"y": f"{element}* y", "x": f"const {element}* x", "parts": f"{self.kind}* parts"}
        buffers = {"y": self.y.name, "x": self.x.name, "parts": parts.name if parts else ""}
        text = entry(
            symbol, [*(types[n] for n in names), *read_sizes(self.sizes)], [*self.lets, *body], has_error=bool(self.sizes)
        )
        buffers_in_order = (*(buffers[n] for n in names), *self.sizes)
        return text, Launch(symbol, blocks_for(count, each), THREADS, 0, buffers_in_order, bool(self.sizes))


def _without(buffer: Buffer, axis: int) -> Buffer:
    shape, strides = (tuple(n for a, n in enumerate(of) if a != axis) for of in (buffer.shape, buffer.element_strides))
    return Buffer(buffer.name, buffer.dtype, shape, strides)


def _strides(alone: bool) -> tuple[str, str]:
    """Where a loop for threads (alone) or for blocks begins, and how it goes on."""
    if alone:
        return f"blockIdx.x * {THREADS}LL + threadIdx.x", f"gridDim.x * {THREADS}LL"
    return "blockIdx.x", "gridDim.x"
