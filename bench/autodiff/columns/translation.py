"""A workload's own source, with another library in the place of NumPy."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from autodiff.workload import Workload

Function = Callable[..., Any]


def translated(workload: Workload, library: str, own: tuple[Function, ...]) -> Function:
    """The workload's function in terms of `jax.numpy`, say; those of `own` take the place of functions of their names."""
    function: Function = getattr(_module(workload.family, library, own), workload.name)
    return function


@cache
def _module(family: str, library: str, own: tuple[Function, ...]) -> types.ModuleType:
    path = Path(str(importlib.import_module(f"autodiff.{family}").__file__))
    module = types.ModuleType(f"autodiff_in_{library.replace('.', '_')}.{family}")
    module.__file__ = str(path)
    source = path.read_text().replace("import numpy as np", f"import {library} as np")
    source = source.replace("from autodiff.workload import differentiated", "")
    sys.modules[module.__name__] = module
    module.__dict__["differentiated"] = lambda *_, **__: lambda f: f
    exec(compile(source, str(path), "exec"), module.__dict__)
    module.__dict__.update((f.__name__, f) for f in own if f.__name__ in module.__dict__)
    return module
