"""Combinations in templates: the C++ struct of an associative operation on elements of one type."""

from __future__ import annotations

from jitml.codegen.cuda.calls.text import number_type
from jitml.ir.types import DType, dtype_name
from jitml.kernels.ir import Combine

_INFINITY = {"f32": "__int_as_float(0x7f800000)", "f64": "__longlong_as_double(0x7ff0000000000000LL)"}


def combine_struct(name: str, combine: Combine, dtype: DType) -> str:
    """`name::type`, `name::combine(a, b)` and `name::identity()`, for numbers of 32 or 64 bits; narrower integers are `int`.

    Truth values are added up to whether one is true, and multiplied to whether all are.
    """
    kind = wide_type(dtype)
    is_float = dtype.kind == "f"
    if dtype.kind == "b":
        logical: dict[Combine, Combine] = {"add": "or", "max": "or", "mul": "and", "min": "and"}
        combine = logical.get(combine, combine)
    unsigned = kind if is_float else {"int": "unsigned int", "long long": "unsigned long long"}.get(kind, kind)
    match combine:
        case "add" | "mul":
            # Integers wrap, which C++ defines of unsigned ones alone.
            text = f"({kind})(({unsigned})a {'+' if combine == 'add' else '*'} ({unsigned})b)"
            identity = ("-0.0" if is_float else "0") if combine == "add" else "1"
        case "max" | "min":
            sign = ">" if combine == "max" else "<"
            text = f"a {sign} b || a != a ? a : b" if is_float else f"a {sign} b ? a : b"
            identity = _last(dtype, is_least=combine == "max")
        case _:
            text, identity = f"a {'|' if combine == 'or' else '&'} b", "0" if combine == "or" else "1"
    return f"""struct {name} {{
  typedef {kind} type;
  __device__ __forceinline__ static type identity() {{ return ({kind})({identity}); }}
  __device__ __forceinline__ static type combine(type a, type b) {{ return {text}; }}
}};
"""


def wide_type(dtype: DType) -> str:
    """The type in which elements are combined."""
    if dtype.kind != "f" and dtype.itemsize < 4:
        return "int"
    return number_type(dtype)


def _last(dtype: DType, *, is_least: bool) -> str:
    """What every number is at least, or at most."""
    if dtype.kind == "f":
        return f"{'-' if is_least else ''}{_INFINITY[dtype_name(dtype)]}"
    if dtype.kind in "ub":
        return "0" if is_least else f"({number_type(dtype)})-1"
    bits = 8 * dtype.itemsize
    return f"-{2 ** (bits - 1) - 1}LL - 1" if is_least else f"{2 ** (bits - 1) - 1}LL"
