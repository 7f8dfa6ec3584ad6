"""From a graph to an executable, by way of the disk.

What is found there is loaded (`codegen/llvm/runtime/cached_programs.py`): no pass, no scheduling, no code generation runs, and
none of their modules is imported. `disk_cache.py` keeps the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from jitml.disk_cache import disk_cache
from jitml.errors import own_faults
from jitml.imports.late import late
from jitml.ir.graph import Graph
from jitml.process import importing
from jitml.program_cache.keys import key_of

if TYPE_CHECKING:
    from jitml import pipeline
    from jitml.codegen.llvm.runtime import cached_programs, compiler
else:  # they bring llvmlite
    pipeline = late("jitml.pipeline")
    cached_programs, compiler = late("jitml.codegen.llvm.runtime.cached_programs"), late("jitml.codegen.llvm.runtime.compiler")


@own_faults()
def compile_graph(graph: Graph, **given: Any) -> Any:
    """`pipeline.compile_graph` for the CPU, with `watch`; `given` are its other arguments.

    Raises:
        ScheduleError, CompilerError: as `pipeline.lower`.
    """
    with importing():  # llvmlite, and what runs programs
        key = key_of(graph, **given)
    found = None if key is None else load_program(key, graph, given)
    if found is not None:
        found.kept_as = key
        return found
    lowered = pipeline.lower(graph, **given)
    executable: Any = lowered.compile(watch=True)
    if key is not None:
        form = compiler.kept_form(executable, lowered.module)
        if form is not None:
            disk_cache().put(key, form)
            executable.kept_as = key
    return executable


def load_program(key: str, graph: Graph, given: Mapping[str, Any]) -> Any:
    """What runs the program of a graph, if it is on disk; `given` is what that is compiled with."""
    data = disk_cache().get(key)
    return None if data is None else cached_programs.load(data, partial(_planned, graph, given))


def _planned(graph: Graph, given: Mapping[str, Any]) -> Any:
    return pipeline.lower(graph, **given).program


__all__ = ["compile_graph", "load_program"]
