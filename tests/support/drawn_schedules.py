"""Random schedules: primitives drawn one after the other for the kernel of a graph, of which those stay that fit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

import jitml
from jitml.errors import ScheduleError
from jitml.ir.graph import Graph
from jitml.kernels.ir import Kernel, Loop, walk
from jitml.kernels.program import KernelProgram
from jitml.kernels.schedule import (
    Fuse,
    Inline,
    Jam,
    Parallel,
    Primitive,
    Reorder,
    RFactor,
    Schedule,
    Split,
    Stage,
    StageCells,
    Unroll,
    Vector,
)
from support.fused import fuse

Array = np.ndarray[Any, Any]


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x: Array) -> Array:
    d = np.tanh(x) - np.tanh(x).mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5)


def smooth(x: Array) -> Array:
    y = x * 1.0
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            y[i, j] = y[i, j - 1] * 0.5 + y[i, j]
    return y


# What each kernel does, and the shape that it does it to.
PROGRAMS: dict[str, tuple[Callable[[Array], Any], tuple[int, ...]]] = {
    "points": (lambda x: np.exp(x) * x.sum(-1)[0, 0], (3, 4, 3)),
    "two outputs": (lambda x: (np.tanh(x) + x[:1], x * 2.0), (5, 6)),
    "transposed": (lambda x: x.T * x[0, 0] + 1.0, (6, 9)),
    "pieces": (lambda x: np.concatenate([x * 2.0, np.exp(x), x[:1]], 0), (4, 5)),
    "softmax": (softmax, (6, 7)),
    "layer norm": (layer_norm, (5, 9)),
    "rows": (lambda x: np.exp(x.sum(-1)), (17, 5)),
    "columns": (lambda x: x.sum(0), (19, 6)),
    "matrices of columns": (lambda x: x.max(1) + x.min(1), (3, 8, 6)),
    "two axes": (lambda x: x.sum((1, 2)), (4, 5, 6)),
    "middle and last": (lambda x: (x * x).sum((0, 2)), (4, 5, 6)),
    "all": (lambda x: (x.sum(), x.max()), (60,)),
    "products": (lambda x: x.prod(-1), (9, 8)),
    "product of all": (lambda x: x.prod(), (4, 9)),
    "running sums down columns": (lambda x: np.cumsum(x, 0), (7, 9)),
    "running sums along rows": (lambda x: np.cumsum(x, 1), (7, 9)),
    "places of extremes": (lambda x: x.argmax(1), (4, 600)),
    "single elements": (smooth, (6, 7)),
    "distances": (lambda x: np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1)), (7, 3)),
}


def graph_of(name: str) -> Graph:
    function, shape = PROGRAMS[name]
    return jitml.jit(function).lower(np.ones(shape)).graph


def draw_schedule(graph: Graph, rng: Random, refused: Counter[str]) -> tuple[str, Schedule]:
    """A kernel of a graph, and a schedule that fits it; reasons why others do not are counted."""
    kernel, plain = rng.choice([*fuse(graph).schedules.items()])
    boxes: list[tuple[Primitive, ...]] = [()] * len(plain.boxes)
    program = fuse(graph, schedules={kernel: Schedule(tuple(boxes))})
    for n in range(rng.randrange(3, 20)):
        box = rng.randrange(len(boxes))
        primitive = _drawn(rng, _loops(program, kernel), f"c{n}")
        longer = [(*b, primitive) if k == box else b for k, b in enumerate(boxes)]
        try:
            program = fuse(graph, schedules={kernel: Schedule(tuple(longer))})
        except ScheduleError as error:
            refused[re.sub(r"[ic]\d\w*(\.\d)?|%\d+|\d+", "_", error.message.partition(": ")[2])] += 1
        else:
            boxes = longer
    return kernel, Schedule(tuple(boxes))


def _loops(program: KernelProgram, kernel: str) -> list[str]:
    (found,) = (step for step in program.steps if isinstance(step, Kernel) and step.name == kernel)
    return list(dict.fromkeys(s.index for s in walk(found.body) if isinstance(s, Loop))) or ["i0"]


def _drawn(rng: Random, names: list[str], new: str) -> Primitive:
    def loop() -> str:
        return rng.choice(names) + rng.choice(["", "", "", "", ".0", ".1"])

    size = rng.choice([1, 2, 3, 4, 5, 8, 20])
    kinds: list[Primitive] = [
        Split(loop(), size, new),
        Split(loop(), size, new),
        Fuse(loop(), loop(), new),
        Fuse(names[0], names[-1], new),
        Reorder(tuple(rng.sample(names, min(len(names), rng.randrange(2, 5))))),
        Reorder(tuple(rng.sample(names, min(len(names), 2)))),
        Parallel(loop(), rng.choice([1, 2])),
        Vector(loop()),
        Unroll(loop()),
        RFactor(loop()),
        RFactor(loop(), size, new),
        RFactor(loop(), size, new, scope="memory"),
        RFactor(loop(), size, new, loop()),
        Stage(f"%{rng.randrange(5)}", rng.choice(["row", "row", "h", "g", "k", "e"])),
        StageCells(loop()),
        Inline(f"%{rng.randrange(5)}"),
        Jam(loop(), rng.choice([2, 3, 8])),
    ]
    return rng.choice(kinds)
