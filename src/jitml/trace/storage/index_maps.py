"""Index maps: what shows a part of an array, or all of it in another way?

`Step`: an index map, and how to write back through it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.dims import Size, resolve
from jitml.ir.graph import Value
from jitml.ir.op import Op
from jitml.ir.types import I64, Aval, DType
from jitml.records import dataclass
from jitml.trace.storage.strides import Ints, invert
from jitml.trace.symbolic.broadcasting import require_sizes


@dataclass(frozen=True, slots=True)
class Step:
    """One index map of a view's chain."""

    op: Op
    params: dict[str, Any]
    before: Aval
    starts: tuple[Value, ...] = ()  # of a window at a run-time place; of a gather, the places

    def read(self, base: Value) -> Value:
        if self.op is ops.resize:
            return require_sizes(base, self.params["shape"])
        return self.op(base, *self.starts, **self.params)

    def show(self, array: Any, numbers: Mapping[Any, int]) -> Any:
        """NumPy's view of an array; `numbers` are what sizes and starts are in this call."""
        params = {name: resolve(param, numbers) for name, param in self.params.items()} if numbers else self.params
        return self.op.run((array, *(numbers[start] for start in self.starts)), params)

    @property
    def is_window(self) -> bool:
        """Whether it shows a part of its base, so that writing needs to know the rest."""
        return self.op in (ops.slice, ops.dynamic_slice, ops.gather, ops.real, ops.imag)

    def write(self, base: Value, value: Value) -> Value:
        """The base with the part that `read` shows replaced by `value`."""
        params = self.params
        if self.op is ops.slice:
            if value.shape == base.shape:
                return value
            return ops.update_slice(base, value, start=params["start"], step=params["step"])
        if self.op is ops.dynamic_slice:
            return ops.dynamic_update_slice(base, value, *self.starts, step=params["step"])
        if self.op is ops.gather:
            return ops.scatter(base, value, *self.starts, axis=params["axis"], combine="set")
        if self.op is ops.resize:
            return require_sizes(value, self.before.shape)
        if self.op is ops.real:
            return ops.complex(value, ops.imag(base))
        if self.op is ops.imag:
            return ops.complex(ops.real(base), value)
        if self.op is ops.flip:
            return ops.flip(value, axes=params["axes"])
        if self.op is ops.transpose:
            return ops.transpose(value, perm=invert(params["perm"]))
        assert self.op is ops.reshape, f"a view through {self.op} cannot be written"
        return ops.reshape(value, shape=self.before.shape)


def reinterpret(x: Value, dtype: DType) -> Value:
    """The memory of real numbers read as others of the same width."""
    as_integer: Value = ops.bits(x) if x.dtype.kind == "f" else x
    if dtype.kind != "f":
        return as_integer if as_integer.dtype == dtype else ops.convert(as_integer, dtype=dtype)
    same = np.dtype(f"i{dtype.itemsize}")
    result: Value = ops.from_bits(as_integer if as_integer.dtype == same else ops.convert(as_integer, dtype=same))
    return result


@dataclass(frozen=True, slots=True)
class Reinterpreted(Step):
    """All of an array as numbers of another dtype, of the same width."""

    @classmethod
    def of(cls, before: Aval, dtype: DType) -> Reinterpreted:
        return cls(ops.bits, {"dtype": dtype}, before)

    def read(self, base: Value) -> Value:
        return reinterpret(base, self.params["dtype"])

    def write(self, base: Value, value: Value) -> Value:
        return reinterpret(value, self.before.dtype)

    def show(self, array: Any, numbers: Mapping[Any, int]) -> Any:
        return array.view(self.params["dtype"])


@dataclass(frozen=True, slots=True)
class Diagonal(Step):
    """The diagonal of the last two axes, of equal size n: every (n + 1)-th of the elements of such a square in a row."""

    @classmethod
    def of(cls, before: Aval) -> Diagonal:
        return cls(ops.slice, {"diagonal": before.shape[-1]}, before)

    @property
    def _line(self) -> tuple[Ints, dict[str, Ints]]:
        *ahead, n, _ = self.before.shape
        zeros, ones = (0,) * len(ahead), (1,) * len(ahead)
        return (*ahead, n * n), {"start": (*zeros, 0), "stop": (*ahead, n * n), "step": (*ones, n + 1)}

    def read(self, base: Value) -> Value:
        shape, part = self._line
        return ops.slice(ops.reshape(base, shape=shape), **part)

    def write(self, base: Value, value: Value) -> Value:
        shape, part = self._line
        line = ops.update_slice(ops.reshape(base, shape=shape), value, start=part["start"], step=part["step"])
        return ops.reshape(line, shape=self.before.shape)

    def show(self, array: Any, numbers: Mapping[Any, int]) -> Any:
        return _diagonal_of(array)


@dataclass(frozen=True, slots=True)
class OpenDiagonal(Step):
    """The diagonal of the last two axes of sizes that only the running program knows, `down` and `right` of the corner."""

    @classmethod
    def of(cls, before: Aval, down: int, right: int, size: Size) -> OpenDiagonal:
        return cls(ops.gather, {"down": down, "right": right, "size": size}, before)

    @property
    def _at(self) -> tuple[Value, Value]:
        index = ops.iota(shape=(self.params["size"],), axis=0, dtype=I64)
        down, right = self.params["down"], self.params["right"]
        return (index + down if down else index), (index + right if right else index)

    def read(self, base: Value) -> Value:
        return ops.gather(base, *self._at, axis=self.before.ndim - 2)

    def write(self, base: Value, value: Value) -> Value:
        return ops.scatter(base, value, *self._at, axis=self.before.ndim - 2, combine="set")

    def show(self, array: Any, numbers: Mapping[Any, int]) -> Any:
        part = array[..., self.params["down"] :, self.params["right"] :]
        size = min(part.shape[-2:])
        return _diagonal_of(part[..., :size, :size])


def _diagonal_of(squares: Any) -> Any:
    shown = np.einsum("...ii->...i", squares)  # np.diagonal would be read-only
    shown.flags.writeable = squares.flags.writeable
    return shown
