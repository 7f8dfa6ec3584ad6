"""The seam before back ends: programs run by the interpreter under `jit`, and by a third back end; each is emitted once."""

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.backend import Backend, CodeOptions, Executable, backend_named, chosen_backend
from jitml.codegen.llvm.runtime import backend as llvm_backend
from jitml.codegen.llvm.runtime import compiler as llvm_compiler
from jitml.codegen.run.calling import RunNeeds
from jitml.config import BACKENDS, CONFIG, STAGES, ConfigError, read
from jitml.fusion.schedule import SERIAL
from jitml.ir.text.parser import parse
from jitml.kernels.target import Accepts, Target
from jitml.memory.program import Program
from jitml.pipeline import compile_graph, lower
from programs.corpus import load

GRAPH = parse(
    """
    graph(x: f64[3,40], y: f64[40,20]) {
      z: f64[3,20] = dot_general x y {batch=((), ()), contract=((1,), (0,))}
      return z
    }
    """
)

SUM = parse(
    """
    graph(x: f64[3]) {
      y: f64[] = reduce_sum x {axes=(0,)}
      return y
    }
    """
)


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("jitml.codegen.backend.CONFIG", replace(CONFIG, backend="interpreter"))
    yield


def test_the_table_and_the_back_ends_agree() -> None:
    for name, (_, texts) in BACKENDS.items():
        backend = backend_named(name)
        assert (backend.name, backend.stages) == (name, texts) and set(texts) < set(STAGES)
    assert chosen_backend() is backend_named(CONFIG.backend)
    assert read({"JITML_BACKEND": "interpreter"}).backend == "interpreter"


def test_unknown_names_get_the_list_of_those_that_exist() -> None:
    with pytest.raises(jitml.UnsupportedError, match=r"no back end tpu\n.*There are llvm, interpreter, cuda\."):
        backend_named("tpu")
    with pytest.raises(ConfigError, match=r"JITML_BACKEND='tpu' is no back end\n.*There are llvm, interpreter, cuda\."):
        read({"JITML_BACKEND": "tpu"})
    lowered = lower(GRAPH, backend_named("interpreter"))
    with pytest.raises(jitml.UnsupportedError, match=r"no stage llvm of a program for interpreter\n.*memory, python\."):
        lowered.text("llvm")


@pytest.mark.parametrize("name", BACKENDS)
def test_stages_by_name(name: str) -> None:
    if name == "cuda":
        pytest.importorskip("cuda.bindings.nvrtc")
    lowered = lower(SUM, backend_named(name))
    texts = {stage: lowered.text(stage) for stage in lowered.stages}
    assert all(texts.values()) and texts["kernels"] == lowered.kernels
    contents = {"llvm": "@jitml_run", "interpreter": "def kernel(arrays):", "cuda": "__global__"}
    assert contents[name] in texts[backend_named(name).stages[0]]


def test_the_environment_picks_one_and_the_others_are_not_brought() -> None:
    what = ("llvmlite", "jitml.codegen.llvm.module", "jitml.codegen.llvm.runtime.backend")
    program = f"import sys, jitml; print(jitml.jit(lambda x: x * 2)(1.5)); print([m for m in sys.modules if m in {what}])"
    environment = os.environ | {"JITML_BACKEND": "interpreter"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines() == ["3.0", "[]"]


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("name", ["jacobi_2d", "lu_pivoted", "mandelbrot_shrinking", "edit_distance", "monte_carlo_pi", "lstm"])
def test_programs_under_jit(name: str) -> None:
    program = load(name)
    jitted = jitml.jit(program.function, verify="never")
    given, plain = program.arguments("small", 0), program.arguments("small", 0)
    got, expected = jitted(*given), program.function(*plain)
    for mine, theirs in zip([*_leaves(got), *_leaves(given)], [*_leaves(expected), *_leaves(plain)], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8)
    (variant,) = jitted.variants
    assert not variant.replays and type(variant.executable).__name__ == "InterpretedCall"


@pytest.mark.usefixtures("interpreted")
def test_what_happens_around_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    rng, twin = np.random.default_rng(1), np.random.default_rng(1)

    def program(x: Any, k: int, rng: Any) -> Any:
        print("drawing")
        x += rng.normal(size=3)
        return x[k], np.linalg.inv(np.diag(x))

    jitted = jitml.jit(program, verify="never")
    x, y = np.ones(3), np.ones(3)
    for k in (1, 2):
        got, expected = jitted(x, k, rng), program(y, k, twin)
        np.testing.assert_allclose(got[1], expected[1])
        assert got[0] == expected[0]
    np.testing.assert_array_equal(x, y)
    with pytest.raises(IndexError):
        jitted(x, 3, rng)
    with pytest.raises(IndexError):
        program(y, 3, twin)
    np.testing.assert_array_equal(x, y)  # nothing was drawn or written twice
    assert capsys.readouterr().out == 6 * "drawing\n"
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        jitml.jit(_divided)(np.zeros(2))
    with warnings.catch_warnings(), np.errstate(divide="raise"):
        warnings.simplefilter("error")  # as it would be, should the answer be called wrong
        with pytest.raises(FloatingPointError):
            jitml.jit(lambda x: 1.0 / x)(np.zeros(2))


@pytest.mark.usefixtures("interpreted")
def test_lengths_that_are_left_open() -> None:
    def program(x: Any) -> Any:
        x[1:] += x[:-1]
        return x.sum(axis=1), x.T @ x

    jitted = jitml.jit(program, dynamic=True, verify="never")
    for shape in ((4, 3), (7, 3), (2, 3)):
        x, y = np.ones(shape), np.ones(shape)
        for mine, theirs in zip([*jitted(x), x], [*program(y), y], strict=True):
            np.testing.assert_allclose(mine, theirs)
    assert len(jitted.variants) == 1


def _divided(x: Any) -> Any:
    with np.errstate(divide="raise"):
        return 1 / x


class _Recorded:
    """A back end that fills in the protocol and no more: modules are names of steps, programs give zeros."""

    name = "recorded"
    stages = ("steps",)
    target = Target("a machine without a library", calls={"sort": Accepts()})
    scheduler = SERIAL
    most_bytes = None

    def emit(self, program: Program, options: CodeOptions) -> tuple[str, ...]:
        return tuple(step.name for step in program.kernels.steps)

    def load(self, program: Program, module: tuple[str, ...], options: CodeOptions, needs: RunNeeds) -> Executable:
        return _Zeros(program)

    def compile(self, program: Program, options: CodeOptions, needs: RunNeeds) -> tuple[tuple[str, ...], Executable]:
        module = self.emit(program, options)
        return module, self.load(program, module, options, needs)

    def text(self, stage: str, module: tuple[str, ...]) -> str:
        return " ".join(module)


class _Zeros:
    def __init__(self, program: Program) -> None:
        self.program = program

    def __call__(self, *inputs: Any) -> list[Any]:
        buffers = self.program.kernels.buffers
        return [np.zeros(buffers[name].shape) for name in self.program.kernels.outputs]


def test_another_back_end_is_the_protocol_filled_in() -> None:
    backend: Backend[tuple[str, ...]] = _Recorded()
    lowered = lower(GRAPH, backend)
    assert lowered.text("steps") == "k0_reduce_sum"  # without a library's products
    assert "vector" not in lowered.kernels  # nor any schedule
    assert "gemm" in lower(GRAPH, backend_named("interpreter")).kernels
    np.testing.assert_array_equal(compile_graph(GRAPH, backend)(np.ones((3, 40)), np.ones((40, 20)))[0], np.zeros((3, 20)))


def test_a_program_is_emitted_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    emitted = []
    for module in (llvm_backend, llvm_compiler):
        emit = module.emit_program
        monkeypatch.setattr(
            module, "emit_program", lambda *args, emit=emit, **options: emitted.append(1) or emit(*args, **options)
        )
    monkeypatch.setattr("jitml.pipeline.CONFIG", replace(CONFIG, dump=frozenset(("llvm", "kernels"))))
    jitml.jit(lambda x: np.exp(x) + 1)(np.ones(3))
    assert len(emitted) == 1
    said = capsys.readouterr().err
    assert said.index("--- kernels") < said.index("--- llvm") < said.index("@jitml_run")
    lowered = jitml.jit(lambda x: np.exp(x) - 1).lower(np.ones(3))
    assert lowered.llvm == lowered.text("llvm")
    np.testing.assert_array_equal(lowered.compile()(np.zeros(3))[0], np.zeros(3))
    assert len(emitted) == 2


def _leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, (tuple, list)):
        for part in x:
            yield from _leaves(part)
    elif isinstance(x, (np.ndarray, np.generic, int, float)):
        yield x
