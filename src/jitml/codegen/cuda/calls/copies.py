"""Copies and zeros: how is memory copied?  In the order of what is written, in words as wide as both sides allow.

Where what is close in the one is far apart in the other, tiles are turned in shared memory, so that both sides see neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from jitml.codegen.cuda.calls.plan import LARGEST_GRID, MOST_BLOCKS, CallPlan, blocks_for
from jitml.codegen.cuda.calls.strided import (
    SharedAxis,
    extents_text,
    indented,
    index_type,
    number_text,
    place_text,
    shared_axes,
    total_text,
)
from jitml.codegen.cuda.calls.text import WORDS, entry, index_text, read, read_sizes, size_lets, template, written
from jitml.codegen.cuda.module import Launch
from jitml.codegen.cuda.target import THREADS
from jitml.kernels.ir import Apply, Buffer, Const, Expr
from jitml.kernels.program import Call, KernelProgram, seen_as

_SHORT = 8  # an axis below this is not worth a tile
_WIDEST = 16  # bytes of one access


def plan_copy(call: Call, program: KernelProgram, name: str) -> CallPlan:
    """writes[0] = reads[0], as far as both reach."""
    target, whole = program.buffers[call.writes[0]], program.buffers[call.reads[0]]
    source = seen_as(whole, target.shape)
    extents = program.extents.get(target.name)
    if source is whole and whole.name in program.extents:
        extents = tuple(_least(*pair) for pair in zip(program.extents[whole.name], extents or map(Const, target.shape)))
    axes = shared_axes(target, source, extents or tuple(map(Const, target.shape)))
    if not target.size:
        return CallPlan()
    lets, sizes = size_lets([axis.extent for axis in axes], program.sizes)
    turned = _turned(axes)
    if turned is not None:
        body, kind, count = _turning(turned, target.dtype.itemsize, index_type(axes, target, source))
    else:
        body, kind, count = _in_order(axes, target, index_type(axes, target, source))
    parameters = [written(kind, "y"), read(kind, "x"), *read_sizes(sizes)]
    text = entry(name, parameters, [*lets, *body], f"{target.name} = {whole.name}", has_error=bool(sizes))
    if sizes:
        count = min(count, MOST_BLOCKS)  # there may be much less to do
    launch = Launch(name, count, THREADS, 0, (target.name, whole.name, *sizes), bool(sizes))
    return CallPlan(text, (template("common"), template("copy")), (launch,))


def plan_zeros(call: Call, program: KernelProgram, name: str) -> CallPlan:
    """writes[0] = 0, all of it."""
    target = program.buffers[call.writes[0]]
    if not target.size:
        return CallPlan()
    axes = shared_axes(target, replace(target, name=""), tuple(map(Const, target.shape)))
    index = index_type(axes, target, target)
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


# ------------------------------------------------------------------------------------------------------------- in order


def _in_order(axes: list[SharedAxis], target: Buffer, index: str) -> tuple[list[str], str, int]:
    """(statements, the type of the parameters, blocks)."""
    itemsize = target.dtype.itemsize
    narrow = WORDS[itemsize]
    width, wider = _widened(axes, itemsize)
    blocks = blocks_for(prod(axis.size for axis in wider), 4 * THREADS, LARGEST_GRID)
    if len(axes) == 1 and (axes[0].target, axes[0].source) == (1, 1) and itemsize < _WIDEST:
        return _flat(axes[0], itemsize, index), narrow, blocks_for(axes[0].size * itemsize, 4 * THREADS * _WIDEST, LARGEST_GRID)
    plain = _copy(axes, narrow, index)
    if width == itemsize:
        return plain, narrow, blocks
    aligned = f"if ((((unsigned long long)y | (unsigned long long)x) % {width}) == 0) {{"
    wide = _copy(wider, WORDS[width], index)
    return [aligned, *indented(wide), "} else {", *indented(plain), "}"], narrow, blocks


def _flat(axis: SharedAxis, itemsize: int, index: str) -> list[str]:
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


def _widened(axes: list[SharedAxis], itemsize: int) -> tuple[int, list[SharedAxis]]:
    """The widest words that rows on both sides are made of, and the axes that count them."""
    inner = axes[-1]
    width = itemsize
    if (inner.target, inner.source) == (1, 1) and isinstance(inner.extent, Const):
        numbers = [inner.size, *(step for axis in axes[:-1] for step in (axis.target, axis.source))]
        while width < _WIDEST and all(n % (2 * width // itemsize) == 0 for n in numbers):
            width *= 2
    each = width // itemsize
    outer = [SharedAxis(axis.extent, axis.size, axis.target // each, axis.source // each) for axis in axes[:-1]]
    return width, axes if each == 1 else [*outer, SharedAxis(Const(inner.size // each), inner.size // each, 1, 1)]


def _narrowed(axes: list[SharedAxis], each: int) -> list[SharedAxis]:
    """What `_widened` has made wider, as it was."""
    inner = axes[-1]
    outer = [SharedAxis(axis.extent, axis.size, axis.target * each, axis.source * each) for axis in axes[:-1]]
    return [*outer, SharedAxis(Const(inner.size * each), inner.size * each, 1, 1)]


def _copy(axes: Sequence[SharedAxis], word: str, index: str) -> list[str]:
    return [
        *extents_text(axes, index),
        place_text("dst", [axis.target for axis in axes], index),
        place_text("src", [axis.source for axis in axes], index),
        f"ji_copy(({word}*)y, (const {word}*)x, ({index})({total_text(axes)}), dst, src);",
    ]


def _fill(axes: Sequence[SharedAxis], word: str, index: str) -> list[str]:
    place = place_text("dst", [axis.target for axis in axes], index)
    total = f"({index})({total_text(axes)})"
    return indented(
        [*extents_text(axes, index), place, f"const {word} zero = {{}};", f"ji_fill(({word}*)y, zero, {total}, dst);"]
    )


# --------------------------------------------------------------------------------------------------------------- turned


def _turned(axes: list[SharedAxis]) -> list[SharedAxis] | None:
    """The axes with the densest of the source and that of the target last, if they are two and long."""
    inner = axes[-1]
    rivals = [axis for axis in axes[:-1] if axis.size >= _SHORT and 0 < abs(axis.source) < abs(inner.source)]
    if not rivals or inner.size < _SHORT:
        return None
    dense = min(rivals, key=lambda axis: abs(axis.source))
    return [*(axis for axis in axes[:-1] if axis is not dense), inner, dense]


def _turning(axes: list[SharedAxis], itemsize: int, index: str) -> tuple[list[str], str, int]:
    """(statements, the type of the parameters, blocks)."""
    *outer, inner, dense = axes
    tile, word, i, j = 32 if itemsize >= 4 else 64, WORDS[itemsize], len(outer), len(outer) + 1
    body = [f"__shared__ {word} tile[{tile}][{tile + 1}];", *extents_text(axes, index)]
    for name, steps in (("dst", [axis.target for axis in axes]), ("src", [axis.source for axis in axes])):
        body.append(place_text(f"{name}_stack", steps[:-2], index))
        inside = f"i * {number_text(steps[-2], index)} + j * {number_text(steps[-1], index)}"
        body.append(f"const auto {name} = [=]({index} b, {index} i, {index} j) {{ return {name}_stack(b) + {inside}; }};")
    total = f"({index})({total_text(outer) or '1'})"
    body.append(f"ji_copy_turned<{word}, {tile}>(tile, y, x, {total}, n{i}, n{j}, dst, src);")
    tiles = prod(axis.size for axis in outer) * -(-inner.size // tile) * -(-dense.size // tile)
    return body, word, blocks_for(tiles, 1, LARGEST_GRID)
