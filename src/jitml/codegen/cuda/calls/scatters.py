"""Scatters: how are elements combined into places that index arrays name?

Integers are added, and their extremes found, by atomic operations: any order gives the same. So are floats added, if the user has
chosen that ("atomics"): each run has bits of its own then. Few sums are taken in shared memory
first. Where elements are replaced, the last one of each place is found by an atomic maximum of positions. All else is sorted by
place, stably, so that each place combines its own elements: the bits do not depend on which thread comes first. (Sums of many
elements are split among the lanes of a warp; short ones are NumPy's to the bit.)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from jitml.codegen.cuda.calls.plan import CallPlan, Means, blocks_for
from jitml.codegen.cuda.calls.sorts import sorted_rows
from jitml.codegen.cuda.calls.strided import PlacedExtents
from jitml.codegen.cuda.calls.text import WORDS, combine_struct, entry, number_type, read, template, wide_type
from jitml.codegen.cuda.module import Launch
from jitml.codegen.cuda.target import THREADS
from jitml.errors import UnsupportedError
from jitml.ir.types import I32, I64
from jitml.kernels.ir import Buffer, is_ordered
from jitml.kernels.program import Call, KernelProgram, seen_as

_MOST_BINS = 4096
_LONG = 16  # elements a place, on average, that are worth a warp
_ATOMIC = {"add", "max", "min"}
_KEYS = np.dtype(np.uint32)


def plan_scatter(call: Call, program: KernelProgram, name: str, means: Means) -> CallPlan:
    """writes[0], with reads[0] combined into the places that the index arrays name.

    Raises:
        UnsupportedError: there are too many places, or too many indices.
    """
    return _ScatterPlanner(call, program, name).plan(any_order="atomics" in means.fastmath)


class _ScatterPlanner:
    def __init__(self, call: Call, program: KernelProgram, name: str) -> None:
        p = call.params
        self.call, self.name, self.combine = call, name, p["combine"]
        self.out = program.buffers[call.writes[0]]
        self.is_sized = bool(p["sized"])
        operands = call.reads[:-1] if self.is_sized else call.reads
        self.values, *self.indices = (seen_as(program.buffers[b], shape) for b, shape in zip(operands, p["shapes"], strict=True))
        axis, k, depth = p["axis"], len(self.indices), len(self.indices[0].shape)
        runs = iter(range(len(self.out.shape) + depth))
        shape = self.out.shape

        def extents(most: Sequence[int]) -> PlacedExtents:
            return PlacedExtents(tuple(most), tuple(f"x{next(runs)}" if self.is_sized else f"{n}LL" for n in most))

        self.lead, self.places, self.trail = extents(shape[:axis]), extents(shape[axis : axis + k]), extents(shape[axis + k :])
        self.index = extents(self.indices[0].shape)
        self.split = (axis, axis + k, axis + depth)
        self.count, self.bins = prod(self.index.most), prod(self.places.most)
        if max(self.count, self.bins) >= 1 << 31:
            raise UnsupportedError(f"{self.count} elements cannot be put into {self.bins} places on a GPU")

    def plan(self, *, any_order: bool) -> CallPlan:
        """
        Args:
            any_order: in which floats may be added.
        """
        dtype = self.out.dtype
        if self.combine == "set":
            return self._last_wins()
        is_any = dtype.kind in "iu" or (any_order and dtype.kind == "f" and self.combine == "add")
        if self.combine in _ATOMIC and is_any and dtype.itemsize >= 4:
            return self._atomic()
        return self._in_order()

    # ------------------------------------------------------------------------------------------------------- plans

    def _atomic(self) -> CallPlan:
        is_flat = not self.lead.most and not self.trail.most
        kind = number_type(self.out.dtype)
        if is_flat and self.combine == "add" and self.bins <= _MOST_BINS and self.count >= 4 * self.bins:
            body = [
                f"__shared__ {kind} bins[{self.bins}];",
                f"const auto place = [=](long long i) {{ return {self._key('i')}; }};",
                f"const auto get = [=](long long i) {{ return {self._value('0', 'i', '0')}; }};",
                f"const auto put = [=](int e, {kind} x) {{ ji_atomic_add({self._element('0', '(long long)e', '0')}, x); }};",
                f"ji_histogram(bins, {self.bins}, {self.index.total}, place, get, put);",
            ]
            blocks = blocks_for(self.count, 16 * THREADS)
        else:
            element, value = self._element("l", self._key("i"), "t"), self._value("l", "i", "t")
            body, blocks = self._over_all(f"ji_atomic_{self.combine}({element}, {value});"), self._blocks()
        text, launch = self._function_and_launch(self.name, ("out", "values", *self._index_names), body, blocks)
        return CallPlan(text, self._templates(), (launch,))

    def _last_wins(self) -> CallPlan:
        """Elements are replaced: positions compete for each place, and the last one is stored."""
        last = Buffer(f"{self.name}_last", I32, (self.bins,))
        over = f"for (long long i = blockIdx.x * {THREADS}LL + threadIdx.x; i < {self.index.total}; i += gridDim.x * {THREADS}LL)"
        blocks, key = blocks_for(self.count), self._key("i")
        stages: list[tuple[str, tuple[str, ...], list[str], int]] = [
            ("clear", ("last",), [f"{over} atomicExch(&last[{key}], -1);"], blocks),
            ("compete", ("last",), [f"{over} atomicMax(&last[{key}], (int)i);"], blocks),
        ]
        store = (
            f"if (last[{self._key('i')}] == (int)i) *{self._element('l', self._key('i'), 't')} = {self._value('l', 'i', 't')};"
        )
        stages.append(("store", ("out", "values", "last"), self._over_all(store), self._blocks()))
        made = [
            self._function_and_launch(f"{self.name}_{what}", (*names, *self._index_names), body, count, {"last": last})
            for what, names, body, count in stages
        ]
        return CallPlan("".join(text for text, _ in made), self._templates(), tuple(launch for _, launch in made), (last,))

    def _in_order(self) -> CallPlan:
        """Updates sorted by place; each place combines its own."""
        keys, order = Buffer(f"{self.name}_keys", _KEYS, (self.count,)), Buffer(f"{self.name}_order", I64, (self.count,))
        lengths = Buffer(f"{self.name}_lengths", I64, (2,))
        write = [
            f"if (blockIdx.x == 0 && threadIdx.x == 0) {{ lengths[0] = {self.index.total}; lengths[1] = 1; }}",
            f"for (long long i = blockIdx.x * {THREADS}LL + threadIdx.x; i < {self.index.total}; i += gridDim.x * {THREADS}LL)",
            f"  keys[i] = (unsigned int)({self._key('i')});",
        ]
        own = {"keys": keys, "order": order, "lengths": lengths}
        first = self._function_and_launch(
            f"{self.name}_place", ("keys", "lengths", *self._index_names), write, blocks_for(self.count), own
        )
        ordering = sorted_rows(keys, order, lengths, f"{self.name}_sort")
        last = self._function_and_launch(f"{self.name}_put", ("out", "values", "keys", "order"), *self._putting(), own)
        struct = combine_struct(f"{self.name}_op", self.combine, self.out.dtype)
        source = "".join((struct, first[0], ordering.source, last[0]))
        templates = tuple(dict.fromkeys((*self._templates(), *ordering.templates)))
        return CallPlan(source, templates, (first[1], *ordering.work, last[1]), (keys, order, lengths, *ordering.scratch))

    def _putting(self) -> tuple[list[str], int]:
        op, kind = f"{self.name}_op", wide_type(self.out.dtype)
        reach = [
            "const auto key = [=](long long i) { return keys[order[i]]; };",
            f"const auto get = [=](long long i) {{ return ({kind}){self._value('l', 'order[i]', 't')}; }};",
            f"const auto at = [=](unsigned int key) {{ return {self._element('l', '(long long)key', 't')}; }};",
        ]
        is_flat = not self.lead.most and not self.trail.most
        if is_flat and self.count >= _LONG * self.bins and not is_ordered(self.combine, self.out.dtype):
            warps = f"(blockIdx.x * {THREADS}LL + threadIdx.x) / 32 * 32"
            body = [
                "const long long l = 0, t = 0;",
                *reach,
                f"for (long long i = {warps}; i < {self.index.total}; i += gridDim.x * {THREADS}LL)",
                f"  ji_scatter_warp<{op}>(i, {self.index.total}, key, get, at);",
            ]
            return body, blocks_for(self.count)
        return self._over_all(*reach, f"ji_scatter_alone<{op}>(i, {self.index.total}, key, get, at);"), self._blocks()

    # ------------------------------------------------------------------------------------------------------- texts

    @property
    def _index_names(self) -> tuple[str, ...]:
        return tuple(f"i{k}" for k in range(len(self.indices)))

    def _templates(self) -> tuple[str, ...]:
        return template("common"), template("scatter")

    def _key(self, i: str) -> str:
        """The number of the place that index `i` names."""
        terms = [f"(long long)i{k}[{self.index.place(i, b.element_strides)}]" for k, b in enumerate(self.indices)]
        key = "0"
        for term, n, most in zip(terms, self.places.texts, self.places.most, strict=True):
            wrapped = f"ji_wrapped({term}, {n})"
            key = wrapped if key == "0" else f"({key}) * {most} + {wrapped}"
        return key

    def _element(self, l: str, key: str, t: str) -> str:
        """A pointer to an element of the result."""
        first, end, _ = self.split
        steps = self.out.element_strides
        places = PlacedExtents(self.places.most, tuple(f"{n}LL" for n in self.places.most))  # as keys count them
        lead, trail = self.lead.place(l, steps[:first]), self.trail.place(t, steps[end:])
        return f"(out + ({lead}) + ({places.place(f'({key})', steps[first:end])}) + ({trail}))"

    def _value(self, l: str, i: str, t: str) -> str:
        first, _, end = self.split
        steps = self.values.element_strides
        lead, trail = self.lead.place(l, steps[:first]), self.trail.place(t, steps[end:])
        return f"values[({lead}) + ({self.index.place(i, steps[first:end])}) + ({trail})]"

    def _over_all(self, *body: str) -> list[str]:
        """A loop over all elements, of which `l`, `i` and `t` are the positions along leading, index and trailing axes."""
        total = f"{self.lead.total} * {self.index.total} * {self.trail.total}"
        return [
            f"for (long long e = blockIdx.x * {THREADS}LL + threadIdx.x; e < {total}; e += gridDim.x * {THREADS}LL) {{",
            f"  const long long t = e % {self.trail.total}, i = e / {self.trail.total} % {self.index.total};",
            f"  const long long l = e / {self.trail.total} / {self.index.total};",
            *(f"  {line}" for line in body),
            "}",
        ]

    def _blocks(self) -> int:
        return blocks_for(prod(self.lead.most) * self.count * prod(self.trail.most))

    def _function_and_launch(
        self, symbol: str, names: Sequence[str], body: Sequence[str], blocks: int, own: dict[str, Buffer] | None = None
    ) -> tuple[str, Launch]:
        kind = number_type(self.out.dtype) if self.combine != "set" else WORDS[self.out.dtype.itemsize]
        buffers = {"out": self.out, "values": self.values, **(own or {})} | dict(zip(self._index_names, self.indices))
        types = {"out": f"{kind}* out", "values": read(kind, "values")}
        types |= {name: read(number_type(b.dtype), name) for name, b in zip(self._index_names, self.indices)}
        types |= {name: f"{number_type(b.dtype)}* {name}" for name, b in (own or {}).items()}
        lines, parameters, used = list[str](), [types[name] for name in names], [buffers[name].name for name in names]
        if self.is_sized:
            extents = [n for part in (self.lead, self.places, self.trail, self.index) for n in part.most]
            lines = [f"const long long x{k} = ji_clamped(extents[{k}], 0, {most});" for k, most in enumerate(extents)]
            parameters.append(read("long long", "extents"))
            used.append(self.call.reads[-1])
        text = entry(symbol, parameters, [*lines, *body], has_error=self.is_sized)
        return text, Launch(symbol, blocks, THREADS, 0, tuple(used), self.is_sized)
