"""Parts of complex numbers: linear over the real numbers, and transposed so that a real function of z has the gradient
df/dx - i df/dy."""

from __future__ import annotations

from jitml.autograd.core.transpose import Cotangent, LinearPlace, Operand, transpose, zeros
from jitml.ir import ops
from jitml.ir.graph import Value


@transpose.rule(ops.complex)
def complex_transpose(ct: Value, re: Operand, im: Operand) -> tuple[Cotangent, ...]:
    return (
        ops.real(ct) if isinstance(re, LinearPlace) else None,
        ops.neg(ops.imag(ct)) if isinstance(im, LinearPlace) else None,
    )


@transpose.rule(ops.real)
def real_transpose(ct: Value, x: Operand) -> tuple[Cotangent, ...]:
    return (ops.complex(ct, zeros(ct.aval)),)


@transpose.rule(ops.imag)
def imag_transpose(ct: Value, x: Operand) -> tuple[Cotangent, ...]:
    return (ops.complex(zeros(ct.aval), ops.neg(ct)),)


@transpose.rule(ops.conj)
def conj_transpose(ct: Value, x: Operand) -> tuple[Cotangent, ...]:
    return (ops.conj(ct),)
