"""Derivatives: graphs to graphs (`jvp.py`, `transpose.py`, `linearize.py`), and the functions that users call."""

from jitml.autograd import rules as rules
from jitml.autograd.api import Pullback, grad, jvp, stop_gradient, value_and_grad, vjp

__all__ = ["Pullback", "grad", "jvp", "stop_gradient", "value_and_grad", "vjp"]
