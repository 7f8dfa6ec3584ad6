"""Copies and zeros: how is memory copied?  In the order of what is written, in words as wide as both sides allow.

Where what is close in the one is far apart in the other, tiles are turned in shared memory, so that both sides see neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from jitml.codegen.cuda.calls.plan import CallPlan, blocks_for
from jitml.codegen.cuda.calls.text import WORDS, entry, index_text, read, read_sizes, size_lets, template, written
from jitml.codegen.cuda.module import Launch
from jitml.codegen.cuda.target import THREADS
from jitml.kernels.ir import Apply, Buffer, Const, Expr, mul
from jitml.kernels.program import Call, KernelProgram, seen_as

_SHORT = 8  # an axis below this is not worth a tile
_WIDEST = 16  # bytes of one access
_FAR = 1 << 30  # elements that 32 bits count with room for a grid's step


@dataclass(frozen=True, slots=True)
class _CopyAxis:
    """An axis of both sides; `size` is the largest that `extent` may be."""

    extent: Expr
    size: int
    target: int
    source: int

    def holds(self, inner: _CopyAxis) -> bool:
        """Whether one step here is as far as all of the inner axis, on both sides."""
        n = inner.size
        return isinstance(inner.extent, Const) and (self.target, self.source) == (inner.target * n, inner.source * n)


def plan_copy(call: Call, program: KernelProgram, name: str) -> CallPlan:
    """writes[0] = reads[0], as far as both reach."""
    target, whole = program.buffers[call.writes[0]], program.buffers[call.reads[0]]
    source = seen_as(whole, target.shape)
    extents = program.extents.get(target.name)
    if source is whole and whole.name in program.extents:
        extents = tuple(_least(*pair) for pair in zip(program.extents[whole.name], extents or map(Const, target.shape)))
    axes = _axes(target, source, extents or tuple(map(Const, target.shape)))
    if not target.size:
        return CallPlan()
    lets, sizes = size_lets([axis.extent for axis in axes], program.sizes)
    turned = _turned(axes)
    if turned is not None:
        body, kind, count = _turning(turned, target.dtype.itemsize, _index_type(axes, target, source))
    else:
        body, kind, count = _in_order(axes, target, _index_type(axes, target, source))
    parameters = [written(kind, "y"), read(kind, "x"), *read_sizes(sizes)]
    text = entry(name, parameters, [*lets, *body], f"{target.name} = {whole.name}")
    launch = Launch(name, count, THREADS, 0, (target.name, whole.name, *sizes))
    return CallPlan(text, (template("common"), template("copy")), (launch,))


def plan_zeros(call: Call, program: KernelProgram, name: str) -> CallPlan:
    """writes[0] = 0, all of it."""
    target = program.buffers[call.writes[0]]
    if not target.size:
        return CallPlan()
    axes = _axes(target, replace(target, name=""), tuple(map(Const, target.shape)))
    index = _index_type(axes, target, target)
    width, axes = _widened(axes, target.dtype.itemsize)
    wide = WORDS[width]
    narrow = WORDS[target.dtype.itemsize]
    body = [f"if ((unsigned long long)y % {width} == 0) {{", *_fill(axes, wide, index), "} else {"]
    body += [*_fill(_narrowed(axes, width // target.dtype.itemsize), narrow, index), "}"]
    body = body if width > target.dtype.itemsize else _fill(axes, narrow, index)
    count = blocks_for(prod(axis.size for axis in axes), 4 * THREADS)
    text = entry(name, [written(narrow, "y")], body, f"{target.name} = 0")
    return CallPlan(text, (template("common"), template("copy")), (Launch(name, count, THREADS, 0, (target.name,)),))


def _least(x: Expr, y: Expr) -> Expr:
    return x if x == y else Apply("minimum", (x, y))


def _axes(target: Buffer, source: Buffer, extents: Sequence[Expr]) -> list[_CopyAxis]:
    """The axes of a copy, the densest of the target last, as few as they can be."""
    steps = zip(extents, target.shape, target.element_strides, source.element_strides, strict=True)
    axes = [_CopyAxis(*each) for each in steps if each[0] != Const(1)]
    found: list[_CopyAxis] = []
    for axis in sorted(axes, key=lambda axis: -abs(axis.target)):
        if found and found[-1].holds(axis):
            outer = found.pop()
            axis = _CopyAxis(mul(outer.extent, axis.extent), outer.size * axis.size, axis.target, axis.source)
        found.append(axis)
    return found or [_CopyAxis(Const(1), 1, 1, 1)]


def _index_type(axes: Sequence[_CopyAxis], *buffers: Buffer) -> str:
    far = max(prod(axis.size for axis in axes), *(buffer.reach for buffer in buffers))
    return "int" if far < _FAR else "long long"


# ------------------------------------------------------------------------------------------------------------- in order


def _in_order(axes: list[_CopyAxis], target: Buffer, index: str) -> tuple[list[str], str, int]:
    """(statements, the type of the parameters, blocks)."""
    itemsize = target.dtype.itemsize
    narrow = WORDS[itemsize]
    width, wider = _widened(axes, itemsize)
    blocks = blocks_for(prod(axis.size for axis in wider), 4 * THREADS)
    if len(axes) == 1 and (axes[0].target, axes[0].source) == (1, 1) and itemsize < _WIDEST:
        return _flat(axes[0], itemsize, index), narrow, blocks_for(axes[0].size * itemsize, 4 * THREADS * _WIDEST)
    plain = _copy(axes, narrow, index)
    if width == itemsize:
        return plain, narrow, blocks
    aligned = f"if ((((unsigned long long)y | (unsigned long long)x) % {width}) == 0) {{"
    wide = _copy(wider, WORDS[width], index)
    return [aligned, *_indented(wide), "} else {", *_indented(plain), "}"], narrow, blocks


def _flat(axis: _CopyAxis, itemsize: int, index: str) -> list[str]:
    """Dense memory on both sides: words of 16 bytes, and the few elements behind them."""
    each, narrow = _WIDEST // itemsize, WORDS[itemsize]
    return [
        f"const {index} count = {index_text(axis.extent)};",
        f"const auto same = [=]({index} i) {{ return i; }};",
        "if ((((unsigned long long)y | (unsigned long long)x) % 16) == 0) {",
        f"  ji_copy((uint4*)y, (const uint4*)x, ({index})(count / {each}), same, same);",
        f"  const {index} first = count / {each} * {each};",
        f"  ji_copy(y + first, x + first, ({index})(count - first), same, same);",
        "} else {",
        f"  ji_copy<{narrow}>(y, x, count, same, same);",
        "}",
    ]


def _widened(axes: list[_CopyAxis], itemsize: int) -> tuple[int, list[_CopyAxis]]:
    """The widest words that rows on both sides are made of, and the axes that count them."""
    inner = axes[-1]
    width = itemsize
    if (inner.target, inner.source) == (1, 1) and isinstance(inner.extent, Const):
        numbers = [inner.size, *(step for axis in axes[:-1] for step in (axis.target, axis.source))]
        while width < _WIDEST and all(n % (2 * width // itemsize) == 0 for n in numbers):
            width *= 2
    each = width // itemsize
    outer = [_CopyAxis(axis.extent, axis.size, axis.target // each, axis.source // each) for axis in axes[:-1]]
    return width, axes if each == 1 else [*outer, _CopyAxis(Const(inner.size // each), inner.size // each, 1, 1)]


def _narrowed(axes: list[_CopyAxis], each: int) -> list[_CopyAxis]:
    """What `_widened` has made wider, as it was."""
    inner = axes[-1]
    outer = [_CopyAxis(axis.extent, axis.size, axis.target * each, axis.source * each) for axis in axes[:-1]]
    return [*outer, _CopyAxis(Const(inner.size * each), inner.size * each, 1, 1)]


def _copy(axes: Sequence[_CopyAxis], word: str, index: str) -> list[str]:
    return [
        *_extents(axes, index),
        _place("dst", [axis.target for axis in axes], index),
        _place("src", [axis.source for axis in axes], index),
        f"ji_copy(({word}*)y, (const {word}*)x, ({index})({_total(axes)}), dst, src);",
    ]


def _fill(axes: Sequence[_CopyAxis], word: str, index: str) -> list[str]:
    place = _place("dst", [axis.target for axis in axes], index)
    total = f"({index})({_total(axes)})"
    return _indented([*_extents(axes, index), place, f"const {word} zero = {{}};", f"ji_fill(({word}*)y, zero, {total}, dst);"])


def _extents(axes: Sequence[_CopyAxis], index: str) -> list[str]:
    return [f"const {index} n{k} = {index_text(axis.extent)};" for k, axis in enumerate(axes)]


def _total(axes: Sequence[_CopyAxis]) -> str:
    return " * ".join(f"n{k}" for k in range(len(axes)))


def _place(name: str, steps: Sequence[int], index: str, first: int = 0) -> str:
    """A function from the position among axes n0, n1, ... in their order to a place in memory.

    Args:
        first: how many of the axes come before those of the steps.
    """
    terms, rest = [], "i"
    for k in reversed(range(len(steps))):
        at = rest if k == 0 else f"{rest} % n{first + k}"
        if steps[k]:
            terms.append(f"({at})" if steps[k] == 1 else f"({at}) * {_number(steps[k], index)}")
        rest = f"{rest} / n{first + k}"
    return f"const auto {name} = [=]({index} i) {{ return ({index})({' + '.join(terms) or '0'}); }};"


def _number(n: int, index: str) -> str:
    return f"{n}" if index == "int" else f"{n}LL"


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]


# --------------------------------------------------------------------------------------------------------------- turned


def _turned(axes: list[_CopyAxis]) -> list[_CopyAxis] | None:
    """The axes with the densest of the source and that of the target last, if they are two and long."""
    inner = axes[-1]
    rivals = [axis for axis in axes[:-1] if axis.size >= _SHORT and 0 < abs(axis.source) < abs(inner.source)]
    if not rivals or inner.size < _SHORT:
        return None
    dense = min(rivals, key=lambda axis: abs(axis.source))
    return [*(axis for axis in axes[:-1] if axis is not dense), inner, dense]


def _turning(axes: list[_CopyAxis], itemsize: int, index: str) -> tuple[list[str], str, int]:
    """(statements, the type of the parameters, blocks)."""
    *outer, inner, dense = axes
    tile, word, i, j = 32 if itemsize >= 4 else 64, WORDS[itemsize], len(outer), len(outer) + 1
    body = [f"__shared__ {word} tile[{tile}][{tile + 1}];", *_extents(axes, index)]
    for name, steps in (("dst", [axis.target for axis in axes]), ("src", [axis.source for axis in axes])):
        body.append(_place(f"{name}_stack", steps[:-2], index))
        inside = f"i * {_number(steps[-2], index)} + j * {_number(steps[-1], index)}"
        body.append(f"const auto {name} = [=]({index} b, {index} i, {index} j) {{ return {name}_stack(b) + {inside}; }};")
    total = f"({index})({_total(outer) or '1'})"
    body.append(f"ji_copy_turned<{word}, {tile}>(tile, y, x, {total}, n{i}, n{j}, dst, src);")
    tiles = prod(axis.size for axis in outer) * -(-inner.size // tile) * -(-dense.size // tile)
    return body, word, blocks_for(tiles, 1)
