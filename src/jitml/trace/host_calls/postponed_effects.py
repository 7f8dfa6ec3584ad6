"""What becomes of a call that others see: `print`, `warnings.warn`?  It is made at every call, once nothing can fail.

The program hands over the values; what is done with them waits until the call has succeeded (`ir/ops/host.py`), in the order of
the program, for a call that NumPy answers after all prints for itself.
"""

from __future__ import annotations

import builtins
import functools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from jitml.errors import Cause, FailedCheck
from jitml.imports.late import late
from jitml.ir import ops
from jitml.ir.ops.host import HostFunction
from jitml.ir.run_state import postpone
from jitml.trace.host_calls.rules import require_allowed
from jitml.trace.record.recording import unsupported, user_source
from jitml.trace.record.user_code import namespace
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
    _record("print", lambda *args, **kwargs: postpone(functools.partial(print, *args, **kwargs)), args, kwargs)


@implements(warnings.warn)
def _warned(message: Any, category: Any = None, stacklevel: int = 1, **kwargs: Any) -> None:
    """Comes from the user's own line, which filters and registries know; a filter that raises leaves the call to Python.

    NumPy's own warnings are recorded so, too: of imaginary parts that are lost, say.
    """
    place = user_source()
    if stacklevel != 1 or place is None or kwargs:
        unsupported("warnings.warn names a line outside the jitted function", "Leave stacklevel out.", Cause.EFFECT)
    kind = type(message) if isinstance(message, Warning) else category or UserWarning
    space = namespace()

    def warn(message: Any) -> None:
        if any(action == "error" for action, *_ in warnings.filters):
            raise FailedCheck("warnings.warn: a filter makes errors of warnings")
        registry = space.setdefault("__warningregistry__", {})
        name = space.get("__name__", "<unknown>")
        postpone(functools.partial(warnings.warn_explicit, message, kind, place.file, place.line, name, registry))

    _record("warnings.warn", warn, (message,), {})


def _record(name: str, act: Callable[..., None], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Record that the program calls `act` when it gets here."""
    require_allowed(name, "Leave it out.")
    form, operands = host_call.take_apart(name, args, kwargs)

    def run(*arrays: np.ndarray[Any, Any]) -> tuple[()]:
        given, named = form.plain([np.array(x) for x in arrays])
        act(*given, **named)
        return ()

    ops.host_call(*operands, function=HostFunction(name, run, (), postpones=True))
