"""Running programs for the check: a graph, or a jitted function, whose errors carry the texts of its kernels."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree

import jitml
from gpu.failures import Mismatch, Skipped, require_same, with_texts
from jitml.codegen.backend import backend_named
from jitml.errors import UncompiledWarning
from jitml.ir.graph import Graph
from jitml.ir.interpret import interpret
from jitml.ir.printer import show
from jitml.pipeline import lower

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]
_UNHEARD = "which a GPU does not tell"


def check_graph(graph: Graph, args: Sequence[Array], backend: str, ulps: float | None = None) -> None:
    """Raises `Mismatch`, or what the back end raises, unless it gives what the graph's interpreter gives."""
    with np.errstate(all="ignore"):
        expected = interpret(graph, [x.copy() for x in args])
    try:
        lowered = lower(graph, backend_named(backend))
    except Exception as error:
        error.texts = {"graph": show(graph)[:4000]}  # type: ignore[attr-defined]  # see `with_texts`
        raise
    try:
        require_same(lowered.compile()(*(x.copy() for x in args)), expected, ulps)
    except Exception as error:
        with_texts(error, lowered.text)
        raise


def check_function(function: Function, make: Callable[[], tuple[Any, ...]], ulps: float | None = None, calls: int = 2) -> None:
    """The same of a NumPy function under `jit`, in results and in the arguments afterwards; each call has fresh arguments.

    Raises:
        Mismatch: the values differ, or NumPy answered in the compiled program's place.
    """
    jitted = jitml.jit(function, verify="never")
    for _ in range(calls):
        mine, eager = make(), make()
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = function(*eager)
            warnings.simplefilter("error", UncompiledWarning)
            try:
                got = jitted(*mine)
                require_same(_leaves((got, mine)), _leaves((expected, eager)), ulps)
                require_compiled(jitted)
            except Exception as error:
                _with_texts_of(error, jitted, copy.deepcopy(eager))
                raise


def check_jitted(jitted: Any, plain: Function, make: Callable[[], tuple[Any, ...]]) -> None:
    """The same of a derivative, beside one that was written by hand or compiled for the processor."""
    mine, eager = make(), make()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = plain(*eager)
        try:
            require_same(_leaves(jitted(*mine)), _leaves(expected))
            require_compiled(jitted)
        except Exception as error:
            _with_texts_of(error, jitted, eager)
            raise


def require_compiled(jitted: Any) -> None:
    """Raises `Mismatch` if NumPy has answered a call, which hides what the compiled program would have done.

    Raises `Skipped` where that is what a GPU's users are told to expect.
    """
    replayed = {str(reason): n for variant in jitted.variants for reason, n in variant.replays.items()}
    if replayed and all(_UNHEARD in reason for reason in replayed):
        raise Skipped(*replayed)
    if replayed:
        raise Mismatch(f"NumPy answered in the place of the compiled program: {replayed}")
    if not jitted.variants:
        raise Mismatch("NumPy answered: nothing was compiled")


def _with_texts_of(error: Exception, jitted: Any, args: tuple[Any, ...]) -> None:
    try:
        lowered = jitted.lower(*args)
    except Exception as why:  # it may be lowering that has failed
        error.texts = {"lowering": f"{type(why).__name__}: {str(why)[:2000]}"}  # type: ignore[attr-defined]  # see `with_texts`
        return
    with_texts(error, lowered.text)


def _leaves(x: Any) -> list[Any]:
    """Arrays and numbers, in order; what a random generator has drawn shows in results."""
    return [leaf for leaf in optree.tree_leaves(x) if isinstance(leaf, (np.ndarray, np.generic, int, float, complex))]


def require_backend(backend: str) -> None:
    """Raises `Skipped` unless programs under `jit` get it: the environment has chosen."""
    from jitml.config import CONFIG

    if CONFIG.backend != backend:
        raise Skipped(f"JITML_BACKEND is {CONFIG.backend}, not {backend}")
