"""Fourier transforms on a GPU, run by the emulation: NumPy's answers in every order of threads, for every kind of length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from jitml.codegen.cuda.calls.calls import plan_call
from jitml.codegen.cuda.calls.fft import radices
from jitml.codegen.cuda.calls.plan import HostWork
from jitml.ir.op import OPS
from jitml.ir.ops.host import HostFunction, Routine
from jitml.ir.types import Aval
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call, KernelProgram
from support.cuda_calls import Case, check, placed, program_of
from support.cuda_emulation import has_compiler

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(5)


def _packed(x: Array) -> Array:
    return np.stack([x.real, x.imag], axis=-1) if np.iscomplexobj(x) else x


def _program(name: str, x: Array, form: str, result: Array, steps: Sequence[Any], **params: Any) -> KernelProgram:
    operands = {"real": [x], "packed": [_packed(x)], "apart": [x.real, x.imag]}[form]
    reads = [Buffer(n, part.dtype, part.shape, step) for n, part, step in zip("ab", operands, steps)]
    target = Buffer("y", _packed(result).dtype, _packed(result).shape, steps[-1])
    routine = Routine(name, params, (form,))
    function = HostFunction(name, tuple, (Aval(target.shape, target.dtype),), routine=routine)
    call = Call("host", tuple(b.name for b in reads), ("y",), {"function": function, "shapes": tuple(b.shape for b in reads)})
    return program_of([*reads, target], call)


def _case(name: str, x: Array, form: str = "", **params: Any) -> Case:
    form = form or ("packed" if np.iscomplexobj(x) else "real")
    wanted = np.asarray(OPS[name].evaluate(x, **params))
    memory = {"real": [x], "packed": [_packed(x)], "apart": [x.real.copy(), x.imag.copy()]}[form]
    held = dict(zip("ab", memory)) | {"y": np.full_like(_packed(wanted), 7)}
    error = float(abs(wanted[np.isfinite(wanted)]).max(initial=1)) * (2e-6 if memory[0].dtype == np.float32 else 2e-15)
    return Case(_program(name, x, form, wanted, (None,) * 3, **params), held, "y", _packed(wanted), error)


def _complex(*shape: int, dtype: str = "c16") -> Array:
    return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype)


def _real(*shape: int, dtype: str = "f8") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


def _cases() -> list[Case]:
    cases = [_case("fft", _complex(2, n), axes=(1,), inverse=bool(n % 2)) for n in (1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 30)]
    cases += [_case("fft", _complex(3, n), axes=(1,), inverse=False) for n in (65, 128, 1000)]  # by rows
    cases += [
        _case("fft", _complex(2, 1000, dtype="c8"), axes=(1,), inverse=True),
        _case("fft", _complex(4096), axes=(0,), inverse=True),
    ]
    cases += [_case("fft", _complex(2, n, 3), axes=(1,), inverse=False) for n in (6, 96)]
    cases += [_case("fft", _complex(4, 6, 100), axes=axes, inverse=True) for axes in ((0, 1, 2), (2, 0), (1, 2))]
    cases += [
        _case("fft", _real(5, 12), axes=(0, 1), inverse=False),
        _case("fft", _real(3, 88, dtype="f4"), axes=(1,), inverse=False),
    ]
    cases += [
        _case("fft", _complex(3, 8), "apart", axes=(1,), inverse=False),
        _case("fft", _complex(5, 1, 1), axes=(1,), inverse=False),
    ]
    for n in (1, 2, 7, 8, 70, 121):
        cases += [_case("rfft", _real(2, n), axis=1), _case("rfft", _real(n, 3), axis=0)]
        cases += [
            _case("irfft", _complex(2, n // 2 + 1), axis=1, n=n),
            _case("irfft", _complex(n // 2 + 1, 3), "apart", axis=0, n=n),
        ]
    for n in (7, 8, 21, 16, 48, 90, 128, 1024):
        x = _complex(n // 2 + 1)
        x[0] = complex(1, np.nan)
        x[-1] = complex(1, np.inf) if n % 2 == 0 else x[-1]
        cases.append(_case("irfft", x, axis=0, n=n))
    for x in (np.array([1.0, np.nan, 2, 3]), np.array([1.0, np.inf, 2, 3]), np.zeros(6), np.array([-0.0, 0, -0.0])):
        with np.errstate(all="ignore"):
            cases.append(_case("rfft", x, axis=0))
    return cases


@pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")
def test_transforms_are_numpys() -> None:
    check(_cases())


@pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")
def test_operands_and_results_may_have_strides_of_their_own() -> None:
    x = _complex(3, 8)
    case = _case("fft", x, axes=(1,), inverse=False)
    program = _program("fft", x, "packed", x, ((2, 6, 1), None, (2, 8, 1)), axes=(1,), inverse=False)
    memory = {"a": np.zeros(48), "y": np.zeros(64)}
    placed(memory["a"], program.buffers["a"])[...] = _packed(x)
    wanted = memory["y"].copy()
    placed(wanted, program.buffers["y"])[...] = case.wanted
    check([Case(program, memory, "y", wanted, 1e-13)])


def test_radices_are_the_factors() -> None:
    for n in range(1, 2000):
        factors = radices(n)
        rest = n
        for prime in (2, 3, 5, 7, 11, 13):
            while rest % prime == 0:
                rest //= prime
        assert (factors is None) == (rest > 1), n
        assert factors is None or (np.prod(factors) == n and set(factors) <= {1, 2, 3, 4, 5, 7, 8, 11, 13}), n


def test_lengths_with_large_factors_are_pythons() -> None:
    for n, is_hosts in ((17, True), (16, False), (4 * 19, True)):
        case = _case("fft", _complex(2, n), axes=(1,), inverse=False)
        work = plan_call(case.program.steps[0], case.program, "call").work  # type: ignore[arg-type]
        assert any(isinstance(w, HostWork) for w in work) == is_hosts, n
