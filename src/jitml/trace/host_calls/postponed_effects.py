"""What becomes of a call that others see: `print`?  It is made at every call, once nothing can fail.

The program hands over the values; what is done with them waits until the call has succeeded (`ir/ops/host.py`), in the order of
the program, for a call that NumPy answers after all prints for itself.
"""

from __future__ import annotations

import builtins
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from jitml.errors import Cause
from jitml.imports.late import late
from jitml.ir import ops
from jitml.ir.ops.host import HostFunction
from jitml.ir.run_state import postpone
from jitml.trace.host_calls.rules import require_allowed
from jitml.trace.record.recording import unsupported
from jitml.trace.values.registry import implements

if TYPE_CHECKING:
    from jitml.trace.host_calls import call as host_call
else:
    host_call = late("jitml.trace.host_calls.call")


@implements(builtins.print)
def printed(*args: Any, **kwargs: Any) -> None:
    """Record that the program prints, when it gets here, what may be traced."""
    if kwargs.get("file") is not None:
        unsupported("print() writes to a file of its own", "Leave file out.", Cause.EFFECT)
    require_allowed("print", "Leave it out.")
    form, operands = host_call.take_apart("print", args, kwargs)

    def run(*arrays: np.ndarray[Any, Any]) -> tuple[()]:
        given, named = form.plain([np.array(x) for x in arrays])
        postpone(functools.partial(print, *given, **named))
        return ()

    ops.host_call(*operands, function=HostFunction("print", run, (), postpones=True))
