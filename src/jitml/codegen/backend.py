"""Back ends: what makes planned programs run.  The protocol that each fills in; `config.py` has the table of them.

A back end says what its target is (`Target`, which grouping, scheduling and memory planning ask), writes code, and loads what
it has written where its device is. Nobody above names one: `pipeline.lower` is given it, or takes the one that JITML_BACKEND
names.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, TypeVar

from jitml.codegen.run.calling import RunNeeds
from jitml.config import BACKENDS, CONFIG
from jitml.errors import UnsupportedError
from jitml.fusion.schedule import Scheduler
from jitml.kernels.target import Target
from jitml.memory.program import Program
from jitml.records import dataclass

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class CodeOptions:
    """How code is to be written.

    Args:
        threads: the most that the program may use; None for as many as the back end thinks right.
        fastmath: LLVM's fast-math flags to allow, "tf32", "bf16" and "atomics"; none means IEEE arithmetic.
    """

    threads: int | None = None
    fastmath: frozenset[str] = frozenset()


class Executable(Protocol):
    """A loaded program: called with arrays as it was compiled for, it gives a list of new ones, the caller's where they alias."""

    @property
    def program(self) -> Program: ...

    def __call__(self, *inputs: Any) -> list[Any]: ...


class Backend(Protocol[M]):
    """
    Attributes:
        stages: texts that it has of a module, from the program down: `llvm`, `asm`.
    """

    @property
    def name(self) -> str: ...

    @property
    def stages(self) -> tuple[str, ...]: ...

    @property
    def target(self) -> Target: ...

    @property
    def scheduler(self) -> Scheduler:
        """How loops are to run: heuristics, whose answers are data."""

    @property
    def most_bytes(self) -> int | None:
        """The most memory that programs may take, where that is known: one that needs more computes values again."""

    def emit(self, program: Program, options: CodeOptions) -> M:
        """The program's code; pure: no device is needed."""

    def load(self, program: Program, module: M, options: CodeOptions, needs: RunNeeds) -> Executable:
        """The code made ready to run on this machine."""

    def compile(self, program: Program, options: CodeOptions, needs: RunNeeds) -> tuple[M, Executable]:
        """`emit` and `load`, of which the one may begin before the other has ended."""

    def text(self, stage: str, module: M) -> str:
        """One of the `stages`."""


def chosen_backend() -> Backend[Any]:
    """The one that JITML_BACKEND names."""
    return backend_named(CONFIG.backend)


def backend_named(name: str) -> Backend[Any]:
    """
    Raises:
        UnsupportedError: there is none of that name.
    """
    if name not in BACKENDS:
        raise UnsupportedError(f"there is no back end {name}", remedy=f"There are {', '.join(BACKENDS)}.")
    backend: Backend[Any] = import_module(BACKENDS[name][0]).BACKEND
    return backend
