"""Users' functions of numbers: ops that are made when a program first calls such a function (`jitml.elementwise`).

What computes one element comes as LLVM IR, which another compiler has written. Its name has a digest of that IR: ops of one name
compute the same, in any process.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from jitml.errors import DTypeError
from jitml.ir.op import OPS, ScalarCode, UserFunction
from jitml.ir.ops.pointwise import check_shapes
from jitml.ir.types import Aval, DType, dtype_name

WORK = 20.0  # of a function that nobody has looked into: a polynomial's


def user_function(name: str, code: ScalarCode, evaluate: Callable[..., Any], *, is_total: bool) -> UserFunction:
    """The op that computes so.

    Args:
        name: the user's, for people.
        evaluate: the same of arrays.
        is_total: see `Op`.
    """
    digest = blake2b(repr((code, is_total)).encode(), digest_size=8).hexdigest()
    full = f"{''.join(c if c.isascii() and c.isalnum() else '_' for c in name)}_{digest}"
    known = OPS.get(full)
    if isinstance(known, UserFunction):
        return known

    def aval(*operands: Aval) -> Aval:
        given = tuple(x.dtype for x in operands)
        if given != code.operands:
            raise DTypeError(f"{full} takes {_named(code.operands)}, not {_named(given)}")
        check_shapes(full, operands)
        return operands[0].with_dtype(code.result)

    return UserFunction(full, "pointwise", aval, evaluate, is_total=is_total, work=WORK, code=code)


def _named(dtypes: tuple[DType, ...]) -> str:
    return f"({', '.join(map(dtype_name, dtypes))})"


__all__ = ["user_function"]
