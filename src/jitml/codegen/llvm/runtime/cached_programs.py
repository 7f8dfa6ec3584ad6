"""Programs that an earlier process has compiled, loaded: their object code is bound anew, nothing else is done again.

A kept program names its objects by where they are on disk, since programs share some.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitml.codegen.llvm.runtime.cpu import host_caches, host_cpu
from jitml.codegen.llvm.runtime.executable import NativeCode, NativeExecutable
from jitml.codegen.llvm.runtime.jit import compiler_version
from jitml.codegen.run.calling import RunNeeds
from jitml.codegen.run.interface import ProgramInterface
from jitml.disk_cache import disk_cache
from jitml.records import replace

if TYPE_CHECKING:
    from jitml.memory.program import Program


def made_for() -> str:
    """What compiled programs depend on of this machine, and of LLVM."""
    return repr((host_cpu(), host_caches(), compiler_version()))


def kept_bytes(interface: ProgramInterface, native: NativeCode, keys: Sequence[str], needs: RunNeeds) -> bytes:
    """A program as bytes; `keys` are those of its objects."""
    written = io.BytesIO()
    _Pickler(written, protocol=5).dump((interface, native, tuple(keys), needs))
    return written.getvalue()


class _Pickler(pickle.Pickler):
    """One whose dtypes are NumPy's own when they are read again: others are equal to those, and slower."""

    def reducer_override(self, x: Any) -> Any:
        return (np.dtype, (x.str,)) if isinstance(x, np.dtype) and x.isbuiltin == 1 else NotImplemented


def load(data: bytes, planned: Callable[[], Program]) -> NativeExecutable | None:
    """The program that `kept_bytes` has written; None if some of its object code is there no more."""
    kept: tuple[ProgramInterface, NativeCode, tuple[str, ...], RunNeeds] = pickle.loads(data)
    interface, native, keys, needs = kept
    objects: list[Any] = [disk_cache().get(key) for key in keys]
    if None in objects:
        return None
    return NativeExecutable(interface, replace(native, objects=tuple(objects)), needs, planned)


__all__ = ["kept_bytes", "load", "made_for"]
