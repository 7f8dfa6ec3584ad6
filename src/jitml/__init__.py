"""jitml compiles functions that are written with NumPy: the same answer, fused, differentiated, run as native code.

>>> import numpy as np, jitml
>>> @jitml.jit
... def distance(x, y):
...     return np.sqrt(((x - y) ** 2).sum())
>>> print(distance(np.zeros(4), np.ones(4)))
2.0
"""

from jitml import numpy
from jitml.api import explain, jit
from jitml.autograd import grad, jvp, stop_gradient, value_and_grad, vjp
from jitml.errors import DerivativeError, DTypeError, JitmlError, ShapeError, TraceError, UnsupportedError

__version__ = "0.1.0"

__all__ = [
    "DTypeError",
    "DerivativeError",
    "JitmlError",
    "ShapeError",
    "TraceError",
    "UnsupportedError",
    "explain",
    "grad",
    "jit",
    "jvp",
    "numpy",
    "stop_gradient",
    "value_and_grad",
    "vjp",
]
