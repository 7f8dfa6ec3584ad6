"""Memory that need not hold anything yet."""

from __future__ import annotations

from jitml.fusion.lower.nests import NestSite, nests
from jitml.ir import ops
from jitml.kernels.program import Call


@nests.rule(ops.empty)
def lower_empty(site: NestSite) -> None:
    site.steps.append(Call("empty", (), (site.out.name,), {}, site.sources))
