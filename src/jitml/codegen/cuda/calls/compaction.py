"""Compaction: how are the elements that a mask keeps packed on a GPU?

By a scan of the mask, which tells each element that is kept how many come before it. A block scans a tile. Of many tiles, it is
first counted what each one keeps, and one block scans these counts. If there are further axes, a function of its own moves the
elements, neighbours side by side, once it is known where what is kept comes from.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitml.codegen.cuda.calls.plan import CallPlan, blocks_for
from jitml.codegen.cuda.calls.strided import PlacedExtents
from jitml.codegen.cuda.calls.text import WORDS, combine_struct, entry, read, template, wide_type, written
from jitml.codegen.cuda.module import Launch
from jitml.codegen.cuda.target import THREADS
from jitml.ir.types import I32, I64
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call, KernelProgram, seen_as

_TILE = 2048
_FEW = 4  # tiles that one block scans, since each launch takes a few microseconds


def plan_compaction(call: Call, program: KernelProgram, name: str) -> CallPlan:
    """writes[0] = what the mask reads[0] keeps of reads[1] along an axis, or where in the mask it stands."""
    return _CompactionPlanner(call, program, name).plan()


class _CompactionPlanner:
    def __init__(self, call: Call, program: KernelProgram, name: str) -> None:
        self.call, self.name, p = call, name, call.params
        self.is_sized, axis = bool(p["sized"]), p["axis"]
        operands = call.reads[:-1] if self.is_sized else call.reads
        self.mask, *given = (seen_as(program.buffers[b], shape) for b, shape in zip(operands, p["shapes"], strict=True))
        self.x, self.out = given[0] if given else None, program.buffers[call.writes[0]]
        shape, (self.n,) = self.out.shape, self.mask.shape
        texts = [f"x{k}" if self.is_sized else f"{n}LL" for k, n in enumerate(shape)]
        self.most = shape[axis]
        self.kept = texts[axis]
        self.lead, self.trail = (PlacedExtents(shape[part], tuple(texts[part])) for part in (slice(axis), slice(axis + 1, None)))
        self.counting = I32 if self.n < 1 << 31 else I64
        self.op, self.kind = f"{name}_op", wide_type(self.counting)
        self.own: dict[str, Buffer] = {}

    def plan(self) -> CallPlan:
        is_flat = not self.lead.most and not self.trail.most
        made = self._positions(is_flat)
        if not is_flat:
            made.append(self._moved())
        source = combine_struct(self.op, "add", self.counting) + "".join(text for text, _ in made)
        templates = (template("common"), template("scan"))
        return CallPlan(source, templates, tuple(launch for _, launch in made), tuple(self.own.values()))

    # -------------------------------------------------------------------------------------------------------- stages

    def _positions(self, is_flat: bool) -> list[tuple[str, Launch]]:
        """What is kept goes to its place; or, if there are further axes, it is noted where it comes from."""
        tiles = -(-self.n // _TILE)
        if not is_flat:
            self.own["places"] = Buffer(f"{self.name}_places", self.counting, (self.most,))
        target = ("out",) if is_flat else ("places",)
        names = (*target, "mask", *(("x",) if is_flat and self.x is not None else ()))
        if tiles <= _FEW:
            return [self._function("", names, [*self._reach(is_flat), f"ji_scan_row<{self.op}>(&shared, n, get, put);"], 1)]
        self.own["parts"] = Buffer(f"{self.name}_parts", self.counting, (tiles,))
        blocks = blocks_for(tiles, 1)
        over = [
            f"for (long long tile = blockIdx.x; tile * {_TILE} < n; tile += gridDim.x) {{",
            f"  const long long first = tile * {_TILE};",
            f"  const int count = n - first < {_TILE} ? (int)(n - first) : {_TILE};",
        ]
        scan = f"ji_scan_tile<{self.op}>(&shared, {{}}, count, [=](int e) {{{{ return get(first + e); }}}}, {{}});"
        count = f"  const {self.kind} total = {scan.format('0', f'[](int, {self.kind}) {{}}')}"
        store = f"  {scan.format('tile ? parts[tile - 1] : 0', f'[=](int e, {self.kind} rank) {{ put(first + e, rank); }}')}"
        between = [
            "const auto get = [=](long long k) { return parts[k]; };",
            f"const auto put = [=](long long k, {self.kind} value) {{ parts[k] = value; }};",
            f"ji_scan_row<{self.op}>(&shared, (n + {_TILE - 1}) / {_TILE}, get, put);",
        ]
        write = ["  if (threadIdx.x == 0) parts[tile] = total;", "}"]
        return [
            self._function("count", ("parts", "mask"), [*self._reach(), *over, count, *write], blocks),
            self._function("between", ("parts",), between, 1),
            self._function("", (*names, "parts"), [*self._reach(is_flat), *over, store, "}"], blocks),
        ]

    def _reach(self, is_flat: bool | None = None) -> list[str]:
        """`get`, whether an element is kept; and `put`, given which one of those it is: to the result, or to the places."""
        (step,) = self.mask.element_strides
        lines = [f"const auto get = [=](long long k) {{ return ({self.kind})(mask[k * {step}LL] != 0); }};"]
        if is_flat is None:
            return lines
        element = "k" if self.x is None or not is_flat else f"x[k * {self.x.element_strides[0]}LL]"
        target = f"out[(rank - 1) * {self.out.element_strides[0]}LL]" if is_flat else "places[rank - 1]"
        store = f"if (mask[k * {step}LL] && rank <= {self.most}) {target} = {element};"
        return [*lines, f"const auto put = [=](long long k, {self.kind} rank) {{ {store} }};"]

    def _moved(self) -> tuple[str, Launch]:
        assert self.x is not None
        axis = self.call.params["axis"]

        def place(buffer: Buffer, along: str) -> str:
            steps = buffer.element_strides
            lead, trail = self.lead.place("l", steps[:axis]), self.trail.place("t", steps[axis + 1 :])
            return f"({lead}) + ({along}) * {steps[axis]}LL + ({trail})"

        where = "ji_clamped(places[j], 0, n - 1)"  # memory stays safe, whatever the mask keeps
        total = f"{self.lead.total} * {self.kept} * {self.trail.total}"
        body = [
            f"if (n) for (long long e = blockIdx.x * {THREADS}LL + threadIdx.x; e < {total}; e += gridDim.x * {THREADS}LL) {{",
            f"  const long long t = e % {self.trail.total}, j = e / {self.trail.total} % {self.kept};",
            f"  const long long l = e / {self.trail.total} / {self.kept};",
            f"  out[{place(self.out, 'j')}] = x[{place(self.x, where)}];",
            "}",
        ]
        return self._function("move", ("out", "x", "places"), body, blocks_for(self.out.size), is_scan=False)

    def _function(
        self, what: str, names: Sequence[str], body: Sequence[str], blocks: int, *, is_scan: bool = True
    ) -> tuple[str, Launch]:
        symbol, kind = f"{self.name}_{what}" if what else self.name, WORDS[self.out.dtype.itemsize]
        if self.x is None:
            kind = "long long"
        buffers = {"out": self.out, "mask": self.mask, **self.own} | ({} if self.x is None else {"x": self.x})
        types = {"out": written(kind, "out"), "mask": read("unsigned char", "mask"), "x": read(kind, "x")}
        types |= {name: f"{self.kind}* {name}" for name in self.own}
        lines = [f"__shared__ ji_scan_shared<{self.kind}> shared;"] if is_scan else []
        parameters, used = [types[name] for name in names], [buffers[name].name for name in names]
        if self.is_sized:
            parameters.append(read("long long", "extents"))
            used.append(self.call.reads[-1])
            limits = (self.n, *self.out.shape)
            known = ("n", *(f"x{k}" for k in range(len(self.out.shape))))
            lines += [
                f"const long long {name} = ji_clamped(extents[{k}], 0, {most});"
                for k, (name, most) in enumerate(zip(known, limits))
            ]
        else:
            lines.append(f"const long long n = {self.n};")
        text = entry(symbol, parameters, [*lines, *body], has_error=self.is_sized)
        return text, Launch(symbol, blocks, THREADS, 0, tuple(used), self.is_sized)
