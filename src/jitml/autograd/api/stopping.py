"""`stop_gradient`: a value that derivatives take for a constant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitml.autograd.api.calls import of_its_own
from jitml.autograd.tape.custom import detached
from jitml.autograd.tape.values import Taped
from jitml.diagnostics.tracebacks import entry
from jitml.ir import ops
from jitml.trace.record.pytree import flatten
from jitml.trace.record.recording import active_trace
from jitml.trace.values.boxing import TracedArray, TracedNumber, fresh_like, is_traced, read, scalar
from jitml.trace.values.kinds import rebuilt

if TYPE_CHECKING:
    from jitml.typing.functions import T


@entry
def stop_gradient(x: T) -> T:
    """The same value, which derivatives take for a constant. Of a container, each leaf.

    Arrays are new ones: what is written into `x` later does not change them, nor the reverse.

    >>> import numpy as np, jitml
    >>> jitml.grad(lambda x: x * stop_gradient(x))(np.float64(3.0))
    np.float64(3.0)
    """
    leaves, spec = flatten(x)
    stopped: T = rebuilt(spec, [_stopped(of_its_own(leaf)) for leaf in leaves])
    return stopped


def _stopped(leaf: Any) -> Any:
    if type(leaf) is Taped:
        return detached(leaf)
    if not is_traced(leaf) or leaf.dtype.kind not in "fc":
        return leaf
    value = ops.stop_gradient(read(leaf))
    if type(leaf) is TracedNumber:
        return TracedNumber.of_value(active_trace(), value)
    return fresh_like(value, leaf) if type(leaf) is TracedArray else scalar(value)
