"""What moves elements, or adds them up, does so to each part alone; and the ways in and out of complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitml.fusion.complex.split import Complex, Part, each_part, splitting
from jitml.ir import ops
from jitml.ir.analysis.fp_errors import RAISING
from jitml.ir.graph import Node, Value
from jitml.ir.types import BOOL, DType, is_complex, part_dtype


def zeros(x: Value) -> Value:
    made: Value = ops.full(value=0.0, shape=x.shape, dtype=x.dtype)
    return made


@splitting.rule(ops.broadcast, ops.transpose, ops.reshape, ops.slice, ops.flip, ops.pad, ops.concat, ops.update_slice)
@splitting.rule(ops.dynamic_slice, ops.dynamic_update_slice, ops.compress, ops.resize, ops.gather, ops.scatter)
@splitting.rule(ops.select, ops.add, ops.sub, ops.neg, ops.rint, ops.stop_gradient)
@splitting.rule(ops.reduce_sum, ops.cumsum, ops.check, *RAISING.values())
def split_alike(node: Node, *operands: Part) -> Complex:
    return each_part(node.op, *operands, **node.params)


@splitting.rule(ops.full)
def split_full(node: Node) -> Complex:
    number, dtype = complex(node.params["value"]), part_dtype(node.params["dtype"])
    shape = node.params["shape"]
    return Complex(ops.full(value=number.real, shape=shape, dtype=dtype), ops.full(value=number.imag, shape=shape, dtype=dtype))


@splitting.rule(ops.empty)
def split_empty(node: Node) -> Complex:
    params = {**node.params, "dtype": part_dtype(node.params["dtype"])}
    return Complex(ops.empty(**params), ops.empty(**params))


@splitting.rule(ops.array)
def split_array(node: Node) -> Complex:
    dtype = part_dtype(node.params["dtype"])

    def literal(part: Any) -> Value:
        value: Value = ops.array(value=np.array(part, order="C"), shape=node.params["shape"], dtype=dtype)
        return value

    value = np.asarray(node.params["value"], node.params["dtype"])
    return Complex(literal(value.real), literal(value.imag))


@splitting.rule(ops.iota)
def split_iota(node: Node) -> Complex:
    line = ops.iota(**{**node.params, "dtype": part_dtype(node.params["dtype"])})
    return Complex(line, zeros(line))


@splitting.rule(ops.convert)
def split_convert(node: Node, x: Part) -> Part:
    dtype = node.params["dtype"]
    if not isinstance(x, Complex):
        part = _converted(x, part_dtype(dtype))
        return Complex(part, zeros(part))
    if is_complex(dtype):
        return Complex(_converted(x.re, part_dtype(dtype)), _converted(x.im, part_dtype(dtype)))
    if dtype == BOOL:
        truth: Value = ops.bit_or(ops.ne(x.re, 0.0), ops.ne(x.im, 0.0))
        return truth
    return _converted(x.re, dtype)


def _converted(x: Value, dtype: DType) -> Value:
    return x if x.dtype == dtype else ops.convert(x, dtype=dtype)


@splitting.rule(ops.complex)
def split_complex(node: Node, re: Value, im: Value) -> Complex:
    return Complex(re, im)


@splitting.rule(ops.real)
def split_real(node: Node, x: Complex) -> Value:
    return x.re


@splitting.rule(ops.imag)
def split_imag(node: Node, x: Complex) -> Value:
    return x.im


@splitting.rule(ops.conj)
def split_conj(node: Node, x: Complex) -> Complex:
    return Complex(x.re, ops.neg(x.im))


@splitting.rule(ops.dot_general)
def split_dot_general(node: Node, x: Complex, y: Complex) -> Complex:
    def dot(a: Value, b: Value) -> Value:
        product: Value = ops.dot_general(a, b, **node.params)
        return product

    return Complex(ops.sub(dot(x.re, y.re), dot(x.im, y.im)), ops.add(dot(x.re, y.im), dot(x.im, y.re)))
