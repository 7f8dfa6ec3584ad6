"""Golden texts: what each pass, derivative, schedule and memory plan makes of small examples, which keep their values."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from jitml.autograd.core.jvp import jvp_graph
from jitml.autograd.reverse.linearize import vjp_graph
from jitml.codegen.cuda.schedule import SCHEDULER as CUDA_SCHEDULER
from jitml.codegen.cuda.target import cuda_target
from jitml.fusion.schedule.tree_text import show_tree
from jitml.ir import printer
from jitml.ir.analysis.verify import verify
from jitml.ir.dims import resolve
from jitml.ir.graph import Graph
from jitml.ir.interpret import interpret
from jitml.ir.passes import PASSES, run_passes
from jitml.ir.text.parser import parse
from jitml.ir.types import I64, Aval
from jitml.kernels.text.program_parser import parse_program
from jitml.memory import report
from jitml.memory.plan import plan
from support import golden_files
from support.fused import fuse_and_check, text
from support.golden_files import GOLDEN
from support.loop_trees import scheduled

pytestmark = pytest.mark.every_row

FILES = {str(path.relative_to(GOLDEN)): golden_files.read(path) for path in sorted(GOLDEN.rglob("*.txt"))}
CASES = [(name, n) for name, file in FILES.items() for n in range(len(file.pairs))]


def float_inputs(graph: Graph) -> list[int]:
    return [i for i, aval in enumerate(graph.in_avals) if aval.dtype.kind == "f"]


# What a header may name: passes by their functions, all of them in order, and the stages before and behind.
STAGES: dict[str, Callable[[Any], Any]] = {
    **{apply.__name__: lambda graph, apply=apply: run_passes(graph, (apply,)) for apply in PASSES},
    "passes": run_passes,
    "jvp": lambda graph: jvp_graph(graph, [0]),
    "vjp": lambda graph: vjp_graph(graph, float_inputs(graph)),
    "fuse": fuse_and_check,
    "fuse_for_cuda": partial(fuse_and_check, target=cuda_target(), scheduler=CUDA_SCHEDULER, rtol=1e-4),
    "plan": plan,
    "schedule": scheduled,
}


def parsed(source: str) -> Any:
    if source.startswith("graph"):
        return verify(parse(source))
    return parse_program(source) if source.startswith("program") else source


def shown(data: Any, stage: str) -> str:
    """The text form of what a stage gives."""
    return {"fuse": text, "fuse_for_cuda": text, "plan": report.show, "schedule": show_tree}.get(stage, printer.show)(data)


def agree(expected: str, got: str) -> bool:
    """Line breaks and `;` aside, and how values are named in a graph."""
    if expected.startswith("graph"):
        expected = printer.show(parse(expected))
    return re.sub(r"[;\s]+", " ", expected) == re.sub(r"[;\s]+", " ", got)


@pytest.mark.parametrize(("name", "n"), CASES, ids=[f"{name}: {FILES[name].pairs[n].title[:40]}" for name, n in CASES])
def test_golden(name: str, n: int) -> None:
    file, pair = FILES[name], FILES[name].pairs[n]
    made = [parsed(pair.before)]
    for stage in file.stages:
        made.append(STAGES[stage](made[-1]))
        if isinstance(made[-1], Graph):
            verify(made[-1])
    got = shown(made[-1], file.stages[-1])
    if golden_files.updating and not (pair.after and agree(pair.after, got)):
        golden_files.update(GOLDEN / name, pair.title, got)
        return
    assert agree(pair.after, got), f"{name}: {pair.title} (pytest --update-golden rewrites)\n\n{got}"
    for stage, (before, after) in zip(file.stages, pairwise(made)):
        if stage == "passes" or stage in {apply.__name__ for apply in PASSES}:
            assert_equal_values(before, after)


def assert_equal_values(before: Graph, after: Graph) -> None:
    for x, y in zip(interpret(before, sample_inputs(before)), interpret(after, sample_inputs(before)), strict=True):
        np.testing.assert_array_max_ulp(x, y, maxulp=4) if x.dtype.kind == "f" else np.testing.assert_array_equal(x, y)


def sample_inputs(graph: Graph) -> list[np.ndarray[Any, Any]]:
    """Normal numbers; integers from 0 to 3, which serve as indices, sizes and numbers of iterations."""
    rng = np.random.default_rng(0)
    numbers = [v for v in graph.inputs if v.aval == Aval((), I64)]
    known: dict[Any, Any] = dict.fromkeys(numbers, 3)
    sizes = {sym: known[v] for sym, v in graph.binders().items() if v in known}
    args = []
    for v in graph.inputs:
        x = rng.normal(size=resolve(v.shape, sizes)) * 3
        x = np.abs(np.rint(x)) % 4 if v.dtype.kind == "i" else x
        args.append(np.asarray(known.get(v, x)).astype(v.dtype))
    return args


def test_every_pass_has_a_golden_file() -> None:
    named = {stage for file in FILES.values() for stage in file.stages}
    assert named == STAGES.keys(), "a file under tests/golden for each pass and stage"


def test_titles_name_one_pair() -> None:
    for name, file in FILES.items():
        titles = [pair.title for pair in file.pairs]
        assert len(titles) == len({*titles}), name
        assert str(golden_files.read(GOLDEN / name)) == (GOLDEN / name).read_text(), f"{name} is not as it would be written"
