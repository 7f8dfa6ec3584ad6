"""Factorizations by cuSOLVER, in programs on an emulated device: a stand-in does by LAPACK what the library is asked for."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import cython_lapack

import jitml
from jitml.codegen.cuda.calls import solvers
from jitml.codegen.cuda.libraries import cusolver
from jitml.codegen.cuda.libraries.cusolver import CuSolver
from jitml.codegen.cuda.runtime import steps
from jitml.codegen.cuda.runtime.backend import BACKEND
from jitml.config import CONFIG
from jitml.errors import WrongResultWarning
from jitml.pipeline import lower
from support.cuda_emulation.device import EmulatedDevice, emulated
from support.cuda_emulation.host_library import has_compiler, shared_library
from support.effort import FULL

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")
SOURCE = Path(__file__).parents[3] / "support" / "fake_cusolver.cpp"
ROUTINES = {"sd": ("syev", "gesvd", "geqrf", "orgqr", "getrf", "getrs", "potrf")}
ROUTINES["cz"] = ("heev", "gesvd", "geqrf", "ungqr", "getrf", "getrs", "potrf")
RNG = np.random.default_rng(29)


def stand_in() -> CuSolver:
    """The library, whose LAPACK is SciPy's."""
    path = str(shared_library(SOURCE, "-std=c++20", "-O1"))
    given, name_of, address_of = ctypes.CDLL(path), ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    address_of.restype, address_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    for letters, routines in ROUTINES.items():
        for name in (letter + routine for letter in letters for routine in routines):
            capsule = cython_lapack.__pyx_capi__[name]
            given.fake_lapack(name.encode(), ctypes.c_void_p(address_of(capsule, name_of(capsule))))
    found = CuSolver(path)
    found.open()
    return found


class Asked(list[str]):
    """The functions that the library has been asked for, and what the host has done, in order."""

    def taken(self) -> list[str]:
        found = [*self]
        self.clear()
        return found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    """A stand-in takes part in programs of the emulated device."""
    library, names = stand_in(), Asked()
    run, on_host = CuSolver.run, steps._worked_on_host
    monkeypatch.setattr(CuSolver, "run", lambda self, function, *a: (names.append(function.name), run(self, function, *a)))
    monkeypatch.setattr(steps, "_worked_on_host", lambda work, *a: (names.append(work.name), on_host(work, *a)))
    monkeypatch.setattr(cusolver, "cusolver", lambda: library)
    monkeypatch.setattr("jitml.codegen.backend.CONFIG", replace(CONFIG, backend="cuda"))
    monkeypatch.setattr("jitml.verification.trial.CONFIG", replace(CONFIG, backend="cuda"))
    monkeypatch.setattr(EmulatedDevice, "has_libraries", True)
    with emulated(order=1):
        yield names
    library._functions.fake_results(0, ctypes.c_double(0.0))


def numbers(*shape: int, dtype: str = "f8") -> Any:
    x = RNG.standard_normal(shape)
    return (x + 1j * RNG.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


def spread(x: Any) -> Any:
    """The same matrix where neighbours lie apart, and rows from the last to the first."""
    room = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)[..., ::-1, ::2]
    room[...] = x
    return room


# Results that do not depend on signs of vectors, and those that are unique.


def hermitian(a: Any) -> Any:
    w, v = np.linalg.eigh(a)
    w_upper, v_upper = np.linalg.eigh(a, "U")
    again = (v * w[..., None, :]) @ v.conj().swapaxes(-1, -2), (v_upper * w_upper[..., None, :]) @ v_upper.conj().swapaxes(-1, -2)
    return w, w_upper, *again, abs(v), np.linalg.eigvalsh(a), np.linalg.eigvalsh(a, "U")


def singular(a: Any) -> Any:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    whole_u, whole_s, whole_vh = np.linalg.svd(a)
    unit = whole_u @ whole_u.conj().swapaxes(-1, -2), whole_vh @ whole_vh.conj().swapaxes(-1, -2)
    return (u * s[..., None, :]) @ vh, s, whole_s, *unit, abs(u), abs(vh), np.linalg.svd(a, compute_uv=False)


def orthogonal(a: Any) -> Any:
    return *np.linalg.qr(a), *np.linalg.qr(a, "complete")


def derived(a: Any) -> Any:
    found = np.linalg.norm(a, 2), np.linalg.norm(a, "nuc"), np.linalg.matrix_rank(a), np.linalg.cond(a), np.linalg.pinv(a)
    return *found, np.linalg.lstsq(a, a[:, :2], rcond=None)[0]


def solved(a: Any, b: Any) -> Any:
    found = np.linalg.solve(a, b), np.linalg.inv(a), np.linalg.det(a), *np.linalg.slogdet(a)
    return *found, np.linalg.cholesky(a @ a.conj().swapaxes(-1, -2))


# Each with the functions that do it.
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], list[str]]] = {
    "hermitian f8": (hermitian, (spread(numbers(9, 9)),), ["Xsyevd"] * 4),
    "hermitian c16, a stack": (hermitian, (numbers(2, 2, 5, 5, dtype="c16"),), ["XsyevBatched"] * 4),
    "singular f8, tall": (singular, (spread(numbers(40, 7)),), ["Xgesvd"] * 3),
    "singular c16, wide": (singular, (numbers(5, 35, dtype="c16"),), ["Xgesvd"] * 3),
    "singular f4, a stack": (singular, (numbers(3, 6, 4, dtype="f4"),), ["SgesvdjBatched"] * 3),
    "orthogonal c16, tall": (orthogonal, (numbers(9, 4, dtype="c16"),), ["Xgeqrf", "Zungqr"] * 2),
    "orthogonal f8, a wide stack": (orthogonal, (numbers(2, 4, 9),), ["Xgeqrf", "Xgeqrf", "Dorgqr", "Dorgqr"] * 2),
    "derived": (derived, (numbers(9, 5),), ["Xgesvd"] * 6),
    "solved c16": (
        solved,
        (numbers(2, 6, 6, dtype="c16"), numbers(6, 3, dtype="c16")),
        [*["Xgetrf", "Xgetrf", "Xgetrs", "Xgetrs"] * 2, *["Xgetrf"] * 4, "Xpotrf", "Xpotrf"],
    ),
}
MORE: dict[str, tuple[Callable[..., Any], tuple[Any, ...], list[str]]] = {
    "hermitian f4": (hermitian, (numbers(6, 6, dtype="f4"),), ["Xsyevd"] * 4),
    "hermitian c8": (hermitian, (spread(numbers(6, 6, dtype="c8")),), ["Xsyevd"] * 4),
    "hermitian of one": (hermitian, (numbers(1, 1, dtype="c16"),), ["Xsyevd"] * 4),
    "singular c8, tall": (singular, (numbers(40, 7, dtype="c8"),), ["Xgesvd"] * 3),
    "singular f8, wide": (singular, (numbers(7, 40),), ["Xgesvd"] * 3),
    "singular of one": (singular, (numbers(1, 1),), ["Xgesvd"] * 3),
    "singular c16, a wide stack": (singular, (spread(numbers(2, 2, 4, 6, dtype="c16")),), ["ZgesvdjBatched"] * 3),
    "singular, a stack of large ones": (singular, (numbers(2, 40, 36),), ["Xgesvd"] * 6),
    "orthogonal f4": (orthogonal, (spread(numbers(6, 6, dtype="f4")),), ["Xgeqrf", "Sorgqr"] * 2),
    "orthogonal c8, wide": (orthogonal, (numbers(4, 9, dtype="c8"),), ["Xgeqrf", "Cungqr"] * 2),
    "derived c16": (derived, (numbers(9, 5, dtype="c16"),), ["Xgesvd"] * 6),
    "solved c8": (
        solved,
        (spread(numbers(6, 6, dtype="c8")), numbers(6, 1, dtype="c8")),
        ["Xgetrf", "Xgetrs", "Xgetrf", "Xgetrs", "Xgetrf", "Xgetrf", "Xpotrf"],
    ),
    "solved, large": (
        lambda a, b: (np.linalg.solve(a, b), *np.linalg.slogdet(a), np.linalg.cholesky(a @ a.T)),
        (numbers(530, 530), numbers(530, 2)),
        ["Xgetrf", "Xgetrs", "Xgetrf", "Xpotrf"],
    ),
}


def require_numpys(got: Any, wanted: Any) -> None:
    for x, y in zip(got, wanted, strict=True):
        single = np.asarray(y).dtype in (np.float32, np.complex64)
        size = float(np.max(abs(np.asarray(y)), initial=1))
        assert np.asarray(x).dtype == np.asarray(y).dtype
        np.testing.assert_allclose(x, y, rtol=0, atol=size * (1e-4 if single else 1e-10))


@needs_compiler
@pytest.mark.parametrize("name", CASES | MORE if FULL else CASES)
def test_results_are_numpys_and_the_librarys(name: str, asked: Asked) -> None:
    function, arguments, functions = (CASES | MORE)[name]
    require_numpys(jitml.jit(function, verify="never")(*arguments), function(*arguments))
    assert asked == functions


@pytest.mark.cuda
@pytest.mark.skipif("'cuda' not in jitml.devices()", reason="there is no GPU")
@pytest.mark.parametrize("name", CASES | MORE)
def test_results_on_a_gpu_are_numpys(name: str) -> None:
    function, arguments, _ = (CASES | MORE)[name]
    require_numpys(jitml.jit(function, device="cuda", verify="never")(*arguments), function(*arguments))


def _until_small(a: Any) -> Any:
    steps = 0
    while np.linalg.svd(a, compute_uv=False)[0] > 0.1:
        a = a / 2
        steps += 1
    return a, steps


def _in_place(a: Any) -> Any:
    for _ in range(3):
        a[:] = np.linalg.qr(a @ a)[0] + a.T
    return (a.sum(),)


def _loss(a: Any) -> Any:
    u, s, vh = np.linalg.svd(a)
    w, v = np.linalg.eigh(a @ a.T)
    return (u @ vh).sum() + s.sum() + (v**2 @ w).sum() + np.linalg.qr(a)[1].sum() + np.linalg.norm(a, 2)


PROGRAMS: dict[str, tuple[Callable[..., Any], Any]] = {
    "a loop that singular values end": (_until_small, numbers(6, 4)),
    "a loop over an argument that changes": (_in_place, numbers(5, 5)),
    "a derivative": (lambda a: (jitml.grad(_loss)(a),), numbers(5, 5)),
    "a batch": (lambda a: (jitml.vmap(np.linalg.eigvalsh)(a), jitml.vmap(lambda x: np.linalg.qr(x)[1])(a)), numbers(3, 4, 4)),
}


@needs_compiler
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_around_it_are_numpys(name: str, asked: Asked) -> None:
    function, given = PROGRAMS[name]
    wanted_argument, argument = given.copy(), given.copy()
    wanted = function(wanted_argument)
    jitted = jitml.jit(function, verify="never")
    for _ in range(2):
        argument[...] = given
        require_numpys(jitted(argument), wanted)
        require_numpys([argument], [wanted_argument])
    assert asked and not any(name.startswith("np.") for name in asked)


NAN = np.diag([1.0, np.nan, 3.0])


@needs_compiler
@pytest.mark.parametrize(
    ("function", "argument"),
    [
        (np.linalg.eigvalsh, NAN),
        (lambda a: np.linalg.svd(a)[1], NAN),
        (lambda a: np.linalg.svd(a)[1], np.stack([np.eye(3), NAN, np.full((3, 3), np.inf)])),
        (np.linalg.inv, np.stack([np.eye(3), np.ones((3, 3))]) + 0j),
        (np.linalg.cholesky, np.stack([np.eye(3), -np.eye(3)]) + 0j),
        (lambda a: np.linalg.qr(a)[1], NAN),
        (np.linalg.det, np.stack([np.ones((3, 3)), NAN, np.eye(3)]) + 0j),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_has_no_result_is_numpys_to_tell(function: Callable[..., Any], argument: Any, asked: Asked) -> None:
    def outcome(called: Callable[..., Any]) -> Any:
        try:
            return called(argument)
        except np.linalg.LinAlgError as error:
            return str(error)

    wanted = outcome(function)
    got = outcome(jitml.jit(function, verify="never"))
    assert asked and not any(name.startswith("np.") for name in asked)
    if isinstance(wanted, str):
        assert got == wanted
    else:
        np.testing.assert_allclose(got, wanted, atol=1e-12)


@needs_compiler
def test_iterations_that_do_not_converge_are_left_to_numpy(asked: Asked) -> None:
    a = numbers(2, 5, 5)
    for function in (np.linalg.eigvalsh, lambda a: np.linalg.svd(a, compute_uv=False)):
        jitted = jitml.jit(function, verify="never")
        np.testing.assert_allclose(jitted(a), function(a), atol=1e-12)
        library = cusolver.cusolver()
        assert library is not None
        library._functions.fake_results(2, ctypes.c_double(0.0))
        np.testing.assert_allclose(jitted(a), function(a), atol=1e-12)
        library._functions.fake_results(0, ctypes.c_double(0.0))
        (variant,) = jitted.variants
        assert len(variant.replays) == 1


@needs_compiler
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_other_signs_are_no_difference_and_other_values_are(dtype: str, asked: Asked) -> None:
    a = numbers(5, 5, dtype=dtype)

    def eigenvectors(a: Any) -> Any:
        w, v = np.linalg.eigh(a)
        return w, v[:, 1]

    jitted = jitml.jit(eigenvectors, verify="first")
    assert not np.allclose(jitted(a)[1], eigenvectors(a)[1])
    (variant,) = jitted.variants
    asked.clear()
    jitted(a)
    assert asked == ["Xsyevd"], variant.checked

    library = cusolver.cusolver()
    assert library is not None
    library._functions.fake_results(0, ctypes.c_double(1.0))
    other = jitml.jit(eigenvectors, verify="first")
    with pytest.warns(WrongResultWarning):
        got = other(a)
    np.testing.assert_allclose(got[0], eigenvectors(a)[0])


@needs_compiler
def test_what_the_library_is_not_asked_for(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    def functions_of(function: Callable[..., Any], *arguments: Any) -> list[str]:
        require_numpys(jitml.jit(function, verify="never")(*arguments), function(*arguments))
        return asked.taken()

    assert functions_of(lambda a: (np.linalg.qr(a)[1],), numbers(20, 3, 3)) == ["np.linalg.qr"]
    assert functions_of(lambda a: (np.linalg.svd(a, compute_uv=False),), numbers(20, 33, 3)) == ["np.linalg.svdvals"]
    assert functions_of(lambda a: (abs(np.linalg.eig(a)[0]),), np.diag([1.0, 2, 3])) == ["np.linalg.eig"]
    assert functions_of(np.linalg.qr, np.zeros((3, 0))) == ["np.linalg.qr"]
    tall = numbers(40_000, 2)  # the square of its rows would be too much
    assert functions_of(lambda a: np.linalg.lstsq(a, a[:, 0], rcond=None)[:2], tall) == ["Xgesvd"]
    monkeypatch.setattr(solvers, "_MOST", 79_999)
    assert functions_of(lambda a: np.linalg.lstsq(a, a[:, 1], rcond=None)[:1], tall) == ["np.linalg.svd"]
    monkeypatch.setattr(CuSolver, "has", lambda self, name: name != "cusolverDnXsyevBatched")
    assert functions_of(lambda a: (np.linalg.eigvalsh(a),), numbers(2, 3, 3)) == ["np.linalg.eigvalsh"]
    assert functions_of(lambda a: (np.linalg.eigvalsh(a),), numbers(3, 3)) == ["Xsyevd"]
    monkeypatch.setattr(cusolver, "cusolver", lambda: None)
    assert functions_of(lambda a: (np.linalg.eigvalsh(a),), numbers(4, 4)) == ["np.linalg.eigvalsh"]


def test_the_launches_say_who_does_it() -> None:
    told = jitml.jit(lambda a: np.linalg.svd(a)[1]).lower(numbers(40, 30))
    made = lower(told.traced, BACKEND)
    assert (
        "np.linalg.svd" in made.launches and "where cusolver is installed, it does this, with call_0_host_copy_a" in made.launches
    )
