"""How much of LLVM pays?  Compile time and speed of kernels at each level of code generation, with and without its optimiser.

    PYTHONPATH=src python bench/code_generation.py [--markdown FILE]

Kernels are the emitter's own text, vectors and all, on data that stays in the caches. Compile times are CPU time of the thread
for parsing, optimising and generating code; speeds are the best wall-clock time per element of several rounds on one thread.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from jitml.codegen.llvm.module import emit_program
from jitml.codegen.llvm.runtime.cpu import host_cpu, llvm_binding, processor_name, target_machine
from jitml.codegen.llvm.runtime.jit import generate, link, prepare
from jitml.kernels.ir import Kernel
from jitml.kernels.text.parser import parse
from support.llvm_kernels import program_of

# (level of code generation, level of the optimiser before it)
SETTINGS: tuple[tuple[int, int | None], ...] = ((0, None), (1, None), (2, None), (2, 1))
ROUNDS = 12


def chain(operations: int, n: int = 2048) -> str:
    """A kernel of sums, differences and products, each of the one before and one of the five before that."""
    rng = random.Random(0)
    lines = ["let v0: f64 = x[i]"]
    for k in range(1, operations + 1):
        other = f"v{max(0, k - rng.randint(1, 5))}" if rng.random() < 0.5 else f"{1 + k / 1024}"
        lines.append(f"let v{k}: f64 = v{k - 1} {rng.choice('+-*')} {other}")
    body = "; ".join(lines)
    return f"kernel k(x: f64[{n}], y: f64[{n}]) {{ for i in 0:{n} vector {{ {body}; y[i] = v{operations} }} }}"


KERNELS = {
    "chain of 10 operations": chain(10),
    "chain of 100": chain(100),
    "chain of 1000": chain(1000),
    "sum": """kernel k(x: f64[4096], s: f64[]) {
      cell a: f64 = 0.0; for i in 0:4096 vector { a add= x[i] }; s[] = a }""",
    "sums of short rows": """kernel k(x: f64[300, 13], s: f64[300]) { for r in 0:300 {
      cell a: f64 = 0.0; for i in 0:13 vector { a add= x[r, i] }; s[r] = a } }""",
    "sums of columns": """kernel k(x: f64[64, 64], s: f64[64]) { for i in 0:64 vector {
      cell a: f64 = 0.0; for r in 0:64 { a add= x[r, i] }; s[i] = a } }""",
    "five-point stencil": """kernel k(x: f64[64, 64], y: f64[64, 64]) { for r in 1:63 { for i in 1:63 vector {
      y[r, i] = 0.2 * (x[r, i] + x[r, i - 1] + x[r, i + 1] + x[r - 1, i] + x[r + 1, i]) } } }""",
    "softmax of rows, f32": """kernel k(x: f32[64, 100], y: f32[64, 100]) { for i in 0:64 {
      cell m: f32 = -inf_f32; for j in 0:100 vector { m max= x[i, j] }
      cell s: f32 = 0.0_f32; for j in 0:100 vector { let e: f32 = exp(x[i, j] - m); y[i, j] = e; s add= e }
      for j in 0:100 vector { y[i, j] = y[i, j] / s } } }""",
    "products of 8 x 8": """kernel k(x: f64[100, 8, 8], y: f64[100, 8, 8], z: f64[100, 8, 8]) { for b in 0:100 { for i in 0:8 {
      for j in 0:8 vector { cell s: f64 = -0.0; for k in 0:8 unroll { s add= x[b, i, k] * y[b, k, j] }; z[b, i, j] = s } } } }""",
    "gather": """kernel k(n: i64[2048], x: f64[2048], y: f64[2048]) { for i in 0:2048 vector {
      y[i] = x[bit_and(n[i], 2047)] } }""",
    "every third element": """kernel k(x: f64[6144], y: f64[2048]) { for i in 0:2048 vector { y[i] = x[3 * i + 1] } }""",
}


def optimise(module: Any, level: int) -> None:
    """LLVM's standard pipeline; its own vectorisers are left off, for the loops are vectors already."""
    llvm = llvm_binding()
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.slp_vectorization = options.loop_interleaving = options.loop_unrolling = False
    builder = llvm.create_pass_builder(target_machine(host_cpu(), 2), options)
    builder.getModulePassManager().run(module, builder)


def measure(kernel: Kernel, level: int, optimiser: int | None) -> tuple[float, float]:
    """Milliseconds to compile, nanoseconds per element of the largest array."""
    parts = emit_program(program_of([kernel]), cpu=host_cpu()).parts
    start, objects = time.thread_time(), []
    for module, usual in (prepare(part, host_cpu()) for part in parts):
        if optimiser is not None:
            optimise(module, optimiser)
        objects.append(generate(module, host_cpu(), level=min(usual, 1) * level))
    compiling = time.thread_time() - start
    loaded = link(objects, imports={}, exports=["jitml_run"])
    entry = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3)(loaded["jitml_run"])
    arrays = [np.ones(b.shape, b.dtype) for b in kernel.params]
    table = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    best, repeats = float("inf"), 20
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(repeats):
            entry(table, None, None)
        best = min(best, (time.perf_counter() - start) / repeats)
    return 1e3 * compiling, 1e9 * best / max(array.size for array in arrays)


def table() -> str:
    """Each kernel's compile time and speed at each setting, as Markdown."""
    heads = [f"level {level}" + ("" if optimiser is None else f" after O{optimiser}") for level, optimiser in SETTINGS]
    lines = [f"| kernel | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    measure(parse(chain(3)), 2, 1)  # LLVM's tables
    for name, text in KERNELS.items():
        kernel = parse(text)
        cells = []
        for level, optimiser in SETTINGS:
            runs = [measure(kernel, level, optimiser) for _ in range(3)]
            cells.append(f"{min(r[0] for r in runs):.1f} / {min(r[1] for r in runs):.3f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, help="write the table to this file")
    options = parser.parse_args()
    text = f"# Code generation\n\n{processor_name()}, {date.today()}: compile time in ms / ns per element.\n\n{table()}\n"
    print(text)
    if options.markdown:
        options.markdown.write_text(text)


if __name__ == "__main__":
    main()
