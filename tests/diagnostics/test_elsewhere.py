"""What people bring from Numba, JAX and PyTorch: accepted where it means nothing else, or told what to write."""

from __future__ import annotations

import inspect
import re
import sys
import types
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.diagnostics.foreign_habits import ARRAYS, METHODS, NAMES, OPTIONS, OWNERS, TRANSFORMS, note_foreign_attribute


def function(x: Any) -> Any:
    return x + 1


class _Type:
    """One of Numba's types: calling it makes a signature."""

    def __call__(self, *args: object) -> _Type:
        return _Type()

    def __repr__(self) -> str:
        return "float64"


_Type.__module__ = "numba.core.types.scalars"


class CPUDispatcher:
    """What Numba makes of a function."""

    __name__ = "compiled"
    py_func = staticmethod(function)

    def __call__(self, x: Any) -> Any:
        return x


CPUDispatcher.__module__ = "numba.core.registry"

ACCEPTED: list[dict[str, Any]] = [
    {"cache": True},
    {"fastmath": True},
    {"fastmath": {"nnan", "contract"}},
    {"static_argnums": 1},
    {"static_argnames": "n"},
    {"dynamic": True},
    {"dynamic": None},
    {"device": "cpu"},
]
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"nopython": True}, r"jit\(nopython=True\) is an option of Numba.*strict=True"),
    ({"parallel": True}, r"shares loops among the cores.*threads=n.*range in place of prange"),
    ({"nogil": True}, "Leave it out"),
    ({"error_model": "numpy"}, "Division by zero"),
    ({"donate_argnums": 0}, "an option of JAX.*written in place"),
    ({"backend": "gpu"}, 'device="cuda"'),
    ({"fullgraph": True}, "an option of PyTorch.*strict=True"),
    ({"mode": "max-autotune"}, "There is one mode"),
    ({"threds": 2}, "did you mean threads"),
    ({"something": 2}, "there are device, static_argnums"),
    ({"argnums": 0}, r"jit has no option argnums\. grad has: jit\(grad\(f, argnums=\.\.\.\)\)"),
]
OF_TRANSFORMS: list[tuple[Any, dict[str, Any], str]] = [
    (jitml.grad, {"argnum": 0}, "grad has no option argnum; did you mean argnums"),
    (jitml.value_and_grad, {"arg_nums": 0}, "did you mean argnums"),
    (jitml.hessian, {"static_argnums": 0}, r"jit has: jit\(hessian\(f\), static_argnums=\.\.\.\)"),
    (jitml.vmap, {"argnums": 0}, r"grad has: grad\(f, argnums=\.\.\.\)"),
    (jitml.vmap, {"in_dims": 0}, r"^vmap\(in_dims=0\) is an option of PyTorch, .* Write in_axes\."),
    (jitml.checkpoint, {"polcy": 0}, "did you mean policy"),
    (jitml.custom_vjp, {"nondif_argnums": 0}, "^custom_vjp has no option nondif_argnums; did you mean nondiff_argnums"),
    (jitml.custom_jvp, {"nondiff_argnames": "n"}, "^custom_jvp has no option nondiff_argnames; did you mean nondiff_argnums"),
    (jitml.custom_jvp, {"argnums": 0}, r"^custom_jvp has no option argnums\. grad has: grad\(f, argnums=\.\.\.\)"),
    (jitml.custom_vjp, {"something": 0}, "^custom_vjp has no option something; there are f, nondiff_argnums$"),
    (jitml.custom_jvp(function).defjvp, {"symbolic_zeros": True}, r"^defjvp\(symbolic_zeros=True\) is an option of JAX"),
    (jitml.custom_vjp(function).defvjp, {"bwb": function}, "^defvjp has no option bwb; did you mean bwd"),
    (jitml.grad, {"nondiff_argnums": 0}, r"custom_jvp has: custom_jvp\(f, nondiff_argnums=\.\.\.\)"),
    (jitml.pure_callback, {"vmap_method": "sequential"}, r"^pure_callback\(vmap_method='sequential'\) is an option of JAX"),
    (jitml.pure_callback, {"something": 0}, "^pure_callback has no option something; there are none$"),
    (jitml.asarray, {"order": "C"}, "asarray has no option order; there are x, dtype, device, copy"),
]


@pytest.mark.parametrize("options", ACCEPTED, ids=" ".join)
def test_what_means_the_same_is_accepted(options: dict[str, Any]) -> None:
    assert jitml.jit(lambda x, n=1: x + n, **options)(np.zeros(2)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("options", "text"), REFUSED, ids=str)
def test_options(options: dict[str, Any], text: str) -> None:
    for call in (lambda: jitml.jit(function, **options), lambda: jitml.jit(**options)):
        with pytest.raises(TypeError, match=text):
            call()


@pytest.mark.parametrize("name", OPTIONS)
def test_each_option_says_whose_it_is_and_what_to_do(name: str) -> None:
    assert name not in inspect.signature(jitml.jit).parameters  # else it is an option of ours
    with pytest.raises(TypeError, match=rf"^jit\({name}=.*(Numba|JAX|PyTorch).*\. [A-Za-z][^.]*\."):
        jitml.jit(**{name: True})


@pytest.mark.parametrize(("transform", "options", "text"), OF_TRANSFORMS)
def test_options_of_transforms(transform: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        transform(function, **options)


@pytest.mark.parametrize("name", sorted(TRANSFORMS))
def test_no_option_of_theirs_is_one_of_ours(name: str) -> None:
    for owner, names in OWNERS.items():
        parameters = inspect.signature(getattr(jitml, owner)).parameters
        assert name not in parameters and set(names) <= set(parameters)
    with pytest.raises(TypeError, match=rf"^vmap\({name}=True\) is an option of (JAX|PyTorch), .*\. [A-Z][^.]*\."):
        jitml.vmap(function, **{name: True})


def test_a_function_that_has_no_such_keyword_speaks_for_itself() -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'argnum'"):
        jitml.jit(function)(np.zeros(2), argnum=0)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'f'"):
        jitml.grad(has_aux=True)


@pytest.mark.parametrize(
    "given",
    ["float64(float64)", ["f8(f8)", "f4(f4)"], _Type(), _Type()(_Type()), [_Type()], (_Type(),)],
    ids=repr,
)
def test_signatures(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", types.ModuleType("numba"))  # who has its types has it
    with pytest.raises(TypeError, match=r"jitml takes no signatures\. Write @jitml.jit alone"):
        jitml.jit(given)


def test_what_numba_has_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", types.ModuleType("numba"))
    with pytest.raises(TypeError, match=r"give jitml the plain one, compiled\.py_func"):
        jitml.jit(CPUDispatcher())


def test_what_is_no_function_is_told_as_before() -> None:
    with pytest.raises(TypeError, match=r"jit\(f\)\(x\) and not jit\(f\(x\)\)"):
        jitml.jit(3.0)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_other_packages(name: str) -> None:
    assert not hasattr(jitml, name)
    with pytest.raises(AttributeError) as caught:
        getattr(jitml, name)
    assert str(caught.value) == f"module 'jitml' has no attribute {name!r}. {NAMES[name]}"


@pytest.mark.parametrize("statement", ["from jitml import jit, njit", "from jitml import njit as jit"])
def test_names_that_are_imported(statement: str) -> None:
    """Python would leave out what an AttributeError says."""
    with pytest.raises(ImportError, match=rf"^cannot import name 'njit' from 'jitml'\. {re.escape(NAMES['njit'])}$"):
        exec(statement, {})
    with pytest.raises(ImportError, match=r"^cannot import name 'nothing' from 'jitml' \("):
        exec("from jitml import nothing", {})
    assert getattr(jitml, "njit", None) is None


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_what_other_packages_have_compiled(name: str) -> None:
    jitted = jitml.jit(function)
    assert not hasattr(jitted, name)
    with pytest.raises(AttributeError, match=rf"^'Jit' object has no attribute '{name}'\. {re.escape(METHODS[name])}$"):
        getattr(jitted, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'something'$"):
        _ = jitted.something  # type: ignore[attr-defined]  # that is the point


@pytest.mark.loose
def test_attributes_of_other_packages_arrays() -> None:
    def first(x: Any) -> Any:
        return x.at[0].set(1.0)

    def squared(x: Any) -> Any:
        return x.square().sum()

    for transform in (jitml.jit, jitml.grad, lambda f: jitml.jit(f, strict=True)):
        for f, told in ((first, ARRAYS["at"]), (squared, "Write np.square(x).")):
            with pytest.raises(AttributeError, match=r"^'numpy.ndarray' object has no attribute '\w+'") as caught:
                transform(f)(np.ones(3))
            assert caught.value.__notes__ == [told]
    with pytest.raises(AttributeError) as caught:
        jitml.jit(lambda x: x.nothing)(np.ones(3))
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("name", ARRAYS)
def test_no_array_has_them(name: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(np.ones(3), name)
    note_foreign_attribute(caught.value)
    note_foreign_attribute(caught.value)  # where calls lie in each other
    assert caught.value.__notes__ == [ARRAYS[name]]


def test_lax_forms() -> None:
    assert jitml.scan(lambda c, x: (c + x, c), 0, np.arange(4), unroll=2)[0] == 6
    assert jitml.fori_loop(0, 4, lambda i, c: c + i, 0, unroll=True) == 6
    with pytest.raises(TypeError, match=r"scan\(reverse=True\).*xs\[::-1\]"):
        jitml.scan(lambda c, x: (c + x, c), 0, np.arange(4), reverse=True)
    with pytest.raises(TypeError, match=r"cond\(pred, true_fun, false_fun, \*operands\)"):
        jitml.cond(True, 1.0, lambda x: x, 2.0, lambda x: -x)


@pytest.mark.parametrize("reverse", [False, True])
def test_lax_forms_inside(reverse: bool) -> None:
    def total(x: Any) -> Any:
        return jitml.scan(lambda c, v: (c + v, c), 0.0, x[::-1] if reverse else x, unroll=4)[1]

    np.testing.assert_allclose(jitml.jit(total)(np.arange(4.0)), [0.0, 3.0, 5.0, 6.0] if reverse else [0.0, 0.0, 1.0, 3.0])
