"""jitml compiles functions that are written with NumPy: the same answer, fused, differentiated, run as native code.

>>> import numpy as np, jitml
>>> @jitml.jit
... def distance(x, y):
...     return np.sqrt(((x - y) ** 2).sum())
>>> print(distance(np.zeros(4), np.ones(4)))
2.0
"""

from importlib import import_module
from os import environ
from typing import TYPE_CHECKING, Any

if any(name.startswith("JITML_") for name in environ):
    from jitml import config as config  # reads them, and says what is wrong there
    from jitml import options as options  # which functions are decorated with then

    if config.CONFIG.disable:
        import_module("jitml.functions").disable()

if TYPE_CHECKING:
    from jitml import numpy as numpy
    from jitml import typing as typing
    from jitml.api import explain, jit
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
    from jitml.codegen.run.background import settle
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
        RecompileWarning,
        ShapeError,
        TraceError,
        UnsupportedError,
    )
    from jitml.functions import disable, enable
    from jitml.ir.execute.debug_nans import debug_nans
    from jitml.scalar_functions.elementwise import elementwise
    from jitml.trace.environment.callbacks import pure_callback
    from jitml.trace.record.pytree import register_pytree_node
    from jitml.verification.reproduce import reproduce

__version__ = "0.2.0"

__all__ = [
    "Array",
    "DTypeError",
    "DerivativeError",
    "DeviceFault",
    "DeviceMemoryError",
    "JitmlError",
    "NoDeviceError",
    "NonFiniteError",
    "RecompileWarning",
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
    "disable",
    "elementwise",
    "enable",
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
    "pure_callback",
    "register_pytree_node",
    "reproduce",
    "scan",
    "settle",
    "stop_gradient",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]

# Where each name is: what a program does not ask for, it does not wait for.
_NAMES = {
    "jitml.api": ("explain", "jit"),
    "jitml.codegen.run.background": ("settle",),
    "jitml.control": ("cond", "fori_loop", "scan", "while_loop"),
    "jitml.device.array": ("Array",),
    "jitml.device.convert": ("asarray", "from_dlpack"),
    "jitml.device.registry": ("copies", "devices"),
    "jitml.errors": (
        *("DTypeError", "DerivativeError", "DeviceFault", "DeviceMemoryError", "JitmlError", "NoDeviceError", "NonFiniteError"),
        *("RecompileWarning", "ShapeError", "TraceError", "UnsupportedError"),
    ),
    "jitml.functions": ("disable", "enable"),
    "jitml.ir.execute.debug_nans": ("debug_nans",),
    "jitml.notebook.magics": ("load_ipython_extension",),  # what `%load_ext jitml` looks for
    "jitml.scalar_functions.elementwise": ("elementwise",),
    "jitml.trace.environment.callbacks": ("pure_callback",),
    "jitml.trace.record.pytree": ("register_pytree_node",),
    "jitml.verification.reproduce": ("reproduce",),
    "jitml.autograd.api": (
        *("check_grads", "checkpoint", "checkpoint_name", "custom_jvp", "custom_vjp", "grad", "hessian", "hvp", "jacfwd"),
        *("jacobian", "jacrev", "jvp", "linearize", "stop_gradient", "value_and_grad", "vjp", "vmap"),
    ),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
_PARTS = (
    "api",
    "control",
    "device",
    "config",
    "diagnostics",
    "dispatch",
    "forks",
    "interrupts",
    "ir",
    "numpy",
    "options",
    "process",
    "trace",
    "typing",
    "verification",
)


if not TYPE_CHECKING:  # to type checkers, what is not imported above is not there

    def __getattr__(name: str) -> Any:
        if name in _PARTS:
            return import_module(f"jitml.{name}")
        if name not in _HOMES:
            told = "" if name.startswith("_") else import_module("jitml.diagnostics.foreign_habits").foreign_name(name)
            raise AttributeError(f"module 'jitml' has no attribute {name!r}{told}")
        if _HOMES[name] not in ("jitml.api", "jitml.codegen.run.background", "jitml.errors", "jitml.functions"):
            import_module("jitml.wiring").join()
        globals()[name] = value = getattr(import_module(_HOMES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", "typing"])
