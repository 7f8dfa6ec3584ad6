"""Habits from elsewhere: what people write who come from Numba, JAX or PyTorch, and what to write in its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from jitml.errors import with_addresses

_THREADS = "jitml shares loops among the cores of this machine without being asked. Leave it out; threads=n allows n threads."
_INLINE = "jitml sees through calls of your functions. Leave it out."
_IN_PLACE = "Arrays that a function writes are written in place, and no others are. Leave it out."
_WHERE = 'Write device="cuda" for an NVIDIA GPU; without it, a function runs where its arrays are.'
_DEBUG = "Leave it out. jitml.disable() runs functions as Python, for debugging; see docs/debugging.md."
_STRICT = "What cannot be compiled runs as Python. Leave it out, or write strict=True to have it refused."

_OF_TYPES = ("numba.core.types", "numba.core.typing")  # where Numba's types and signatures are

# Keywords of other decorators: whose, and what to do.
OPTIONS: dict[str, tuple[str, str]] = {
    "nopython": ("Numba", _STRICT),
    "forceobj": ("Numba", "Leave the decorator out, or use jitml.disable() to run functions as Python."),
    "looplift": ("Numba", "jitml compiles what stands between statements that it cannot compile, loops too. Leave it out."),
    "parallel": ("Numba", f"{_THREADS} Write range in place of prange."),
    "nogil": ("Numba", "Leave it out."),
    "locals": ("Numba", "Types are those that NumPy gives. Convert where you want others: np.float32(x)."),
    "boundscheck": ("Numba", "Indices are checked, as in NumPy. Leave it out."),
    "error_model": ("Numba", "Division by zero does what it does in NumPy and Python. Leave it out."),
    "signature": ("Numba", "Types are taken from the arguments of each call. Leave it out."),
    "signature_or_function": ("Numba", "Types are taken from the arguments of each call. Leave it out."),
    "target": ("Numba", _WHERE),
    "target_backend": ("Numba", _WHERE),
    "debug": ("Numba", _DEBUG),
    "inline": ("Numba and JAX", _INLINE),
    "donate_argnums": ("JAX", _IN_PLACE),
    "donate_argnames": ("JAX", _IN_PLACE),
    "keep_unused": ("JAX", "Leave it out."),
    "backend": ("JAX and PyTorch", _WHERE),
    "in_shardings": ("JAX", "jitml runs on one machine and one device. Leave it out."),
    "out_shardings": ("JAX", "jitml runs on one machine and one device. Leave it out."),
    "abstracted_axes": ("JAX", "dynamic=True leaves the lengths of arrays open."),
    "compiler_options": ("JAX", "Leave it out; docs/reference/settings.md lists the settings of jitml."),
    "fullgraph": ("PyTorch", _STRICT),
    "mode": ("PyTorch", "There is one mode: what is compiled has to be faster than Python, or is dropped. Leave it out."),
    "options": ("PyTorch", "Leave it out; docs/reference/settings.md lists the settings of jitml."),
    "disable": ("PyTorch", "Write jitml.disable(), or `with jitml.disable():`, or set JITML_DISABLE=1."),
}

# Names that other packages have, and jitml has not.
NAMES = {
    "njit": "Write jitml.jit; strict=True refuses what cannot be compiled whole.",
    "prange": "Write range: jitml shares loops among threads where that gives the same result.",
    "vectorize": "Write jitml.jit: inside, NumPy's functions take whole arrays. jitml.vmap takes a function of one row.",
    "guvectorize": "Write jitml.vmap, which takes a function of one row.",
    "jitclass": "Write jitml.jit above the methods of an ordinary class.",
    "lax": "cond, while_loop, fori_loop and scan are jitml's own: jitml.scan(...). Plain loops and branches are compiled, too.",
    "switch": "Write if and elif: branches are compiled.",
    "disable_jit": "Write `with jitml.disable():`.",
    "block_until_ready": "A call returns when its result is there: leave it out.",
    "make_jaxpr": "Write f.lower(x).graph, of a jitted function.",
    "device_put": "Write jitml.asarray(x, device=...).",
    "pmap": "jitml runs on one device: write jitml.vmap.",
    "compile": "Write jitml.jit.",
    "no_grad": "Nothing is recorded unless a derivative is asked for: leave it out. Constants: jitml.stop_gradient(x).",
    "tensor": "Write np.array: jitml compiles NumPy.",
}


def foreign_option(known: Iterable[str], given: Mapping[str, Any]) -> TypeError:
    """What to say of keywords that `jit` has not.

    >>> print(foreign_option(["threads"], {"threds": 2}))
    jit has no option threds; did you mean threads?
    """
    name, value = next(iter(given.items()))
    if name in OPTIONS:
        whose, remedy = OPTIONS[name]
        told = f"jit({name}={value!r}) is an option of {whose}, and jitml has none of that name. {remedy}"
        return TypeError(with_addresses(told))
    close = get_close_matches(name, known, 1)
    return TypeError(f"jit has no option {name}; " + (f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"))


def foreign_signature(given: Any) -> TypeError | None:
    """What to say of a signature, or of types, where a function belongs; None if it is something else.

    >>> print(foreign_signature("float64(float64)"))
    jit('float64(float64)'): jitml takes no signatures. Write @jitml.jit alone: types are taken from the arguments of each call.
    """
    parts = given if isinstance(given, (list, tuple)) and given else [given]
    if type(given).__module__.startswith("numba.") and hasattr(given, "py_func"):
        return TypeError(f"jit of a function that Numba has compiled: give jitml the plain one, {given.__name__}.py_func")
    if not all(isinstance(part, str) or type(part).__module__.startswith(_OF_TYPES) for part in parts):
        return None
    remedy = "Write @jitml.jit alone: types are taken from the arguments of each call."
    return TypeError(f"jit({given!r}): jitml takes no signatures. {remedy}")


def foreign_name(name: str) -> str:
    """What to add to `module 'jitml' has no attribute ...`."""
    return f". {NAMES[name]}" if name in NAMES else ""


__all__ = ["NAMES", "OPTIONS", "foreign_name", "foreign_option", "foreign_signature"]
