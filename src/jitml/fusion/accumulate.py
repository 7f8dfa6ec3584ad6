"""Which sums are a product's business?  Those that do nothing but add its result to an array: BLAS adds where the sum lies.

Gradients of weights are such sums, one product for each step of a loop; made apart, a thin product is written, read and
added to an array as large as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from jitml.fusion.loops import Apply, Buffer, Kernel, Load, Loop, Store
from jitml.fusion.program import Call, Step, times_used


def accumulate(steps: Sequence[Step], buffers: Mapping[str, Buffer], kept: Collection[str]) -> tuple[list[Step], set[str]]:
    """`z = x @ y`, then `t = s + z`, becomes `t = s` and `t += x @ y`, which may happen in the memory of s.

    Args:
        kept: buffers that others read.

    Returns:
        The steps, and the buffers that they no longer need.
    """
    uses = times_used(steps, kept)
    found: list[Step] = []
    needless: set[str] = set()
    for step in steps:
        before = found[-1] if found else None
        if isinstance(step, Kernel) and isinstance(before, Call) and before.name == "gemm" and not before.updates:
            (product,) = before.writes
            sum_of = _sum_with(step, product, buffers)
            if sum_of is not None and "sized" not in before.params and uses[product] == 2 and sum_of[0] not in before.reads:
                term, total = sum_of
                sources = tuple(dict.fromkeys((*before.sources, *step.sources)))
                params = {**before.params, "adds": 1}
                found[-1] = replace(before, writes=(total,), params=params, updates={total: term}, sources=sources)
                needless.add(product)
                continue
        found.append(step)
    return found, needless


def _sum_with(kernel: Kernel, product: str, buffers: Mapping[str, Buffer]) -> tuple[str, str] | None:
    """What a kernel adds to a product, and where the sum is put, if that is all it does: arrays that lie alike."""
    body = kernel.body
    while len(body) == 1 and isinstance(body[0], Loop):
        body = body[0].body
    match body:
        case (Store(total, at, Apply("add", (Load(a, at_a), Load(b, at_b))), None),) if at == at_a == at_b and product in (a, b):
            term = b if a == product else a
        case _:
            return None
    lie_alike = all(buffers[name].is_c_contiguous for name in (term, product, total))
    if not lie_alike or kernel.updates or len({term, product, total}) < 3 or len({b.shape for b in kernel.params}) > 1:
        return None
    return term, total
