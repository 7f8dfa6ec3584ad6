"""Sorts: how are rows sorted on a GPU?

By merging, which is stable, so that one function serves every kind of sort. A block sorts tiles in shared memory, several rows at
a time if they are short; runs of longer rows are merged in passes, to and fro between two buffers (`sort.cuh`).
"""

from __future__ import annotations

import numpy as np

from jitml.codegen.cuda.calls.plan import CallPlan, blocks_for
from jitml.codegen.cuda.calls.text import entry, number_type, read, template
from jitml.codegen.cuda.module import Launch
from jitml.codegen.cuda.target import THREADS
from jitml.errors import UnsupportedError
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call, KernelProgram

_TILE = 2048
_LEAST_SPAN = 8  # what one thread sorts
_FAR = 1 << 30  # elements whose places 32 bits count with room for a tile and a grid's step
_PLACES = np.dtype(np.uint32)


def plan_sort(call: Call, program: KernelProgram, name: str) -> CallPlan:
    """writes[0] = reads[0] sorted along an axis, or for `argsort` where its elements stand; rows lie one after the other.

    Raises:
        UnsupportedError: a row has 2**32 elements or more.
    """
    x, y = program.buffers[call.reads[0]], program.buffers[call.writes[0]]
    if not y.size:
        return CallPlan()
    n = y.shape[call.params["axis"]]
    if n >= 1 << 32:
        raise UnsupportedError(f"a row of {n} elements is too long to be sorted on a GPU")
    return _SortPlanner(call, x, y, name, n, y.size // n).plan()


def sorted_rows(keys: Buffer, order: Buffer, lengths: Buffer, name: str) -> CallPlan:
    """order = where the elements of a row of keys stand in a sort; `lengths` are those of `argsort`."""
    call = Call("argsort", (keys.name, lengths.name), (order.name,), {})
    return _SortPlanner(call, keys, order, name, keys.size, 1).plan()


class _SortPlanner:
    """
    Args:
        n, rows: elements of a row, and rows; the most there may be.
    """

    def __init__(self, call: Call, x: Buffer, y: Buffer, name: str, n: int, rows: int) -> None:
        self.call, self.x, self.y, self.name, self.n, self.rows = call, x, y, name, n, rows
        self.is_sized = bool(call.reads[1:])
        self.carries = call.name == "argsort"
        self.key = "ji_f16_bits" if x.dtype == np.float16 else number_type(x.dtype)
        self.span = _LEAST_SPAN
        while self.span < min(n, _TILE):
            self.span *= 2
        self.passes = max(0, (-(-n // self.span) - 1).bit_length())
        self.index = "int" if rows * n < _FAR else "long long"
        # Pass k reads what stage k has written: the last one is the result, for a sort each second before it as well.
        flat = (rows * n,)
        sides = (2 if self.carries else 1) if self.passes else 0
        self.keys = [Buffer(f"{name}_keys{k}", x.dtype, flat) for k in range(min(sides, self.passes))]
        self.places = [Buffer(f"{name}_places{k}", _PLACES, flat) for k in range(min(sides, self.passes))] if self.carries else []

    def plan(self) -> CallPlan:
        texts, work = [], []
        for stage in range(self.passes + 1):
            text, launch = self._pieces() if stage == 0 else self._merging(stage)
            texts.append(text)
            work.append(launch)
        return CallPlan(
            "".join(dict.fromkeys(texts)), (template("common"), template("sort")), tuple(work), (*self.keys, *self.places)
        )

    def _target(self, stage: int) -> tuple[str, ...]:
        """The buffers that a stage writes: keys, or places, or both."""
        left = self.passes - stage
        if left == 0:
            return (self.y.name,)
        if self.carries:
            return (self.keys[stage % 2].name, self.places[stage % 2].name)
        return (self.y.name if left % 2 == 0 else self.keys[0].name,)

    def _put(self, stage: int) -> tuple[list[str], str]:
        """(parameters, what stores an element)."""
        if self.carries and stage == self.passes:
            return ["long long* y"], "y[at] = place;"
        if self.carries:
            return [f"{self.key}* y", "unsigned int* y_places"], "y[at] = key; y_places[at] = place;"
        return [f"{self.key}* y"], "y[at] = key;"

    def _pieces(self) -> tuple[str, Launch]:
        """Pieces of rows, sorted."""
        parameters, put = self._put(0)
        body = [
            *self._tile_declarations(),
            f"ji_sort_pieces<{self.key}, {self.span}, {self._flag}, {self.index}>(tile, places, rows, n, {self.n},",
            f"    [=]({self.index} at) {{ return x[at]; }}, {self._taking(put)});",
        ]
        parameters += [f"const {self.key}* x", *self._lengths()]
        text = entry(self.name, parameters, body, f"{self.y.name} = {self.call.name} of {self.x.name}", has_error=self.is_sized)
        blocks = blocks_for(self.rows * -(-self.n // self.span) * self.span, _TILE)
        return text, Launch(self.name, blocks, THREADS, 0, (*self._target(0), *self.call.reads), self.is_sized)

    def _merging(self, stage: int) -> tuple[str, Launch]:
        """Runs of the stage before, merged in pairs; stages differ in the length of runs alone."""
        parameters, put = self._put(stage)
        symbol, targets, numbers = f"{self.name}_merge", self._target(stage), [("width", self.span << (stage - 1))]
        if self.carries and self.passes > 1:  # one function for the last stage, too, which stores places alone
            parameters, put = self._put(0)
            parameters, put = ["long long* all", *parameters], f"if (is_last) {{ all[at] = place; }} else {{ {put} }}"
            targets = (self.y.name, *self._target(stage % 2))
            numbers.append(("is_last", int(stage == self.passes)))
        source = "from" if self.carries else "(const unsigned int*)0"
        body = [
            *self._tile_declarations(),
            f"__shared__ {self.index} splits[2];",
            f"ji_sort_merge<{self.key}, {self._flag}, {self.index}>(tile, places, splits, x, {source}, rows, n, {self.n}, width,",
            f"    {self._taking(put)});",
        ]
        parameters += [read(self.key, "x"), *([read("unsigned int", "from")] if self.carries else []), *self._lengths()]
        parameters += [f"const long long {number}" for number, _ in numbers]
        blocks = blocks_for(self.rows * -(-self.n // _TILE), 1)
        buffers = (*targets, *self._target(stage - 1), *self.call.reads[1:])
        text = entry(symbol, parameters, body, has_error=self.is_sized)
        return text, Launch(symbol, blocks, THREADS, 0, buffers, self.is_sized, numbers=tuple(n for _, n in numbers))

    @property
    def _flag(self) -> str:
        return str(self.carries).lower()

    def _taking(self, put: str) -> str:
        return f"[=]({self.index} at, {self.key} key, unsigned int place) {{ {put} }}"

    def _lengths(self) -> list[str]:
        return [read("long long", "lengths")] if self.is_sized else []

    def _tile_declarations(self) -> list[str]:
        places = f"__shared__ unsigned int places[{_TILE}];" if self.carries else "unsigned int* const places = 0;"
        lines = [f"__shared__ {self.key} tile[{_TILE}];", places]
        if not self.is_sized:
            return [*lines, f"const {self.index} n = {self.n}, rows = {self.rows};"]
        limits = zip(("n", "rows"), (self.n, self.rows))
        return [
            *lines,
            *(f"const {self.index} {name} = ji_clamped(lengths[{k}], 0, {most});" for k, (name, most) in enumerate(limits)),
        ]
