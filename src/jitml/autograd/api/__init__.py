"""What users call: the transforms of functions, by topic.

Each traces the function at the given arguments, transforms the graph and puts the outcome into the enclosing trace
(`transform_driver.py`). The signatures and conventions are JAX's; `docs/derivatives.md` says where they differ.
"""

from jitml.autograd.api.batching import vmap
from jitml.autograd.api.checkpointing import checkpoint, checkpoint_name
from jitml.autograd.api.checks import check_grads
from jitml.autograd.api.custom import custom_jvp, custom_vjp
from jitml.autograd.api.directions import Pullback, Pushforward, jvp, linearize, vjp
from jitml.autograd.api.gradients import grad, value_and_grad
from jitml.autograd.api.jacobians import hessian, hvp, jacfwd, jacobian, jacrev
from jitml.autograd.api.stopping import stop_gradient

__all__ = [
    "Pullback",
    "Pushforward",
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
]
