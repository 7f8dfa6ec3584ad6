"""Modules: what does a name of a module stand for?  Of one that may change, what is there at each call; of others, a constant."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np

from jitml.diagnostics.code_owners import is_users
from jitml.errors import Cause
from jitml.trace.environment.guarded_loads import load, observe
from jitml.trace.environment.value_classification import Way, way_of
from jitml.trace.hooks.models.model import ModelHooks
from jitml.trace.hooks.models.objects import ObjectModel
from jitml.trace.record.guards import HostConst
from jitml.trace.record.loaded_modules import found_in
from jitml.trace.record.recording import unsupported
from jitml.trace.values.boxing import lift

_CONSTANT = {"numpy", "scipy", "math", "cmath", "jitml"}  # modules that nobody changes
_STREAMS = {"stdin", "stdout", "stderr"}


class ModuleModel(ObjectModel):
    def attribute(self, hooks: ModelHooks, x: Any, name: str) -> Any:
        trace = hooks.trace
        if (id(vars(x)), name) in trace.changes.stored:
            return trace.changes.stored[id(vars(x)), name]
        if x is sys and name.strip("_") in _STREAMS:
            unsupported(
                f"sys.{name} is looked into, or written to, once, while the function is traced", "Use print().", Cause.EFFECT
            )
        value = found_in(trace, x, name) if is_changeable(x) else getattr(x, name)
        if not is_changeable(x):
            home = x.__name__.partition(".")[0]
            if value is sys.modules:
                unsupported("sys.modules is looked into in the jitted function", "Import what is needed.")
            if home in _CONSTANT or way_of(value) is Way.ITSELF:
                return lift(value) if type(value) is np.ndarray else value
        text = f"{x.__name__}.{name}"
        return observe(trace, value, load(trace, getattr, HostConst(x), name, text), text)


def is_changeable(module: ModuleType) -> bool:
    """Whether a module is the user's, who may change it."""
    file = getattr(module, "__file__", None)
    return is_users(file) if file else module.__name__.partition(".")[0] not in sys.stdlib_module_names
