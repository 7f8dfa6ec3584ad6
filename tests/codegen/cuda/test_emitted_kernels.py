"""Kernels as CUDA C++, run by emulation under every order of threads, give the bits of the interpreter of kernels."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.cuda.compiler import compile_cubin
from jitml.codegen.cuda.emit.program import emit_program
from jitml.codegen.cuda.schedule import SCHEDULER
from jitml.codegen.cuda.target import cuda_target
from jitml.errors import UnsupportedError
from jitml.fusion.fuse import fuse
from jitml.kernels.interpret import view_as
from jitml.kernels.ir import Kernel
from jitml.kernels.text.parser import parse
from jitml.memory.plan import plan
from support.cuda_emulation import KernelFault, build, has_compiler
from support.emitted_cuda import EmulatedKernel, module_of
from support.kernel_texts import BLOCK_KERNELS, KERNELS

Array = np.ndarray[Any, Any]
needs_compiler = pytest.mark.skipif(not has_compiler(), reason="no C++ compiler")

TEXTS = {
    **KERNELS,
    **BLOCK_KERNELS,
    # A long function many times, ahead of what depends on where arrays begin.
    "often": "\n".join(
        [
            "kernel often(x: f64[20], z: f32[256], y: f64[12], w: f32[256]) {",
            *(f"  y[{k}] = sin(x[{k + 5}])" for k in range(12)),
            "  for jo in 0:256:4 thread {",
            "    for j in jo:minimum(jo + 4, 256) vector {",
            "      w[j] = z[j] * 2.0_f32",
            "    }",
            "  }",
            "}",
        ]
    ),
    # What a thread loop stores, the next one reads shifted; the scratch is used again by the next block.
    "reversed": """\
kernel reversed(x: f64[3, 100], y: f64[3, 100]) {
  for i in 0:3 block {
    alloc t: f64[100] {
      for j in 0:100 thread {
        t[j] = x[i, j] * 2.0
      }
      for j in 0:100 thread {
        y[i, j] = t[99 - j]
      }
    }
  }
}""",
    # Scratch from iteration to iteration of a loop that all threads run together.
    "rotated": """\
kernel rotated(x: f64[100], y: f64[100]) {
  alloc a: f64[100] {
    alloc b: f64[100] {
      for j in 0:100 thread {
        a[j] = x[j]
      }
      for k in 0:5 {
        for j in 0:100 thread {
          b[j] = a[(j + 1) % 100]
        }
        for j in 0:100 thread {
          a[j] = b[j] + 1.0
        }
      }
      for j in 0:100 thread {
        y[j] = a[j]
      }
    }
  }
}""",
    # Sums of every dtype over threads, a store and a branch of one thread, and a loop that one thread runs for all.
    "totals": """\
kernel totals(x: f32[2, 300], k: i8[2, 300], h: f16[2, 300], y: f32[2, 4], c: i64[2]) {
  for i in 0:2 block {
    cell s: f32 = 1.0_f32
    cell n: i8 = 3_i8
    cell m: f16 = -inf_f16
    cell any: bool = false
    for j in 0:300 thread {
      s add= x[i, j]
      n add= k[i, j]
      m max= h[i, j]
      any or= x[i, j] > 0.99_f32
    }
    y[i, 0] = s
    y[i, 1] = f32(n)
    if any {
      y[i, 2] = f32(m)
    } else {
      y[i, 2] = -1.0_f32
    }
    cell found: i64 = 0
    for j in 0:4 {
      c[i] = i64(j) + found
      found = found + c[i]
    }
    y[i, 3] = f32(found)
  }
}""",
    # Vectors that are wide where arrays begin right, with a rest, in place, of several dtypes, and of rows that are not aligned.
    "wide": """\
kernel wide(x: f32[1003], b: bool[1003], h: f16[1003], z: f32[5, 7], y: f32[1003], w: f16[1003], q: f32[5, 7]) {
  for io in 0:1003:1024 block {
    for jo in io:minimum(io + 1024, 1003):4 thread {
      for j in jo:minimum(jo + 4, 1003) vector {
        let v: f32 = x[j] * 2.0_f32
        y[j] = select(b[j], v, x[j])
        w[j] = h[j] + f16(v)
      }
    }
  }
  for i in 0:5 block {
    for jo in 0:7:4 thread {
      for j in jo:minimum(jo + 4, 7) vector {
        q[i, j] = z[i, j] + 1.0_f32
      }
    }
  }
}""",
    # Loops of two block axes, whose numbers are taken apart; steps and starts that are not 1 and 0.
    "nested": """\
kernel nested(x: i32[12, 9], y: i32[12, 9]) {
  for i in 2:12:3 block {
    for k in 1:9:2 block {
      y[i, k] = x[i, k] // 3_i32 + x[i - 1, k - 1] % 5_i32
    }
  }
}""",
    # More scratch than a kernel has without asking: what it asks for is the launch's.
    "scratch_of_56_kib": """\
kernel scratch_of_56_kib(x: f64[2, 7000], y: f64[2, 7000]) {
  for i in 0:2 block {
    alloc t: f64[7000] {
      alloc u: f32[100] {
        for j in 0:7000 thread {
          t[j] = x[i, j] + 1.0
        }
        for j in 0:100 thread {
          u[j] = f32(t[j * 70])
        }
        for j in 0:7000 thread {
          y[i, j] = t[6999 - j] + f64(u[j % 100])
        }
      }
    }
  }
}""",
    # Loops that never run: what is added up is nothing, and nothing is stored.
    "empty": """\
kernel empty(x: f64[8], y: f64[8], s: f64[3]) {
  for i in 3:3 block {
    for j in 0:8 thread {
      y[j] = 0.0
    }
  }
  for i in 0:3 block {
    cell t: f64 = 1.0
    for j in 5:5 thread {
      t add= x[j]
      y[j] = 0.0
    }
    for jo in 0:0:4 thread {
      for j in jo:jo + 4 vector {
        y[j] = 0.0
      }
    }
    s[i] = t
  }
  for i in 2:2 block {
    y[i] = 0.0
  }
}""",
    # Limits that memory holds, of a loop for many blocks, and of one for the threads of one.
    "open": """\
kernel open(n: i64[], x: f64[50], y: f64[50]) {
  let m: i64 = minimum(maximum(n[], 3), 50)
  for i in 0:m block {
    y[i] = x[i] * 2.0
  }
}""",
    "open_total": """\
kernel open_total(n: i64[], x: f64[50], s: f64[]) {
  let m: i64 = minimum(maximum(n[], 3), 50)
  cell t: f64 = 0.0
  for i in 0:m thread {
    t add= x[i]
  }
  s[] = t
}""",
}
CHECKED = """\
kernel checked(x: f64[40], k: i64[40], y: f64[40]) {
  for i in 0:2 block {
    for j in 0:20 thread {
      let n: i64 = k[i * 20 + j]
      check bit_and(n >= 0, n < 40), IndexError, 'index {} at {}', n, j
      y[i * 20 + j] = x[n]
    }
    for j in 0:20 thread {
      y[i * 20 + j] = y[i * 20 + j] + x[k[i * 20 + j]]
    }
  }
}"""


def arrays_for(kernel: Kernel, seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    arrays = {}
    for b in kernel.params:
        numbers = rng.random(b.reach) if b.dtype.kind == "f" else rng.integers(0, 2 if b.dtype.kind == "b" else 4, b.reach)
        arrays[b.name] = view_as(np.asarray(numbers).astype(b.dtype), b)
    return arrays


@pytest.fixture(scope="module")
def emulated() -> dict[str, EmulatedKernel]:
    """All kernels of this file, by name, with pointers that may or may not be aligned, and that certainly are."""
    kernels = {name: parse(text) for name, text in {**TEXTS, "checked": CHECKED}.items()}
    modules = {name: module_of(kernel) for name, kernel in kernels.items()}
    codes = build([module.source for module in modules.values()])
    return {name: EmulatedKernel(kernels[name], modules[name], code) for name, code in zip(kernels, codes, strict=True)}


@needs_compiler
@pytest.mark.parametrize("name", TEXTS)
def test_emulation_gives_the_interpreters_answer(name: str, emulated: dict[str, EmulatedKernel]) -> None:
    kernel = emulated[name].kernel
    emulated[name].compare(arrays_for(kernel))


@needs_compiler
def test_arrays_that_begin_anywhere_are_accessed_one_by_one(emulated: dict[str, EmulatedKernel]) -> None:
    """The emulation faults where 16 bytes are read at another address than a multiple of 16."""
    kernel = emulated["wide"]
    arrays = arrays_for(kernel.kernel)
    for name in ("x", "y", "h", "b"):
        shifted = np.empty(arrays[name].size + 1, arrays[name].dtype)[1:]
        shifted[:] = arrays[name]
        arrays[name] = shifted
    EmulatedKernel(kernel.kernel, kernel.module, kernel.code, is_guarded=False).compare(arrays)


@needs_compiler
@pytest.mark.parametrize("n", [-5, 0, 17, 50, 1000])
def test_sizes_in_memory_are_kept_within_their_limits(n: int, emulated: dict[str, EmulatedKernel]) -> None:
    for name in ("open", "open_total"):
        arrays = arrays_for(emulated[name].kernel)
        arrays["n"][...] = n
        emulated[name].compare(arrays)


@needs_compiler
def test_a_check_ends_a_block_before_it_goes_astray(emulated: dict[str, EmulatedKernel]) -> None:
    checked = emulated["checked"]
    arrays = arrays_for(checked.kernel)
    checked.compare(arrays)
    arrays["k"][27] = 1 << 40  # what is beside the array faults
    for order in (0, 1, 3):
        with pytest.raises(IndexError, match="index 1099511627776 at 7"):
            checked.run(arrays, order)


@needs_compiler
@pytest.mark.parametrize("name", ["blocks", "reversed", "rotated"])
def test_kernels_without_barriers_are_noticed(name: str) -> None:
    kernel = parse(TEXTS[name])
    module = module_of(kernel, has_barriers=False)
    (code,) = build([module.source])
    with pytest.raises((AssertionError, KernelFault)):
        EmulatedKernel(kernel, module, code).compare(arrays_for(kernel))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_nvrtc_takes_the_same_text(arch: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    for name in ("blocks", "totals", "wide") if arch == "sm_90" else ("wide",):
        for entry, found in compile_cubin(module_of(parse(TEXTS[name])).source, arch).resources.items():
            assert found.frame == 0, entry  # neither spills nor arrays that no register can hold


def test_what_a_block_cannot_have_is_refused() -> None:
    text = TEXTS["scratch_of_56_kib"].replace("7000", "70000")
    with pytest.raises(UnsupportedError, match="more scratch than the shared memory of a block has"):
        module_of(parse(text))
    (launch,) = (x for launches in module_of(parse(TEXTS["scratch_of_56_kib"])).launches.values() for x in launches)
    assert launch.shared == 7000 * 8 + 100 * 4


def test_kernels_that_differ_in_names_alone_share_their_functions() -> None:
    def layers(x: Any, y: Any) -> tuple[Any, ...]:
        return np.exp(np.cumsum(x, axis=0)).sum(axis=1), np.exp(np.cumsum(y, axis=0)).sum(axis=1)

    graph = jitml.jit(layers).lower(np.ones((30, 30)), np.ones((30, 30))).traced
    kernels = fuse(graph, scheduler=SCHEDULER, target=cuda_target())
    module = emit_program(plan(kernels))
    entries = [launch.entry for launches in module.launches.values() for launch in launches]
    assert len(entries) == 2 and len(set(entries)) == 1 == module.source.count('extern "C"')
    (first, second) = (launch.buffers for launches in module.launches.values() for launch in launches)
    assert not {*first} & {*second}


def test_kernels_of_other_elements_share_a_function() -> None:
    def joints(a: Any, x: Any) -> Any:
        for k in (0, 1, 2, 3):
            x = np.linalg.solve(np.array([[np.cos(a[k, 0]), -np.sin(a[k, 1])], [np.sin(a[k, 1]), np.cos(a[k, 0])]]), x)
        return x

    graph = jitml.jit(joints).lower(np.ones((4, 2)), np.ones((2, 30))).traced
    module = emit_program(plan(fuse(graph, scheduler=SCHEDULER, target=cuda_target())))
    launches = [launch for launches in module.launches.values() for launch in launches]
    assert len(launches) == 4 and len({launch.entry for launch in launches}) == 1 == module.source.count('extern "C"')
    assert [launch.starts for launch in launches] == [(), (16, 0), (32, 0), (48, 0)]
    alone = jitml.jit(lambda a: a[3, 1] + a[3, 0]).lower(np.ones((4, 2))).traced
    source = emit_program(plan(fuse(alone, scheduler=SCHEDULER, target=cuda_target()))).source
    assert "a[7]" in source  # where nothing is shared, elements keep their places


def test_long_functions_are_called_where_they_stand_often() -> None:
    source = module_of(parse(TEXTS["often"])).source
    text = source[source.index('extern "C"') :]
    assert text.count("ji_sin_f64_called(") == 12 and "ji_sin_f64(" not in text
    assert "__noinline__ double ji_sin_f64_called(double x) { return ji_sin_f64(x); }" in source
    assert (
        text.index("y[11]") < text.index("ji_aligned(z)") < text.index("ji_load<wide>")
    )  # and once, though arrays may begin anywhere
    few = TEXTS["often"].replace("sin(", "cos(", 6)
    assert "_called(" not in module_of(parse(few)).source


def test_the_text_says_what_it_knows() -> None:
    """Indices are ints, what is only read is const, and what nothing else may be is restrict; the user's names stand in it."""
    source = module_of(parse(TEXTS["wide"])).source
    text = source[source.index('extern "C"') :]
    assert "const float* __restrict__ x" in text and "float* __restrict__ y" in text
    assert "i64" not in text and "ji_load<wide>(x_near, x + jo)" in text
    assert "z_near" not in text and re.search(r"q\[i_?\d* \* 7 \+ j_?\d*\] = ", text)  # rows of 7 begin anywhere
    aligned = module_of(parse(TEXTS["wide"]), is_aligned=True).source
    assert "constexpr bool wide" not in aligned and "ji_load<true>(x_near, x + jo)" in aligned


def test_what_other_threads_may_have_written_is_not_restrict() -> None:
    """NVRTC would keep what a thread has read of it across barriers."""

    def diffuse(x: Any) -> Any:
        for _ in range(100):
            x[1:-1] = x[2:] + x[:-2]
        return x

    graph = jitml.jit(diffuse).lower(np.ones(300)).traced
    source = emit_program(plan(fuse(graph, scheduler=SCHEDULER, target=cuda_target()))).source
    assert "__syncthreads" in source and re.search(r"k0_loop\(double\* \w+\)", source)
