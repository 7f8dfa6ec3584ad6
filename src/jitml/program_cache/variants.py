"""Variants that an earlier process has traced, found on disk without a trace: no function is converted, no graph recorded.

A file is found by what a call tells at once: the function's code, what it is compiled with, the kinds of its arguments, and all
that programs depend on of the machine and of what is installed. In it are a few variants: one code is many functions, by what
these close over, and by globals. Which of them answers, their guards say (`guards.py`). If anything is not as it should be, the
function is traced, as if nothing had been kept.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
import optree

from jitml.config import CONFIG
from jitml.disk_cache import DiskCache, disk_cache
from jitml.dispatch.specialize import CallArguments
from jitml.errors import forget_frames
from jitml.imports.late import late
from jitml.interrupts import uninterrupted
from jitml.options import Options
from jitml.process import importing
from jitml.program_cache import guards
from jitml.program_cache.compile import load_program
from jitml.program_cache.guards import PARTS
from jitml.program_cache.identities import NotKept, of_function
from jitml.program_cache.keys import versions
from jitml.records import fields
from jitml.trace.record.guards import OWNS
from jitml.trace.record.pytree import flatten
from jitml.trace.speculation.dynamic_shapes import VariantKey, seen
from jitml.trace.traced import Traced

if TYPE_CHECKING:
    from jitml.codegen.llvm.runtime import cached_programs
    from jitml.program_cache import written
else:  # of these the first brings llvmlite, and the second is for what has been traced
    cached_programs = late("jitml.codegen.llvm.runtime.cached_programs")
    written = late("jitml.program_cache.written")

Given = Callable[[Traced], dict[str, Any]]  # what a graph is compiled with
_MOST, _BYTES = 8, 1 << 20  # variants in a file, and of several in one
_NOTHING_TO_IT = {"log", "progress", "cache_dir", "cache_bytes", "verify", "verify_bytes", "verify_seconds"}  # settings
_OF_NUMPY = ("NPY_", "NUMPY_", "OPENBLAS_", "MKL_")  # beginnings of names of variables
_NUMBERS = (bool, int, complex, str)


class KeptVariants:
    """Those of one function.

    Args:
        given: what a graph of it is compiled with.
    """

    def __init__(self, function: FunctionType, options: Options, given: Given) -> None:
        self._function, self._options, self._given = function, options, given

    def find(self, call: CallArguments) -> tuple[Traced, Callable[..., Any]] | None:
        """A variant whose guards hold for this call, and what runs its program."""
        key = self._key(call)
        if key is None:
            return None
        for written_guards, body in _read(key):
            host = guards.read(pickle.loads(written_guards), self._function, call.leaves)
            if host is not None:
                program, *parts = pickle.loads(body)
                structure, key_of_variant = flatten((call.args, call.kwargs))[1], VariantKey(seen=seen(call.leaves))
                traced = Traced(
                    host=host, in_spec=structure, key=key_of_variant, changes=(), device=None, **dict(zip(PARTS, parts))
                )
                executable = uninterrupted(partial(load_program, program, traced.graph, self._given(traced)))
                return None if executable is None else (traced, executable)
        return None

    def keep(self, call: CallArguments, traced: Traced, executable: Callable[..., Any]) -> None:
        """Let later processes find a variant, if they can."""
        program, key = getattr(executable, "kept_as", None), self._key(call)
        if program is None or key is None:
            return
        try:
            found = written.as_bytes(written.guards_of(self._function, traced.host)), written.body_of(traced, program)
        except (NotKept, pickle.PicklingError, RecursionError) as error:
            forget_frames(error)
            return
        every = [found, *(other for other in _read(key) if other[0] != found[0])][:_MOST]
        while len(every) > 1 and sum(len(body) for _, body in every) > _BYTES:
            every.pop()
        disk_cache().put(key, pickle.dumps(every))

    def _key(self, call: CallArguments) -> str | None:
        """Where variants for such a call are; None for nowhere."""
        options = self._options
        if disk_cache().folder is None or options.static_argnums or options.static_argnames or options.schedules:
            return None
        kinds = tuple(map(_kind_of, call.leaves))
        if None in kinds or not isinstance(call.key, int | tuple) or CONFIG.backend != "llvm" or CONFIG.check or CONFIG.dump:
            return None
        if options.device not in (None, "cpu") or CONFIG.tier == "quick":
            return None
        with importing():  # llvmlite, and what runs programs
            made_by = _made_by()
        if made_by is None:
            return None
        asked = (sorted(options.fastmath), options.threads, options.host_calls, options.dynamic, options.strict)
        try:
            return DiskCache.key("variant", (repr((of_function(self._function), call.key, kinds, asked)), made_by))
        except NotKept:
            return None


def _kind_of(x: Any) -> tuple[Any, ...] | None:
    """What tells arguments apart at once; None of what no other process is given again."""
    kind: Any = type(x)
    if kind is np.ndarray:
        flags = x.flags.num & ~OWNS
        return (x.dtype.str, x.shape, x.strides, flags) if x.dtype.isbuiltin == 1 and not x.dtype.hasobject else None
    if kind is float:
        return ("float",)
    return (kind.__name__, x) if kind in _NUMBERS else None


def _made_by() -> str | None:
    """All that traces depend on, beside code and what it reads; None if it is not known what has made them."""
    if (known := versions(None)) is None:
        return None
    variables = sorted((name, value) for name, value in os.environ.items() if name.startswith(_OF_NUMPY))
    promotion = getattr(np, "_get_promotion_state", lambda: "")()
    return repr((known, cached_programs.made_for(), optree.__version__, _settings(), sys.flags.optimize, promotion, variables))


def _settings() -> list[Any]:
    """Those of the environment that a trace may depend on."""
    values = (getattr(CONFIG, each.name) for each in fields(CONFIG) if each.name not in _NOTHING_TO_IT)
    return [sorted(value) if isinstance(value, frozenset) else value for value in values]


def _read(key: str) -> Sequence[tuple[bytes, bytes]]:
    data = disk_cache().get(key)
    if data is None:
        return []
    found: list[tuple[bytes, bytes]] = pickle.loads(data)
    return found


__all__ = ["KeptVariants"]
