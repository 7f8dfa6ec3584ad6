"""NVRTC compiles the functions of all calls for every architecture that counts, without spilling a register."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from jitml.ir.ops.host import HostFunction, Routine
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call, KernelProgram
from support.cuda_calls import plans_of, program_of
from support.effort import FULL

pytest.importorskip("cuda.bindings.nvrtc")

F32, F64 = np.dtype("f4"), np.dtype("f8")
I64 = np.dtype("i8")


def _product(dtype: np.dtype, m: int, n: int, k: int, turned: str = "") -> KernelProgram:  # type: ignore[type-arg]
    params = {"m": m, "n": n, "k": k, "batch": ()}
    buffers = []
    for a, rows, columns in (("a", m, k), ("b", k, n), ("c", m, n)):
        row, col = (1, rows) if a in turned else (columns, 1)
        params |= {f"{a}_row": row, f"{a}_col": col, f"{a}_batch": (), f"{a}_offset": 0}
        buffers.append(Buffer(a, dtype, (rows, columns)))
    return program_of(buffers, Call("gemm", ("a", "b"), ("c",), params))


def _sort(name: str, dtype: np.dtype, n: int) -> KernelProgram:  # type: ignore[type-arg]
    buffers = [Buffer("x", dtype, (4, n)), Buffer("y", I64 if name == "argsort" else dtype, (4, n))]
    return program_of(buffers, Call(name, ("x",), ("y",), {"axis": 1, "kind": "stable"}))


def _copy(dtype: np.dtype, *strides: tuple[int, ...] | None) -> KernelProgram:  # type: ignore[type-arg]
    buffers = [Buffer(name, dtype, (64, 96), steps) for name, steps in zip("yx", strides, strict=True)]
    return program_of(buffers, Call("copy", ("x",), ("y",), {}))


def _scan(dtype: np.dtype, shape: tuple[int, ...], axis: int) -> KernelProgram:  # type: ignore[type-arg]
    buffers = [Buffer("x", dtype, shape), Buffer("y", dtype, shape)]
    return program_of(buffers, Call("scan", ("x",), ("y",), {"axis": axis, "combine": "add", "reverse": False}))


def _scatter(dtype: np.dtype, count: int, combine: str) -> KernelProgram:  # type: ignore[type-arg]
    buffers = [Buffer("v", dtype, (count,)), Buffer("i", I64, (count,)), Buffer("y", dtype, (100,))]
    params = {"axis": 0, "combine": combine, "sized": False, "shapes": ((count,), (count,))}
    return program_of(buffers, Call("scatter", ("v", "i"), ("y",), params))


def _compact(dtype: np.dtype, shape: tuple[int, ...]) -> KernelProgram:  # type: ignore[type-arg]
    mask, out = Buffer("m", np.dtype(bool), shape[:1]), Buffer("y", dtype, shape)
    sizes = Buffer("n", I64, (1 + len(shape),))
    params = {"axis": 0, "shapes": (mask.shape, shape), "sized": True}
    return program_of([mask, Buffer("x", dtype, shape), sizes, out], Call("compact", ("m", "x", "n"), ("y",), params))


def _routine(name: str, dtype: np.dtype, n: int) -> KernelProgram:  # type: ignore[type-arg]
    shapes = {"solve": {"b": (n, 4), "y": (n, 4)}, "cholesky": {"y": (n, n)}, "det": {"y": ()}, "slogdet": {"y": (), "z": ()}}
    buffers = [Buffer("a", dtype, (n, n)), *(Buffer(b, dtype, shape) for b, shape in shapes[name].items())]
    reads, writes = (tuple(b.name for b in buffers if b.name in names) for names in ("ab", "yz"))
    function = HostFunction(name, tuple, (), routine=Routine(name, {}, ("real",) * len(reads)))
    params = {"function": function, "shapes": tuple(b.shape for b in buffers if b.name in "ab")}
    return program_of(buffers, Call("host", reads, writes, params))


def _solver(name: str, m: int, n: int, results: dict[str, tuple[int, ...]], **params: object) -> KernelProgram:
    """A routine of complex matrices that only a library does; results of three axes are packed."""
    read, writes = Buffer("a", F64, (m, n, 2)), [Buffer(x, F64, shape) for x, shape in results.items()]
    function = HostFunction(name, tuple, (), routine=Routine(name, params, ("packed",)))
    call = Call("host", ("a",), tuple(results), {"function": function, "shapes": (read.shape,)})
    return program_of([read, *writes], call)


def _transform(name: str, dtype: np.dtype, *shape: int, form: str = "packed", **params: object) -> KernelProgram:  # type: ignore[type-arg]
    result = shape if name == "irfft" else (*shape, 2)
    read = Buffer("a", dtype, (*shape, 2) if form == "packed" else shape)
    function = HostFunction(name, tuple, (), routine=Routine(name, params, (form,)))
    return program_of(
        [read, Buffer("y", dtype, result)], Call("host", ("a",), ("y",), {"function": function, "shapes": (read.shape,)})
    )


def _programs() -> Iterator[KernelProgram]:
    yield _product(F32, 4096, 4096, 512, "b")
    yield _product(F64, 512, 512, 512, "a")
    yield _product(F32, 64, 64, 4096)
    yield _product(F32, 4096, 1, 8192)
    yield _product(F64, 4096, 1, 8192, "a")
    yield _product(F32, 8, 8, 8)
    yield _sort("sort", F32, 9000)
    yield _sort("argsort", F64, 9000)
    yield _copy(F32, None, None)
    yield _copy(F64, None, (1, 64))
    yield _scan(F64, (1, 100_000), 1)
    yield _scan(F32, (300, 20), 0)
    yield _scatter(I64, 5000, "add")
    yield _scatter(F32, 5000, "add")
    yield _scatter(F32, 5000, "set")
    yield _compact(F64, (100_000,))
    yield _compact(F32, (5000, 30))
    yield from map(_routine, ("solve", "solve", "cholesky", "slogdet", "det"), (F64, F32, F64, F32, F64), (9, 300, 72, 9, 300))
    yield _solver("eigh", 90, 90, {"w": (90,), "v": (90, 90, 2)}, lower=True)
    yield _solver("svd", 60, 90, {"u": (60, 60, 2), "s": (60,), "v": (90, 90, 2)}, full=True)
    yield _solver("qr", 90, 60, {"q": (90, 60, 2), "r": (60, 60, 2)}, complete=False)
    yield _solver("slogdet", 90, 90, {"s": (2,), "l": ()})
    yield _transform("fft", F64, 16, 1000, axes=(1,), inverse=False)
    yield _transform("fft", F32, 1 << 20, axes=(0,), inverse=True)
    yield _transform("fft", F64, 13 * 11 * 7, 5, axes=(0, 1), inverse=True)
    yield _transform("rfft", F32, 64, 2000, form="real", axis=1)
    numbers = [Buffer("g", I64, ()), Buffer("g2", I64, ()), Buffer("u", F64, (1 << 20,))]
    yield program_of(numbers, Call("random", ("g",), ("g2", "u"), {"routine": "jitml_uniform_f64", "count": 1 << 20}))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"] if FULL else ["sm_90"])
def test_no_function_spills(arch: str) -> None:
    from jitml.codegen.cuda.compiler import compile_cubin

    text, plans = plans_of(list(_programs()))
    resources = compile_cubin(text, arch).resources
    launches = [launch for plan in plans for launch in plan.launches]
    assert {launch.entry for launch in launches} == resources.keys()
    for launch in launches:
        used = resources[launch.entry]
        assert used.frame == 0, (launch.entry, used)
        assert used.parameters == (8,) * (len(launch.buffers) + len(launch.numbers) + launch.has_error), launch
        assert used.shared <= 48 * 1024
    assert max(used.registers for used in resources.values()) <= 144
