"""Numbers drawn from a generator, whose state changes: the effect that the address, handed on, keeps in order.

random  (address, *limits) {distribution, legacy, shape, dtype} -> address, numbers
    `uniform` in [0, 1), `normal` and `exponential` of scale 1, `integers` between two limits (i64[], both included).
    `legacy`: the generator is a RandomState.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jitml.errors import DTypeError, ShapeError
from jitml.ir.op import Op
from jitml.ir.run_state import generator_at
from jitml.ir.types import I64, Aval, DType, dtype_name

DISTRIBUTIONS = ("uniform", "normal", "exponential", "integers")


def _random_aval(
    address: Aval, *limits: Aval, distribution: str, legacy: bool, shape: tuple[int, ...], dtype: DType
) -> tuple[Aval, Aval]:
    if distribution not in DISTRIBUTIONS:
        raise DTypeError(f"random: there is no distribution {distribution}")
    if any(x != Aval((), I64) for x in (address, *limits)):
        raise DTypeError("random: an address and limits are i64[]")
    if len(limits) != 2 * (distribution == "integers"):
        raise ShapeError(f"random: {distribution} takes {2 * (distribution == 'integers')} limits, not {len(limits)}")
    if dtype.kind not in ("biu" if distribution == "integers" else "f"):
        raise DTypeError(f"random: {distribution} gives no {dtype_name(dtype)}")
    return address, Aval(shape, dtype)


def _draw(address: Any, *limits: Any, distribution: str, legacy: bool, shape: tuple[int, ...], dtype: DType) -> Any:
    generator = generator_at(int(address))
    if distribution == "integers":
        # Limits of uint64 are the same bits.
        low, high = (int(np.int64(x).view(np.uint64) if dtype == np.uint64 else x) for x in limits)
        numbers = generator.randint(low, high + 1, shape, dtype) if legacy else generator.integers(low, high + 1, shape, dtype)
        return address, np.asarray(numbers, dtype)
    if distribution == "uniform":
        return address, np.asarray(generator.random_sample(shape) if legacy else generator.random(shape, dtype.type))
    method = getattr(generator, f"standard_{distribution}")
    return address, np.asarray(method(shape) if legacy else method(shape, dtype.type))


random = Op("random", "random", _random_aval, _draw, has_effect=True)


def routine(distribution: str, legacy: bool, dtype: DType) -> str:
    """The name of the native function that draws such numbers.

    >>> routine("uniform", False, np.dtype("f8"))
    'jitml_uniform_f64'
    """
    return f"jitml_{'legacy_' if legacy else ''}{distribution}_{dtype_name(dtype)}"
