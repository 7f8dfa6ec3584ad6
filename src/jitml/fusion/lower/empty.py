"""Memory that need not hold anything yet."""

from __future__ import annotations

from jitml.fusion.lower.nests import Site, nests
from jitml.ir import ops
from jitml.kernels.program import Call


@nests.rule(ops.empty)
def lower_empty(site: Site) -> None:
    site.steps.append(Call("empty", (), (site.out.name,), {}, site.sources))
