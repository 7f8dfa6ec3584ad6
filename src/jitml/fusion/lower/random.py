"""Random numbers: an array of them as a call into a library, or into Python where there is none."""

from __future__ import annotations

from functools import partial

from jitml.fusion.lower.host import call_python
from jitml.fusion.lower.nests import NestSite, nests
from jitml.ir import ops
from jitml.ir.graph import Node
from jitml.ir.ops.host import HostFunction
from jitml.ir.ops.random import routine
from jitml.ir.types import I64
from jitml.kernels.ir import Store
from jitml.kernels.program import Call
from jitml.kernels.target import Target


def native_routine(node: Node, target: Target) -> str | None:
    """What draws a node's numbers natively; None if nothing does."""
    name = routine(node.params["distribution"], node.params["legacy"], node.params["dtype"])
    accepts = target.calls.get("random")
    return name if accepts is not None and accepts.has(name) else None


@nests.rule(ops.random)
def lower_random(site: NestSite) -> None:
    node, (address, numbers) = site.node, site.writes
    name, (_, drawn) = native_routine(node, site.target), node.outputs
    reads = tuple(b.name for b in site.reads)
    if name is None:
        params = dict(node.params) | {"shape": drawn.shape}
        avals = (node.inputs[0].aval, drawn.aval)
        function = HostFunction(f"{params['distribution']} numbers", partial(ops.random.evaluate, **params), avals, draws=True)
        call_python(site, function)
        return
    count = drawn.size
    if not isinstance(count, int):
        length = site.new_buffer(I64, ())
        site.emit((Store(length.name, (), site.sizes.expr(count)),), length)
        reads, count = (*reads, length.name), None
    site.steps.append(Call("random", reads, (address.name, numbers.name), {"routine": name, "count": count}, site.sources))
