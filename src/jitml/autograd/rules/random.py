"""Random numbers depend on no value but their generator."""

from __future__ import annotations

from jitml.autograd.core.jvp import not_differentiable
from jitml.ir import ops

not_differentiable(ops.random)
