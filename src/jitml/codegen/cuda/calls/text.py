"""Texts of CUDA C++: C++ types of elements, combinations, index expressions, and the templates beside this file, `.cuh`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from jitml.codegen.cuda.target import THREADS
from jitml.errors import UnsupportedError
from jitml.ir.types import DType, dtype_name
from jitml.kernels.ir import INFIX, Apply, Combine, Const, Expr, Var, variables_of
from jitml.kernels.sizes import SizeSource

# Memory by its width: copies need no more than that.
WORDS: Mapping[int, str] = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long", 16: "uint4"}
NUMBERS: Mapping[str, str] = {
    "bool": "unsigned char",
    "i8": "signed char",
    "i16": "short",
    "i32": "int",
    "i64": "long long",
    "u8": "unsigned char",
    "u16": "unsigned short",
    "u32": "unsigned int",
    "u64": "unsigned long long",
    "f16": "unsigned short",  # its bits
    "f32": "float",
    "f64": "double",
}
_INFINITY = {"f32": "__int_as_float(0x7f800000)", "f64": "__longlong_as_double(0x7ff0000000000000LL)"}
# Index arithmetic; divisors are numbers above 0 here, and dividends are no less than 0.
_FUNCTIONS: Mapping[str, str] = {
    "minimum": "({0} < {1} ? {0} : {1})",
    "maximum": "({0} > {1} ? {0} : {1})",
    "floor_divide": "({0} / {1})",
    "neg": "(-{0})",
}


@cache
def template(name: str) -> str:
    """The text of `name.cuh`."""
    return files(__package__).joinpath(f"{name}.cuh").read_text("utf-8")


def number_type(dtype: DType) -> str:
    return NUMBERS[dtype_name(dtype)]


def index_text(expr: Expr) -> str:
    """An index expression over size variables.

    Raises:
        UnsupportedError: it has a function that sizes are not made by.
    """
    match expr:
        case Const(value):
            return f"{int(value)}LL"
        case Var(name):
            return f"v_{name}"
        case Apply("add" | "sub" | "mul" as fn, (x, y)):
            return f"({index_text(x)} {INFIX[fn][0]} {index_text(y)})"
        case Apply(fn, args) if fn in _FUNCTIONS:
            return _FUNCTIONS[fn].format(*map(index_text, args))
    raise UnsupportedError(f"a call on a GPU knows no size like {expr}")


def size_lets(exprs: Sequence[Expr], sizes: Mapping[str, SizeSource]) -> tuple[list[str], tuple[str, ...]]:
    """Statements that load the size variables of expressions, and the buffers where these lie: the parameters `s0`, `s1` ..."""
    names = sorted(variables_of(*exprs))
    buffers = tuple(dict.fromkeys(sizes[name].buffer for name in names))
    lines = []
    for name in names:
        source = sizes[name]
        value = f"*s{buffers.index(source.buffer)}"
        if source.low is not None and source.high is not None:
            value = f"ji_clamped({value}, {source.low}LL, {source.high}LL)"
        lines.append(f"const long long v_{name} = {value};")
    return lines, buffers


def entry(
    name: str, parameters: Sequence[str], body: Sequence[str], comment: str = "", *, has_error: bool = False, resident: int = 1
) -> str:
    """A function that is launched.

    Args:
        resident: blocks that are to fit on a multiprocessor, if registers have to be spilled for it.
        has_error: whether it looks for a check that has failed: for functions whose sizes are then nothing to go by.
    """
    head = [f"// {comment}"] if comment else []
    if has_error:
        parameters, body = [*parameters, "const long long* error"], ["if (error && *error) return;", *body]
    first = f'extern "C" __global__ void __launch_bounds__({THREADS}, {resident}) {name}({", ".join(parameters)}) {{'
    return "\n".join([*head, first, *(f"  {line}" for line in body), "}", ""])


def written(kind: str, name: str) -> str:
    """The parameter of memory that is written."""
    return f"{kind}* __restrict__ {name}"


def read(kind: str, name: str) -> str:
    """The parameter of memory that nobody writes meanwhile."""
    return f"const {kind}* __restrict__ {name}"


def read_sizes(buffers: Sequence[str]) -> list[str]:
    """The parameters of what `size_lets` loads."""
    return [read("long long", f"s{n}") for n in range(len(buffers))]


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
