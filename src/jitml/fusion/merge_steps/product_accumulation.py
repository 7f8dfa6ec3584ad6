"""Accumulation into products: which sums are a product's business?

Those that do nothing but add its result to an array: BLAS adds where the sum lies.

Gradients of weights are such sums, one product for each step of a loop; made apart, a thin product is written, read and
added to an array as large as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from jitml.kernels.ir import Apply, Kernel, Load, Loop, Store
from jitml.kernels.program import Call, Step


def accumulate(steps: Sequence[Step], step: Step, uses: Mapping[str, int]) -> list[Step] | None:
    """`z = x @ y`, then `t = s + z`, becomes `t = s` and `t += x @ y`, which may happen in the memory of s; a `Merge`."""
    before = steps[-1] if steps else None
    if not isinstance(step, Kernel) or not isinstance(before, Call) or before.name != "gemm" or before.updates:
        return None
    (product,) = before.writes
    sum_of = _sum_with(step, product)
    if sum_of is None or "sized" in before.params or uses[product] != 2 or sum_of[0] in before.reads:
        return None
    term, total = sum_of
    sources = tuple(dict.fromkeys((*before.sources, *step.sources)))
    params = {**before.params, "adds": 1}
    return [*steps[:-1], replace(before, writes=(total,), params=params, updates={total: term}, sources=sources)]


def _sum_with(kernel: Kernel, product: str) -> tuple[str, str] | None:
    """What a kernel adds to a product, and where the sum is put, if that is all it does: arrays that lie alike."""
    body = kernel.body
    while len(body) == 1 and isinstance(body[0], Loop):
        body = body[0].body
    match body:
        case (Store(total, at, Apply("add", (Load(a, at_a), Load(b, at_b))), None),) if at == at_a == at_b and product in (a, b):
            term = b if a == product else a
        case _:
            return None
    lie_alike = all(b.is_c_contiguous for b in kernel.params)
    if not lie_alike or kernel.updates or len({term, product, total}) < 3 or len({b.shape for b in kernel.params}) > 1:
        return None
    return term, total
