"""How do compiled programs draw random numbers?  By NumPy's own C functions, from the generator's own state.

A generator holds a `bitgen_t` (the state, and how to step it), and NumPy's extension module exports what makes numbers of that.
Where the one lies in the other, and whether the functions give what NumPy gives, is tried out at the first need; what does not
agree is left to Python.

While a program runs, its generators are locked as NumPy locks them. Should the call be left to the plain function after all, they
get the state from before it back.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from jitml.ir.op import OPS
from jitml.ir.ops.host import generator_at, keeping_made
from jitml.ir.ops.random import routine
from jitml.ir.types import BOOL, DTYPES, DType
from jitml.runtime.host import has_failed
from jitml.runtime.jit import Code, generate, link, parse
from jitml.runtime.target import host_target

_NUMBER = """
define {kind} @{name}(i64 %generator) {{
  %place = add i64 %generator, {bitgen}
  %bitgen = inttoptr i64 %place to ptr
  %x = tail call {kind} @{function}(ptr %bitgen)
  ret {kind} %x
}}

define void @{name}_fill(i64 %generator, i64 %n, ptr %numbers) {{
  %place = add i64 %generator, {bitgen}
  %bitgen = inttoptr i64 %place to ptr
  tail call void @{fill}(ptr %bitgen, i64 %n, ptr %numbers)
  ret void
}}
"""

# A uniform double is one call of the bit generator's own `next_double`.
_DOUBLE = """
define double @{name}(i64 %generator) {{
  %place = add i64 %generator, {bitgen}
  %bitgen = inttoptr i64 %place to ptr
  %state = load ptr, ptr %bitgen
  %slot = getelementptr ptr, ptr %bitgen, i64 3
  %next = load ptr, ptr %slot
  %x = tail call double %next(ptr %state)
  ret double %x
}}

define void @{name}_fill(i64 %generator, i64 %n, ptr %numbers) {{
  %place = add i64 %generator, {bitgen}
  %bitgen = inttoptr i64 %place to ptr
  tail call void @{fill}(ptr %bitgen, i64 %n, ptr %numbers)
  ret void
}}
"""

# NumPy takes the least number and how far above it the largest lies, in the type of the numbers.
_INTEGERS = """
define {kind} @{name}(i64 %generator, i64 %low, i64 %high) {{
  %number = alloca {kind}
  call void @{name}_fill(i64 %generator, i64 %low, i64 %high, i64 1, ptr %number)
  %x = load {kind}, ptr %number
  ret {kind} %x
}}

define void @{name}_fill(i64 %generator, i64 %low, i64 %high, i64 %n, ptr %numbers) {{
  %place = add i64 %generator, {bitgen}
  %bitgen = inttoptr i64 %place to ptr
  %span = sub i64 %high, %low
  {narrow}
  call void @{function}(ptr %bitgen, {kind} {extend} %o, {kind} {extend} %s, i64 %n, i1 zeroext {masked}, ptr %numbers)
  ret void
}}
"""

# NumPy's polar method (Marsaglia and Bray 1964) as RandomState has it: of two numbers, one is kept for the next call.
_LEGACY_NORMAL = """
declare double @log(double)
declare double @llvm.sqrt.f64(double)

define double @{name}(i64 %generator) {{
entry:
  %place = add i64 %generator, {bitgen}
  %bitgen = inttoptr i64 %place to ptr
  %kept.place = add i64 %generator, {kept}
  %has = inttoptr i64 %kept.place to ptr
  %kept = getelementptr double, ptr %has, i64 1
  %old = load i32, ptr %has
  %is.kept = icmp ne i32 %old, 0
  br i1 %is.kept, label %second, label %draw
second:
  %y = load double, ptr %kept
  store i32 0, ptr %has
  store double 0.0, ptr %kept
  ret double %y
draw:
  %state = load ptr, ptr %bitgen
  %slot = getelementptr ptr, ptr %bitgen, i64 3
  %next = load ptr, ptr %slot
  %u1 = call double %next(ptr %state)
  %u2 = call double %next(ptr %state)
  %d1 = fmul double %u1, 2.0
  %d2 = fmul double %u2, 2.0
  %x1 = fsub double %d1, 1.0
  %x2 = fsub double %d2, 1.0
  %s1 = fmul double %x1, %x1
  %s2 = fmul double %x2, %x2
  %r2 = fadd double %s1, %s2
  %far = fcmp oge double %r2, 1.0
  %zero = fcmp oeq double %r2, 0.0
  %again = or i1 %far, %zero
  br i1 %again, label %draw, label %first
first:
  %log = call double @log(double %r2)
  %twice = fmul double %log, -2.0
  %ratio = fdiv double %twice, %r2
  %f = call double @llvm.sqrt.f64(double %ratio)
  %later = fmul double %f, %x1
  store double %later, ptr %kept
  store i32 1, ptr %has
  %now = fmul double %f, %x2
  ret double %now
}}

define void @{name}_fill(i64 %generator, i64 %n, ptr %numbers) {{
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %done
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %x = call double @{name}(i64 %generator)
  %place = getelementptr double, ptr %numbers, i64 %k
  store double %x, ptr %place
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""

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


@cache
def _library() -> dict[str, int]:
    """Addresses of NumPy's C functions, by name; empty where it does not export them."""
    from numpy.random import _generator

    library = ctypes.CDLL(_generator.__file__)
    names = {_function(distribution, dtype) for distribution, _, dtype in _ROUTINES}
    names |= {_filling(name) for name in names if not name.endswith("_fill")}
    if not all(hasattr(library, name) for name in names):
        return {}
    return {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in names}


def _filling(function: str) -> str:
    return f"{function.removesuffix('_f')}_fill{'_f' if function.endswith('_f') else ''}"


@cache
def _places() -> dict[bool, int] | None:
    """Where in a generator (RandomState: True) its `bitgen_t` begins, in bytes; None if it is not where it has been so far."""
    if not _library():
        return None
    places = {}
    for legacy, kind in ((False, np.random.Generator), (True, np.random.RandomState)):
        bits = np.random.PCG64(1)
        generator = kind(bits)
        interface = bits.ctypes
        steps = (interface.next_uint64, interface.next_uint32, interface.next_double)
        wanted = [interface.state_address, *(ctypes.cast(f, ctypes.c_void_p).value for f in steps)]
        words = (ctypes.c_uint64 * (kind.__basicsize__ // 8)).from_address(id(generator))
        found = [n for n in range(len(words) - 3) if list(words[n : n + 4]) == wanted]
        if len(found) != 1:
            return None
        places[legacy] = 8 * found[0]
    return places


def _kept_normal() -> int | None:
    """Where a RandomState keeps `int has_gauss; double gauss`: behind a pointer to its own `bitgen_t`."""
    generator = np.random.RandomState(np.random.PCG64(1))
    place = (_places() or {})[True]
    words = (ctypes.c_uint64 * (np.random.RandomState.__basicsize__ // 8)).from_address(id(generator))
    found = [n for n in range(len(words) - 2) if words[n] == id(generator) + place]
    return 8 * (found[0] + 1) if len(found) == 1 else None


@cache
def _code() -> Code:
    """All routines, compiled at the first need."""
    places, kept = _places(), _kept_normal()
    assert places is not None
    texts, exports = [], []
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
            texts.append(_INTEGERS.format(**common, narrow="\n  ".join(ways), extend=extend, masked=masked))
            functions[function] = f"declare void @{function}(ptr, {kind} {extend}, {kind} {extend}, i64, i1 zeroext, ptr)"
        elif distribution == "normal" and legacy:
            texts.append(_LEGACY_NORMAL.format(**common, kept=kept))
        else:
            fill = _filling(function)
            texts.append((_DOUBLE if (distribution, kind) == ("uniform", "double") else _NUMBER).format(**common, fill=fill))
            functions[function] = f"declare {kind} @{function}(ptr)"
            functions[fill] = f"declare void @{fill}(ptr, i64, ptr)"
    text = "\n".join([*functions.values(), *texts])
    imports = {name: address for name, address in _library().items() if name in functions}
    code = link([generate(parse(text), host_target(), level=2)], imports=imports, exports=tuple(exports))
    code.keep_forever()
    return code


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
    array = np.empty(51, dtype)
    for _ in range(3):
        if one(id(mine), *limits) != OPS["random"].evaluate(id(theirs), *limits, shape=(), **params)[1]:
            return False
        many(id(mine), *limits, array.size, array.ctypes.data)
        if array.tobytes() != OPS["random"].evaluate(id(theirs), *limits, shape=(51,), **params)[1].tobytes():
            return False
    return str(_get_state(mine)) == str(_get_state(theirs))


# ------------------------------------------------------------------------------------------------- while a program runs


class Drawing:
    """Runs a program that draws from generators.

    Args:
        run: the program; a result that is a failure has drawn nothing.
        positions: of the inputs that are generators' addresses.
        locks: whether it never draws through Python, so that the generators can be locked meanwhile.
    """

    def __init__(self, run: Callable[..., Any], positions: Sequence[int], *, locks: bool) -> None:
        self._run, self._positions, self._locks = run, positions, locks

    def __call__(self, *args: Any) -> Any:
        generators = [generator_at(args[n]) for n in self._positions]
        with _locked(generators if self._locks else ()), keeping_made():
            states = [_get_state(g) for g in generators]
            result = self._run(*args)
            if has_failed(result):
                for generator, state in zip(generators, states):
                    _set_state(generator, state)
        return result


@contextmanager
def _locked(generators: Sequence[Any]) -> Iterator[None]:
    """Each is taken once, in the order of their addresses, so that two programs do not wait for each other."""
    with ExitStack() as stack:
        for lock in dict(sorted((id(lock), lock) for lock in (_bits(g).lock for g in generators))).values():
            stack.enter_context(lock)
        yield


def _bits(generator: Any) -> Any:
    return generator._bit_generator if isinstance(generator, np.random.RandomState) else generator.bit_generator


def _get_state(generator: Any) -> Any:
    return generator.get_state(legacy=False) if isinstance(generator, np.random.RandomState) else generator.bit_generator.state


def _set_state(generator: Any, state: Any) -> None:
    if isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state
