"""jitml compiles functions that are written with NumPy: the same answer, fused, differentiated, run as native code.

>>> import numpy as np, jitml
>>> @jitml.jit
... def distance(x, y):
...     return np.sqrt(((x - y) ** 2).sum())
>>> print(distance(np.zeros(4), np.ones(4)))
2.0
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from jitml.api import explain, jit
from jitml.control import cond, fori_loop, scan, while_loop
from jitml.device.array import Array
from jitml.device.convert import asarray, from_dlpack
from jitml.device.registry import copies, devices
from jitml.errors import (
    DerivativeError,
    DeviceFault,
    DeviceMemoryError,
    DTypeError,
    JitmlError,
    NoDeviceError,
    NonFiniteError,
    ShapeError,
    TraceError,
    UnsupportedError,
)
from jitml.ir.execute.debug_nans import debug_nans
from jitml.trace.record.pytree import register_pytree_node
from jitml.trace.values.registry import REGISTRY
from jitml.verification.reproduce import reproduce

if TYPE_CHECKING:
    from jitml import numpy
    from jitml.autograd.api import (
        check_grads,
        checkpoint,
        checkpoint_name,
        custom_jvp,
        custom_vjp,
        grad,
        hessian,
        hvp,
        jacfwd,
        jacobian,
        jacrev,
        jvp,
        linearize,
        stop_gradient,
        value_and_grad,
        vjp,
        vmap,
    )

__version__ = "0.1.0"

__all__ = [
    "Array",
    "DTypeError",
    "DerivativeError",
    "DeviceFault",
    "DeviceMemoryError",
    "JitmlError",
    "NoDeviceError",
    "NonFiniteError",
    "ShapeError",
    "TraceError",
    "UnsupportedError",
    "asarray",
    "check_grads",
    "checkpoint",
    "checkpoint_name",
    "cond",
    "copies",
    "custom_jvp",
    "custom_vjp",
    "debug_nans",
    "devices",
    "explain",
    "fori_loop",
    "from_dlpack",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "linearize",
    "numpy",
    "register_pytree_node",
    "reproduce",
    "scan",
    "stop_gradient",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]

# Half of what there is to import is needed by the first trace or the first derivative only.
_DERIVATIVES = (
    "check_grads",
    "checkpoint",
    "checkpoint_name",
    "custom_jvp",
    "custom_vjp",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "stop_gradient",
    "value_and_grad",
    "vjp",
    "vmap",
)
REGISTRY.before_tracing(lambda: import_module("jitml.numpy"))


def __getattr__(name: str) -> Any:
    if name in _DERIVATIVES:
        globals()[name] = value = getattr(import_module("jitml.autograd.api"), name)
        return value
    if name == "numpy":
        return import_module("jitml.numpy")
    raise AttributeError(f"module 'jitml' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_DERIVATIVES, "numpy"]
