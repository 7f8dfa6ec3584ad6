"""What a function does to things outside happens at every call, as in Python, or is refused: never silently once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.trace.effect_programs import ROWS

import jitml

Array = np.ndarray[Any, Any]
XS = [np.array([1.0, 2.0, 3.0]), np.array([-1.0, -2.0, -3.0]), np.array([4.0, 5.0, 6.0]), np.array([1.0, 0.5, 3.0])]


def straight(act: Callable[..., Any]) -> Callable[[Array], Array]:
    def f(x):
        r = act(x[0])
        return x * 2 if r is None else x + r

    return f


def branch(act: Callable[..., Any]) -> Callable[[Array], Array]:
    def f(x):
        if x.sum() > 0:
            r = act(x[0])
            x = x * 2 if r is None else x + r
        return x

    return f


def loop(act: Callable[..., Any]) -> Callable[[Array], Array]:
    def f(x):
        x = x + 0.0
        for i in range(x.shape[0]):
            r = act(x[i])
            x[i] = x[i] * 2 if r is None else r
        return x

    return f


@pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")
@pytest.mark.parametrize("shape", [straight, branch, loop], ids=lambda f: f.__name__)
@pytest.mark.parametrize("make", ROWS, ids=lambda f: f.__name__)
def test_as_in_python_or_refused(make: Callable[[], Any], shape: Callable[..., Any]) -> None:
    if make.__name__ == "cached_property_of_traced" and shape is not straight:
        pytest.skip("in a branch or loop such a property is computed anew, and not kept")
    outcome(make, shape)


def outcome(make: Callable[[], Any], shape: Callable[..., Any]) -> str:
    """`same`, or the refusal, before which nothing has changed; a difference raises AssertionError."""
    _, wanted = outcomes(*make(), shape, lambda f: f)
    compiled, got = outcomes(*make(), shape, jitml.jit)
    for number, ((result, state), (want, kept)) in enumerate(zip(got, wanted)):
        if isinstance(result, jitml.errors.JitmlError):
            before = got[number - 1][1] if number else compiled
            assert state == before, f"refused in call {number}, after the change {before} -> {state}: {result}"
            return str(result)
        assert repr(result) == repr(want), f"call {number} gives {result}, not {want}"
        assert state == kept, f"call {number} leaves {state}, not {kept}"
    return "same"


def outcomes(act: Callable[..., Any], state: Callable[[], Any], shape: Any, compile: Any) -> tuple[str, list[tuple[Any, str]]]:
    """What is there before, and what each call returns or raises and leaves."""
    before, found = told(state()), []
    function = compile(shape(act))
    for x in XS:
        try:
            result = told(function(x.copy()))
        except Exception as raised:
            result = raised
        found.append((result, told(state())))
    return before, found


def told(x: Any) -> str:
    if type(x).__module__.endswith("effect_programs") and hasattr(x, "__dict__"):
        return type(x).__name__ + told(vars(x))
    if isinstance(x, dict):
        return f"{type(x).__name__}{{{', '.join(f'{told(k)}: {told(v)}' for k, v in x.items())}}}"
    if isinstance(x, (list, tuple, set)):
        return f"{type(x).__name__}[{', '.join(map(told, x))}]"
    if isinstance(x, np.ndarray):
        return f"{x.dtype}{x.tolist()}{x.flags.writeable}"
    return repr(x)
