"""Abstract values: what is a value's type?  An `Aval`: a shape and a dtype.

Every layer below tracing speaks of values by their aval and never by their data. Dimensions are integers where they are
known and `Dim`s (`dims.py`) where only the running program knows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import prod

import numpy as np

from jitml.errors import UnsupportedError
from jitml.ir.dims import Sym, bound, parse_size, syms_in
from jitml.records import dataclass

DType = np.dtype[np.generic]

# The text form's names, as in LLVM's IR and Rust: one letter for the kind, then bits.
DTYPES: dict[str, DType] = {
    "bool": np.dtype(np.bool_),
    **{f"i{8 * n}": np.dtype(f"i{n}") for n in (1, 2, 4, 8)},
    **{f"u{8 * n}": np.dtype(f"u{n}") for n in (1, 2, 4, 8)},
    **{f"f{8 * n}": np.dtype(f"f{n}") for n in (2, 4, 8)},
    **{f"c{8 * n}": np.dtype(f"c{n}") for n in (8, 16)},
}
_NAMES: dict[DType, str] = {dtype: name for name, dtype in DTYPES.items()}

BOOL, I32, I64, U64, F16, F32, F64 = (DTYPES[name] for name in ("bool", "i32", "i64", "u64", "f16", "f32", "f64"))
C64, C128 = DTYPES["c64"], DTYPES["c128"]


def dtype_name(dtype: DType) -> str:
    """The text form's name of a dtype: `f32` for float32, `bool` for bool.

    Raises:
        UnsupportedError: the dtype is none of bool, i8..i64, u8..u64, f16..f64, c64, c128.

    >>> dtype_name(np.dtype("float32"))
    'f32'
    """
    name = _NAMES.get(dtype)
    if name is None:
        raise UnsupportedError(
            f"dtype {dtype} is not supported: jitml compiles bool, int8..int64, uint8..uint64, float16..float64 and complex",
            remedy="Convert the array with .astype(...) before the jitted call, or leave this part outside jit.",
        )
    return name


def is_supported(dtype: DType) -> bool:
    """Whether arrays of this dtype (native byte order) can be compiled."""
    return dtype in _NAMES


def signed(dtype: DType) -> DType:
    """The signed integer dtype of the same width (of a float: of its bits).

    >>> signed(F64)
    dtype('int64')
    """
    return DTYPES[f"i{8 * dtype.itemsize}"]


def unsigned(dtype: DType) -> DType:
    return DTYPES[f"u{8 * dtype.itemsize}"]


def is_float(dtype: DType) -> bool:
    return dtype.kind == "f"


def is_complex(dtype: DType) -> bool:
    return dtype.kind == "c"


def is_inexact(dtype: DType) -> bool:
    """Float or complex: what may be differentiated."""
    return dtype.kind in "fc"


def part_dtype(dtype: DType) -> DType:
    """The dtype of a complex number's parts; any other dtype is its own."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def is_integer(dtype: DType) -> bool:
    """Signed or unsigned integer; bool is neither."""
    return dtype.kind in "iu"


@dataclass(frozen=True, slots=True)
class Aval:
    """An abstract value: shape and dtype of an array that is not there yet.

    >>> str(Aval((32, 128), F32))
    'f32[32,128]'
    """

    shape: tuple[int, ...]  # ints and Dims; typed as ints, which a Dim stands in for
    dtype: DType

    @property
    def is_static(self) -> bool:
        """Whether the whole shape is known."""
        return all(type(n) is int for n in self.shape)

    @property
    def syms(self) -> frozenset[Sym]:
        """What the shape depends on."""
        return frozenset(syms_in(self.shape))

    @property
    def bounds(self) -> tuple[int, ...]:
        """The largest shape, all ints: what memory is laid out for."""
        return tuple(map(bound, self.shape))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements: a Dim if the shape is not known."""
        return prod(self.shape)

    @property
    def capacity(self) -> int:
        """Number of elements of the largest shape."""
        return prod(self.bounds)

    @property
    def nbytes(self) -> int:
        """Bytes of the largest shape."""
        return self.capacity * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{dtype_name(self.dtype)}[{','.join(map(str, self.shape))}]"

    __repr__ = __str__

    def with_shape(self, shape: Iterable[int]) -> Aval:
        return Aval(tuple(shape), self.dtype)

    def with_dtype(self, dtype: DType) -> Aval:
        return Aval(self.shape, dtype)


def aval_of(x: object) -> Aval:
    """The aval of an array, a NumPy scalar or a Python number (64-bit, as NumPy would make of it)."""
    array = np.asarray(x)
    return Aval(array.shape, array.dtype)


_AVAL = re.compile(r"([a-z]+\d*)\[([^\[\]]*)\]")


def parse_aval(text: str, syms: Mapping[str, Sym] | None = None) -> Aval:
    """Read the text form of an aval back.

    Args:
        syms: what the names in the shape stand for.

    >>> parse_aval("f32[32,128]").shape
    (32, 128)
    """
    match = _AVAL.fullmatch(text.strip())
    if match is None or match[1] not in DTYPES:
        raise ValueError(f"not an aval: {text!r} (expected, for instance, f32[2,3])")
    return Aval(tuple(parse_size(n, syms or {}) for n in match[2].split(",") if n), DTYPES[match[1]])  # type: ignore[misc]  # see shape


def normalize_axis(axis: int, ndim: int) -> int:
    """A negative axis counted from the end; AxisError as NumPy raises it."""
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim
