"""The report of `jitml.explain`, and `lower`: every stage as text."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

import jitml
from jitml import pipeline
from jitml.codegen.backend import backend_named
from jitml.ir.text.parser import parse
from jitml.kernels.text.program_parser import parse_program


def softmax(x, scale=1.0):
    e = np.exp(scale * (x - x.max(axis=1, keepdims=True)))
    return e / e.sum(axis=1, keepdims=True)


X = np.ones((300, 200))


def test_the_report_has_each_section_with_its_numbers() -> None:
    fast = jitml.jit(softmax)
    fast(X)
    text = jitml.explain(fast, X)
    heads = [line for line in text.splitlines() if not line.startswith(" ")]
    assert heads[1:] == ["graph", "1 kernel, 0 library calls", "decisions", "work", "memory", "guards", "variants"]
    first = softmax.__code__.co_firstlineno + 1
    assert f"test_explain.py:{first}-{first + 1}" in text  # the kernel's lines in the user's file
    nbytes = 2 * X.nbytes / 1024
    assert f"{nbytes:.1f} KiB moved, {nbytes:.1f} KiB at the least (1.00 times)" in text
    assert "x is of type ndarray, is float64[300, 200]" in text
    assert text.endswith("1: first call")


def test_the_report_of_a_plain_function_says_that_nothing_is_compiled_yet() -> None:
    text = jitml.explain(lambda x: x @ x.T, X)
    assert "\n  gemm 300 x 300 x 200 " in text
    assert text.endswith("variants\n  none: no call has been compiled yet")


def smoothed(n, x):
    for _ in range(n):
        x[1:-1, :] = np.sin(x[:-2, :] + x[2:, :])
    return x


def test_the_report_says_what_a_loop_does_each_time() -> None:
    lines = jitml.explain(smoothed, 9, X.copy()).splitlines()
    assert "2 kernels, 0 library calls, 1 region" in lines
    start = next(k for k, line in enumerate(lines) if line.strip().startswith("loop 9 times -> "))
    assert [line.split()[0] for line in lines[start + 1 : start + 4]] == ["each", "kernel", "kernel"]


def late(x):
    best, place, n = 0, None, 0
    for i in range(len(x)):
        if x[i] > 2:
            best, place, n = x[i], i, n + 1
    return {"best": best, "at": (place, n)}


def test_the_report_says_of_which_types_results_may_be() -> None:
    lines = jitml.explain(late, np.ones(9, np.float32)).splitlines()
    start = lines.index("types that the program tells")
    assert [line.strip() for line in lines[start + 1 : start + 3]] == [
        "result['best'] is int or np.float32",
        "result['at'][0] is None or int",
    ]


def test_explain_takes_a_plain_function_and_runs_nothing() -> None:
    calls = []

    def f(x):
        calls.append(x.shape)
        return x + 1

    assert "calls is of type list" in jitml.explain(f, X)
    assert calls == []  # what a list outside gains, it gains when the function runs
    x = X.copy()
    jitml.explain(lambda x: np.add(x, 1, out=x), x)
    assert (x == X).all()


def test_every_stage_prints_and_the_first_two_parse_back() -> None:
    lowered = jitml.jit(softmax).lower(X)
    assert str(parse(str(lowered.graph))) == str(lowered.graph)
    assert parse_program(lowered.kernels).outputs == lowered.program.kernels.outputs
    assert "arena" in lowered.memory
    assert re.search(r"define .*@jitml_run", lowered.llvm)
    assert "zmm" in lowered.asm or "ymm" in lowered.asm or "xmm" in lowered.asm or "v0" in lowered.asm
    with pytest.raises(jitml.UnsupportedError, match="no stage cuda of a program for llvm"):
        _ = lowered.cuda


def test_a_recompilation_says_why() -> None:
    fast = jitml.jit(softmax)
    fast(X)
    fast(X[:10])
    fast(X.astype(np.float32))
    assert [v.reason for v in fast.variants] == [
        "not so any more: x is float64, of 2 axes",
        "not so any more: x has the shape (300, 200); x.shape[0] was 300, is 10, and is left open from here on",
        "first call",
    ]


def test_dump_prints_stages(tmp_path) -> None:
    program = "import numpy as np, jitml\nprint(jitml.jit(lambda x: x + 1)(np.ones(3)))"
    file = tmp_path / "program.py"
    file.write_text(program)
    done = subprocess.run(
        [sys.executable, str(file)], env={**os.environ, "JITML_DUMP": "graph,memory"}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[2. 2. 2.]\n"
    assert "--- graph\ngraph(a: f64[3])" in done.stderr and "--- memory" in done.stderr


def test_what_answers_the_call_is_explained() -> None:
    @jitml.jit
    def repeated(x: Any, n: int) -> Any:
        for i in range(n):
            x = x + i
        return x

    x = np.ones(4)
    for n in (3, 5, 7):
        repeated(x, n)
    assert len(repeated.variants) == 2
    text = jitml.explain(repeated, x, 9)
    assert "n is 9" not in text and "n is of type int" in text
    assert "n is 3" in jitml.explain(repeated, x, 3)


def test_lowered_shows_itself_in_a_line() -> None:
    lowered = jitml.jit(lambda x: x + 1).lower(np.ones(3))
    assert (told := re.fullmatch(r"<Lowered: \d nodes, 1 steps; print its (.*)>", repr(lowered))) is not None
    assert all(getattr(lowered, stage.removeprefix(".")) for stage in told[1].split())
    interpreted = pipeline.lower(lowered.traced, backend_named("interpreter"))
    assert interpreted.python == interpreted.text("python") != ""


def breaking(x):
    y = np.sin(x)
    z = time.perf_counter()
    return y * 2 + z


def of_names(x):
    return eval("x") + 1


def numbers(x):
    for i in range(3):
        yield x * i


@pytest.mark.loose
@pytest.mark.parametrize("wrap", [lambda f: f, jitml.jit], ids=["plain", "jitted"])
def test_a_function_that_breaks_is_explained_before_it_is_called(wrap: Any) -> None:
    told = jitml.explain(wrap(breaking), X)
    first = breaking.__code__.co_firstlineno
    assert told.splitlines()[0] == "<jit breaking, 0 variants>: 2 sections, 1 break"
    assert f"line {first + 2} runs as Python: z = time.perf_counter()" in told
    assert "When it is called, other lines may turn out to run as Python, too." in told


@pytest.mark.loose
@pytest.mark.parametrize("f", [of_names, lambda x: x + time.perf_counter()])
def test_a_function_that_cannot_be_split_is_explained(f: Any) -> None:
    jitted = jitml.jit(f)
    told = jitml.explain(jitted, X)
    assert "runs as Python: it cannot be compiled, nor be split into sections" in told.splitlines()[0]
    assert "would run only once" in told.splitlines()[1] and "JM106: python -m jitml help JM106" in told
    assert not [*jitted.splits]  # nothing is kept
    jitted(X)
    assert jitml.explain(jitted, X) == told  # and so it is afterwards


@pytest.mark.loose
def test_a_generator_is_explained_before_it_is_called() -> None:
    assert jitml.explain(numbers, X).startswith("<jit numbers, 0 variants>: ")


@pytest.mark.loose
def test_a_derivative_that_is_taken_on_a_tape_is_explained() -> None:
    slope = jitml.grad(lambda x: (x * time.perf_counter()).sum())
    for told in (jitml.explain(slope, X), jitml.jit(slope).explain(X)):
        assert "runs as Python, on a tape" in told.splitlines()[0] and "perf_counter" in told


def test_what_a_call_refuses_explain_refuses() -> None:
    with pytest.raises(jitml.UnsupportedError, match="would run only once"):
        jitml.explain(jitml.jit(breaking, strict=True), X)
    with pytest.raises(jitml.UnsupportedError, match="would run only once"):
        jitml.explain(jitml.vmap(breaking), X)


def test_who_forgets_the_arguments_is_told() -> None:
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'x'\nexplain takes .* jitml\.explain\(f, x\)"):
        jitml.explain(lambda x: x + 1)
    with pytest.raises(TypeError, match=r"argument: 'y'$"):
        jitml.explain(lambda x, y: x + y, X)
