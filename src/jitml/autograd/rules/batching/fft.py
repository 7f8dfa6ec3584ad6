"""Batching of Fourier transforms: along the same axes of each row."""

from __future__ import annotations

from jitml.autograd.core.batch import Batch, Batched, Ints, Operand, shifted, vmap
from jitml.ir import ops


@vmap.rule(ops.fft)
def fft_rows(batch: Batch, x: Batched, *, axes: Ints, inverse: bool) -> Operand:
    return Batched(ops.fft(x.value, axes=shifted(axes, x.axis), inverse=inverse), x.axis)


@vmap.rule(ops.rfft)
def rfft_rows(batch: Batch, x: Batched, *, axis: int) -> Operand:
    return Batched(ops.rfft(x.value, axis=axis + (x.axis <= axis)), x.axis)


@vmap.rule(ops.irfft)
def irfft_rows(batch: Batch, x: Batched, *, axis: int, n: int) -> Operand:
    return Batched(ops.irfft(x.value, axis=axis + (x.axis <= axis), n=n), x.axis)
