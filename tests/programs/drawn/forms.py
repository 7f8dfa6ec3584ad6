"""The forms of expressions and statements, as templates; `{}` stands for an operand or a target."""

from __future__ import annotations

import numpy as np

DTYPES = ("np.float64", "np.int64", "np.float32", "bool", "np.int32", "np.uint8", "np.int8", "float", "int", "np.int16")
EXACT_UNARY = ("np.abs({})", "-{}", "np.square({})", "np.sign({})", "np.maximum({}, 0)", "np.minimum({}, 1)", "{}.copy()", "+{}")
ROUNDING_UNARY = ("np.floor({})", "np.isnan({})", "np.isfinite({})", "np.ceil({})", "np.logical_not({})", "np.invert({})")
INEXACT_UNARY = ("np.sin({})", "np.exp({})", "np.tanh({})", "np.cos({})", "np.log1p(np.abs({}))", "np.arctan({})", "np.cbrt({})")
# Of a large operand these make much of a difference in its last place.
WITHIN_A_PERIOD = {"np.sin({})": "np.sin(np.clip({}, -4, 4))", "np.cos({})": "np.cos(np.clip({}, -4, 4))"}
EXACT_BINARY = ("{} + {}", "{} - {}", "np.maximum({}, {})", "np.minimum({}, {})", "np.add({}, {})")
ROUNDED_BINARY = ("{} * {}", "{} / {}", "np.multiply({}, {})", "np.fmax({}, {})", "np.copysign({}, {})")
DECIDING_BINARY = (
    "{} // {}",
    "{} % {}",
    "{} > {}",
    "{} <= {}",
    "{} == {}",
    "{} != {}",
    "np.logical_and({}, {})",
    "{} < {}",
    "np.hypot({}, {})",
)
INTEGER_BINARY = ("{} & {}", "{} | {}", "{} ^ {}", "{} << ({} & 3)", "{} >> ({} & 3)", "{} << {}", "{} >> {}", "{} // ({} | 1)")
# Steps of integers with a number, as images and codes have them; some are of no use in few bits, or need many.
INTEGER_STEPS = (
    "{} + {}",
    "{} - {}",
    "{} * {}",
    "{} << {}",
    "{} >> {}",
    "{} // {}",
    "{} % {}",
    "{} & {}",
    "{} | {}",
    "{} ^ {}",
    "np.minimum({}, {})",
    "np.maximum({}, {})",
    "np.where({0} > {1}, {0}, 3)",
    "np.where({0} > {1}, {0}, {1})",
    "np.abs({0})",
    "-{0}",
    "~{0}",
)
INTEGERS = ("1", "2", "0", "3", "5", "7", "8", "15", "16", "31", "32", "63", "64", "77", "100", "127", "128", "255", "256")
INTEGERS += ("-1", "-2", "-8", "-128", "1000", "32767", "65535", "65536", "100000")
INTEGER_DTYPES = ("np.uint8", "np.int32", "np.int64", "np.int16", "np.uint16", "np.int8", "np.uint32", "np.uint64", "int")
INEXACT_BINARY = ("np.arctan2({}, {})", "{} ** {}", "np.hypot({}, {})", "np.power(np.abs({}), {})")
SUMS = ("{}.sum({})", "np.sum({}, {})", "np.add.reduce({}, {})")
MEANS = ("{}.mean({})", "np.prod({}, {})", "np.median({}, {})")
SPREADS = ("np.std({}, {})", "np.var({}, {})")  # of equal numbers that are rounded, nothing but rounding
PICKS = (
    "{}.max({})",
    "{}.min({})",
    "np.any({}, {})",
    "np.all({}, {})",
    "np.argmax({}, {})",
    "np.argmin({}, {})",
    "np.count_nonzero({}, {})",
    "np.ptp({}, {})",
)
CUMULATIVE = (
    "np.cumsum({}, {})",
    "np.maximum.accumulate({}, {})",
    "np.add.accumulate({}, {})",
    "np.diff({}, 1, {})",
    "np.sort({}, {})",
    "np.flip({}, {})",
    "np.roll({}, 1, {})",
    "np.roll({}, -2, {})",
)
JOINS = (
    "np.concatenate(({}, {}))",
    "np.stack([{}, {}])",
    "np.hstack(({}, {}))",
    "np.array([{}, {}])",
    "np.outer({}, {})",
    "np.append({}, {})",
)
PRODUCTS = ("{0} @ {1}", "np.dot({0}, {1})", "{0} @ {0}.T", "np.vdot({0}, {1})", "{0}.T @ {1}", "np.einsum('i,i->', {0}, {1})")
RESIZED = (
    "np.repeat({}, 2)",
    "np.tile({}, 2)",
    "np.clip({}, 0, 2)",
    "np.broadcast_to({}, (2, *{}.shape))",
    "np.nan_to_num({})",
    "np.atleast_2d({})",
    "np.squeeze({})",
    "np.pad({}, 1)",
    "np.triu({})",
    "np.expand_dims({}, 0)",
    "np.round({})",
    "np.transpose({})",
)
MADE = ("np.arange(5)", "np.ones(4)", "np.zeros((3, 4))", "np.arange(6.0).reshape(2, 3)", "np.eye(3)", "np.full(3, 2)")
# NumPy before 2.2 crashes where unsigned arrays with gaps are compared with a negative integer.
_NEGATIVE = "-1" if np.lib.NumpyVersion(np.__version__) >= "2.2.0" else "-1.0"
LITERALS = ("1", "2", "0", "0.5", _NEGATIVE, "3", "1.5", "-2.0", "True", "4", "0.25", "7")
OVERLAPS = (
    "{0}[1:] = {0}[:-1]",
    "{0}[1:] += {0}[:-1]",
    "{0}[:-1] = {0}[1:] * 2",
    "{0}[::-1] += {0}",
    "{0}[:] = {0}[::-1]",
    "{0}[1:-1] = ({0}[:-2] + {0}[2:]) / 2",
    "{0} += {0}.T",
    "{0}[1:, 1:] = {0}[:-1, :-1] - {0}[1:, :-1]",
    "{0}[..., 1:] -= {0}[..., :-1]",
    "np.add({0}[1:], {0}[:-1], out={0}[:-1])",
    "np.cumsum({0}, axis=0, out={0})",
    "{0}[::2] = {0}[::-2]",
    "{0}[[0, -1]] = {0}[[-1, 0]]",
    "{0}[0], {0}[-1] = {0}[-1], {0}[0]",
    "{0} *= {0}[0]",
)
METHODS = (
    "{}.fill(2)",
    "{}.sort()",
    "{}.sort(axis=0)",
    "np.put({}, [0, 1], 3)",
    "{}.flat[0] = 1",
    "np.fill_diagonal({}, 1)",
    "{0}[...] = {0}.copy()[::-1]",
    "np.clip({0}, 0, 3, out={0})",
    "np.absolute({0}, out={0})",
)
DRAWS = (
    "rng.random(3)",
    "rng.random()",
    "rng.integers(0, 5)",
    "rng.integers(0, 4, size=(2, 3))",
    "rng.standard_normal(4)",
    "rng.permutation(5)",
)
CARRIED = ("{} + 1", "{} + {}", "max({}, {})", "{} * 0.5", "min({}, {})", "{} - {}", "-{}", "abs({})")
