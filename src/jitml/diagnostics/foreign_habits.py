"""Habits from elsewhere: what people write who come from Numba, JAX or PyTorch, and what to write in its place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from inspect import signature
from opcode import opmap
from typing import Any

import numpy

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

# The same of what derives, batches and checks functions.
TRANSFORMS: dict[str, tuple[str, str]] = {
    "allow_int": ("JAX", "Convert integers first: x.astype(float)."),
    "reduce_axes": ("JAX", "Leave it out."),
    "axis_name": ("JAX", "Rows do not know of each other inside: sum over them outside of vmap. Leave it out."),
    "spmd_axis_name": ("JAX", "jitml runs on one machine and one device. Leave it out."),
    "axis_size": ("JAX", "The number of rows is that of the arguments. Leave it out."),
    "prevent_cse": ("JAX", "Leave it out."),
    "concrete": ("JAX", "Leave it out."),
    "in_dims": ("PyTorch", "Write in_axes."),
    "out_dims": ("PyTorch", "Write out_axes."),
    "chunk_size": ("PyTorch", "Leave it out."),
    "randomness": ("PyTorch", "Leave it out."),
    "create_graph": ("PyTorch", "A derivative can always be differentiated again. Leave it out."),
    "retain_graph": ("PyTorch", "Leave it out."),
    "use_reentrant": ("PyTorch", "Leave it out."),
    "symbolic_zeros": ("JAX", "Leave it out."),
    "optimize_remat": ("JAX", "Leave it out."),
    "vmap_method": ("JAX", "Leave it out."),
}
# Options that are looked for at a function which has them not.
OWNERS = {
    "grad": ("argnums", "argnames", "has_aux", "holomorphic"),
    "custom_jvp": ("nondiff_argnums",),
    "vmap": ("in_axes", "out_axes"),
    "jit": ("static_argnums", "static_argnames", "device", "threads", "fastmath", "dynamic", "strict"),
}

# Attributes that other packages' compiled functions have, and those of jitml have not.
METHODS = {
    "py_func": "Write f.__wrapped__.",
    "inspect_types": "Write jitml.explain(f, x), or f.lower(x).graph.",
    "inspect_llvm": "Write f.lower(x).llvm.",
    "inspect_asm": "Write f.lower(x).asm.",
    "signatures": "f.variants are the programs that have been compiled.",
    "overloads": "f.variants are the programs that have been compiled.",
    "parallel_diagnostics": "Write jitml.explain(f, x).",
    "recompile": "Globals are read at each call: leave it out.",
    "trace": "Write f.lower(x).graph.",
    "eval_shape": "Write f.lower(x).graph, which has the shapes of the results.",
}

# The same of arrays: those of JAX, PyTorch.
ARRAYS = {
    "at": "Write x[i] = v, or np.add.at(x, i, v): functions may write into arrays.",
    "block_until_ready": "A call returns when its result is there: leave it out.",
    "backward": "Write jitml.grad(f)(x), which returns the gradient.",
    "requires_grad": "Write jitml.grad(f)(x), which returns the gradient.",
    "requires_grad_": "Write jitml.grad(f)(x), which returns the gradient.",
    "grad": "Write jitml.grad(f)(x), which returns the gradient.",
    "detach": "Write jitml.stop_gradient(x).",
    "numpy": "It is an array of NumPy: leave it out.",
    "cpu": "It is an array of NumPy: leave it out.",
    "cuda": 'Write jitml.asarray(x, device="cuda").',
    "clone": "Write x.copy().",
    "unsqueeze": "Write np.expand_dims(x, axis).",
    "permute": "Write np.transpose(x, axes).",
    "float": "Write x.astype(np.float32).",
    "long": "Write x.astype(np.int64).",
    "mm": "Write x @ y.",
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
    "from_numpy": "jitml takes NumPy's arrays as they are.",
    "func": "jitml.grad, jitml.vmap, jitml.jvp, jitml.vjp and the Jacobians are in jitml itself.",
    "remat": "Write jitml.checkpoint.",
    "random": "Write np.random: a generator that is passed to a function draws inside as NumPy does.",
    "tree_map": "Write loops over lists and dicts: they are compiled. Registered classes: jitml.register_pytree_node.",
    "tree_util": "Write loops over lists and dicts: they are compiled. Registered classes: jitml.register_pytree_node.",
    "eval_shape": "f.lower(x).graph, of a jitted function, has the shapes of its results.",
    "ShapeDtypeStruct": "Write an array of that shape and dtype: np.empty(shape, dtype).",
    "elementwise_grad": "Write jitml.vmap(jitml.grad(f)), or the gradient of a sum: jitml.grad(lambda x: f(x).sum()).",
    "egrad": "Write jitml.vmap(jitml.grad(f)), or the gradient of a sum: jitml.grad(lambda x: f(x).sum()).",
    "grad_and_aux": "Write jitml.grad(f, has_aux=True).",
    "make_vjp": "Write jitml.vjp(f, x), which gives the value, and a function of cotangents.",
    "make_jvp": "Write jitml.jvp(f, (x,), (dx,)).",
    "hessian_vector_product": "Write jitml.hvp(f, (x,), (dx,)).",
    "primitive": "Write jitml.custom_vjp or jitml.custom_jvp above a function that has a derivative of its own.",
    "defvjp": "Set it at the function: f = jitml.custom_vjp(f), then f.defvjp(fwd, bwd).",
    "objmode": "Leave it out: what cannot be compiled runs as Python. jitml.pure_callback(f, result_like, x) calls a function.",
    "stencil": "Write slices of whole arrays, or loops over indices: both are compiled.",
    "cfunc": "jitml makes no functions for C. Write jitml.jit.",
    "typed": "Write ordinary lists and dicts.",
    "set_num_threads": "Write jit(f, threads=n), or set JITML_NUM_THREADS before Python starts.",
}


def foreign_keyword(function: Callable[..., Any], given: Mapping[str, Any]) -> str:
    """What to say of keywords that a function of ours has not; empty if it has them all.

    >>> import jitml
    >>> foreign_keyword(jitml.jit, {"threds": 2})
    'jit has no option threds; did you mean threads?'
    >>> foreign_keyword(jitml.grad, {"static_argnums": 1})
    'grad has no option static_argnums. jit has: jit(grad(f), static_argnums=...).'
    """
    parameters = signature(function).parameters
    known = [name for name, p in parameters.items() if p.kind not in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    unknown = next((name for name in given if name not in known), None)
    if unknown is None:
        return ""
    called = function.__name__
    if (found := (OPTIONS if called == "jit" else TRANSFORMS).get(unknown)) is not None:
        whose, remedy = found
        told = f"{called}({unknown}={given[unknown]!r}) is an option of {whose}, and jitml has none of that name. {remedy}"
        return with_addresses(told)
    told = f"{called} has no option {unknown}"
    if (owner := next((owner for owner, names in OWNERS.items() if unknown in names), None)) is not None:
        theirs = f"jit({called}(f), {unknown}=...)" if owner == "jit" else f"{owner}(f, {unknown}=...)"
        return f"{told}. {owner} has: {theirs if called != 'jit' else f'jit({theirs})'}."
    close = get_close_matches(unknown, known, 1)
    return f"{told}; " + (f"did you mean {close[0]}?" if close else f"there are {', '.join(known) or 'none'}")


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
    """What to add to `module 'jitml' has no attribute ...`.

    Raises:
        ImportError: of such a name, where an import statement asks for it: Python would leave out what an AttributeError says.
    """
    if name not in NAMES:
        return ""
    frame = sys._getframe(2)  # behind the module's `__getattr__`
    if frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]:
        raise ImportError(f"cannot import name {name!r} from 'jitml'. {NAMES[name]}", name="jitml")
    return f". {NAMES[name]}"


def foreign_method(name: str) -> str:
    """What to add to `'Jit' object has no attribute ...`."""
    return f". {METHODS[name]}" if name in METHODS else ""


def note_foreign_attribute(error: AttributeError) -> None:
    """Have an error of an array that has no such attribute say what to write, below what Python says.

    >>> error = AttributeError("'numpy.ndarray' object has no attribute 'at'", name="at")
    >>> note_foreign_attribute(error)
    >>> error.__notes__
    ['Write x[i] = v, or np.add.at(x, i, v): functions may write into arrays.']
    """
    name = error.name or ""
    if not str(error).startswith("'numpy.") or hasattr(error, "__notes__"):
        return
    told = ARRAYS.get(name) or (f"Write np.{name}(x)." if callable(getattr(numpy, name, None)) else "")
    if told:
        error.add_note(told)


__all__ = [
    "ARRAYS",
    "METHODS",
    "NAMES",
    "OPTIONS",
    "OWNERS",
    "TRANSFORMS",
    "foreign_keyword",
    "foreign_method",
    "foreign_name",
    "foreign_signature",
    "note_foreign_attribute",
]
