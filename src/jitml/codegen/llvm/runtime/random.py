"""Native random generators: how do compiled programs draw random numbers?

By NumPy's own C functions, from the generator's own state.

A generator holds a `bitgen_t` (the state, and how to step it), and NumPy's extension module exports what makes numbers of that.
Where the one lies in the other, and whether the functions give what NumPy gives, is tried out at the first need; what does not
agree is left to Python.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

import numpy as np

from jitml.codegen.llvm.runtime.jit import Code, addresses, load
from jitml.codegen.llvm.runtime.random_ir import DOUBLE, INTEGERS, LEGACY_NORMAL, NUMBER, pcg64_ir
from jitml.codegen.llvm.runtime.singletons import once
from jitml.codegen.run.generators import generator_places, kept_normal
from jitml.ir.op import OPS
from jitml.ir.ops.random import routine
from jitml.ir.types import BOOL, DTYPES, DType
from jitml.records import dataclass

_LLVM = {"f64": "double", "f32": "float", "bool": "i8"}
_Routine = tuple[str, bool, DType]  # distribution, legacy, dtype


def random_address(symbol: str) -> int:
    """The address of `jitml_uniform_f64`, `jitml_legacy_integers_i64_fill` ...; KeyError if there is none of that name."""
    return _code()[symbol]


@cache
def native_draws() -> frozenset[str]:
    """The routines that give NumPy's numbers, and leave its state."""
    places = _places()
    if places is None:
        return frozenset()
    return frozenset(routine(*r) for r in _ROUTINES if _agrees(*r))


@dataclass(frozen=True, slots=True)
class NativeDraws:
    """The same as a set that is looked into only when a program draws."""

    def __contains__(self, name: object) -> bool:
        return name in native_draws()


_ROUTINES: tuple[_Routine, ...] = (
    *(("uniform", False, DTYPES[name]) for name in ("f64", "f32")),
    *(("normal", False, DTYPES[name]) for name in ("f64", "f32")),
    *(("exponential", False, DTYPES[name]) for name in ("f64", "f32")),
    ("uniform", True, DTYPES["f64"]),
    ("normal", True, DTYPES["f64"]),
    *(("integers", legacy, dtype) for legacy in (False, True) for dtype in DTYPES.values() if dtype.kind in "biu"),
)


def _function(distribution: str, dtype: DType) -> str:
    """NumPy's C function behind a routine."""
    if distribution == "integers":
        return f"random_bounded_{'bool' if dtype == BOOL else f'uint{8 * dtype.itemsize}'}_fill"
    return f"random_standard_{distribution}{'_f' if dtype.itemsize == 4 else ''}"


@once
def _library() -> dict[str, int]:
    """Addresses of NumPy's C functions, by name; empty where it does not export them."""
    from numpy.random import _generator

    library = ctypes.CDLL(_generator.__file__)
    names = {_function(distribution, dtype) for distribution, _, dtype in _ROUTINES}
    names |= {_filling(name) for name in names if not name.endswith("_fill")}
    if not all(hasattr(library, name) for name in names):
        return {}
    return addresses(library, names)


def _filling(function: str) -> str:
    return f"{function.removesuffix('_f')}_fill{'_f' if function.endswith('_f') else ''}"


def _places() -> dict[bool, int] | None:
    """Where a generator's `bitgen_t` begins; None where there is nothing to call with it."""
    return generator_places() if _library() else None


def _pcg64() -> int:
    """The address of the function that steps a PCG64, if its state lies as we take it to; else 0."""
    bits = np.random.PCG64(1)
    if sys.byteorder != "little":
        return 0
    words = (ctypes.c_uint64 * 4).from_address(ctypes.c_uint64.from_address(bits.ctypes.state_address).value)
    state: Any = bits.state["state"]
    is_known = (words[0] | words[1] << 64, words[2] | words[3] << 64) == (state["state"], state["inc"])
    return ctypes.cast(bits.ctypes.next_uint64, ctypes.c_void_p).value or 0 if is_known else 0


@once
def _code() -> Code:
    """All routines, compiled at the first need."""
    places, kept = _places(), kept_normal()
    assert places is not None
    texts, exports = [pcg64_ir()], []
    functions: dict[str, str] = {}
    for distribution, legacy, dtype in _ROUTINES:
        name, function = routine(distribution, legacy, dtype), _function(distribution, dtype)
        if distribution == "normal" and legacy and kept is None:
            continue
        exports += [name, f"{name}_fill"]
        kind = _LLVM.get(next(n for n, d in DTYPES.items() if d == dtype), f"i{8 * dtype.itemsize}")
        common = {"name": name, "kind": kind, "bitgen": places[legacy], "function": function}
        if distribution == "integers":
            wide = dtype.itemsize == 8
            ways = [f"%{short} = {'add i64 0,' if wide else 'trunc i64'} %{long}{'' if wide else f' to {kind}'}"
                    for short, long in (("o", "low"), ("s", "span"))]  # fmt: skip
            extend = "zeroext" if dtype.itemsize < 4 else ""
            masked = "true" if legacy else "false"
            texts.append(INTEGERS.format(**common, narrow="\n  ".join(ways), extend=extend, masked=masked))
            functions[function] = f"declare void @{function}(ptr, {kind} {extend}, {kind} {extend}, i64, i1 zeroext, ptr)"
        elif distribution == "normal" and legacy:
            texts.append(LEGACY_NORMAL.format(**common, kept=kept))
        else:
            fill = _filling(function)
            text = DOUBLE if (distribution, kind) == ("uniform", "double") else NUMBER
            texts.append(text.format(**common, fill=fill, pcg64=_pcg64()))
            functions[function] = f"declare {kind} @{function}(ptr)"
            functions[fill] = f"declare void @{fill}(ptr, i64, ptr)"
    text = "\n".join([*functions.values(), *texts])
    imports = {name: address for name, address in _library().items() if name in functions}
    return load(text, level=2, imports=imports, exports=tuple(exports))


def _agrees(distribution: str, legacy: bool, dtype: DType) -> bool:
    """Whether a routine gives NumPy's numbers, one by one and as an array, and leaves NumPy's state."""
    name = routine(distribution, legacy, dtype)
    try:
        draw, fill = (_code()[symbol] for symbol in (name, f"{name}_fill"))
    except KeyError:
        return False
    kind: Any = np.random.RandomState if legacy else np.random.Generator
    mine, theirs = kind(np.random.PCG64(7)), kind(np.random.PCG64(7))
    limits = ([0, 1] if dtype == BOOL else [3, 100]) if distribution == "integers" else []
    params = {"distribution": distribution, "legacy": legacy, "dtype": dtype}
    number: Any = np.ctypeslib.as_ctypes_type(dtype.type)  # type: ignore[arg-type]  # each of ours has one
    one = ctypes.CFUNCTYPE(number, *[ctypes.c_int64] * (1 + len(limits)))(draw)
    many = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * (2 + len(limits)), ctypes.c_void_p)(fill)
    array = np.empty(151, dtype)
    for _ in range(3):
        if one(id(mine), *limits) != OPS["random"].evaluate(id(theirs), *limits, shape=(), **params)[1]:
            return False
        many(id(mine), *limits, array.size, array.ctypes.data)
        if array.tobytes() != OPS["random"].evaluate(id(theirs), *limits, shape=(151,), **params)[1].tobytes():
            return False
    return _state(mine) == _state(theirs)


def _state(generator: Any) -> str:
    return str(
        generator.get_state(legacy=False) if isinstance(generator, np.random.RandomState) else generator.bit_generator.state
    )
