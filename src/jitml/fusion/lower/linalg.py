"""Factorizations: NumPy's own routines, at that point of the program. (Of complex numbers: `fusion/parts/host.py`.)"""

from __future__ import annotations

from jitml.fusion.lower.host import call_python
from jitml.fusion.lower.nests import Site, nests
from jitml.ir.op import OPS
from jitml.ir.ops.host import function_of


@nests.rule(*(op for op in OPS.values() if op.family == "linalg"))
def lower_linalg(site: Site) -> None:
    call_python(site, function_of(site.node))
