"""Reductions: how partial results combine, and where they start."""

from __future__ import annotations

import numpy as np

from jitml.ir import ops
from jitml.ir.op import Op
from jitml.ir.types import F32, DType
from jitml.kernels.ir import Combine
from jitml.records import dataclass


@dataclass(frozen=True, slots=True)
class Reduction:
    """An associative operation by its kernel name."""

    combine: Combine

    def identity(self, dtype: DType) -> bool | int | float:
        number: type[bool] | type[int] | type[float] = {"b": bool, "f": float}.get(dtype.kind, int)
        if self.combine in ("add", "or", "mul", "and"):
            return number(self.combine in ("mul", "and"))
        if number is float:
            return float("-inf") if self.combine == "max" else float("inf")
        if number is bool:
            return self.combine == "min"
        limits = np.iinfo(dtype.name)
        return int(limits.min if self.combine == "max" else limits.max)

    def accumulator(self, dtype: DType) -> DType:
        """Half precision sums in single, as NumPy does."""
        return F32 if dtype == np.float16 and self.combine in ("add", "mul") else dtype


REDUCTIONS: dict[Op, Reduction] = {
    ops.reduce_sum: Reduction("add"),
    ops.reduce_prod: Reduction("mul"),
    ops.reduce_max: Reduction("max"),
    ops.reduce_min: Reduction("min"),
    ops.reduce_all: Reduction("and"),
    ops.reduce_any: Reduction("or"),
}
