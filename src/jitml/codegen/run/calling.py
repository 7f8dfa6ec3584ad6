"""Calls of compiled programs: from arrays to arrays, or to the exception that leaves the call to the plain function.

A back end supplies what runs; here are the parts that are the same for all: results that are shrunk to their true shape,
generators that are locked, floating-point errors, effects that wait until the call has succeeded, and failed checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from jitml.codegen.run.fp_errors import Errors
from jitml.codegen.run.generators import Drawing
from jitml.codegen.run.interface import ProgramInterface
from jitml.codegen.run.results import has_failed, shrunk
from jitml.errors import DeviceMemoryError, FailedCheck
from jitml.ir.ops.regions import failed_check
from jitml.ir.run_state import postpone, postponing
from jitml.records import dataclass

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class RunNeeds:
    """What calls of a program need besides its results.

    Args:
        errors: what is known of the program's floating-point errors, if it is to look for them; else none are reported.
        generators: positions of the inputs that are addresses of generators of random numbers.
    """

    errors: Errors | None = None
    generators: Sequence[int] = ()


NO_NEEDS = RunNeeds()


class ProgramCall:
    """A compiled program.

    `executable(*inputs)` takes one ndarray per input, of exactly its dtype, shape and strides, or a Python number for a 0-d
    input; it returns the outputs as a list of new arrays, with the caller's own array for an aliased output.

    Attributes:
        tier: how its code was made: "quick", in a hurry, or "full".
    """

    tier: Literal["quick", "full"] = "full"

    def __init__(self, interface: ProgramInterface) -> None:
        self.interface = interface
        self.inputs, self.outputs, self.aliases = interface.inputs, interface.outputs, interface.aliases
        self._measured = interface.measured
        self._run: Callable[..., Any]

    @property
    def is_made_better(self) -> bool:
        """Whether full code is being made: how long a call takes says little as yet."""
        return False

    def surround(self, run: Callable[..., Any], needs: RunNeeds) -> None:
        """Call a program by what runs it.

        Args:
            run: gives a list of outputs; a tuple, of which `failure` knows what has failed; None where something was no plain
                array.
        """
        functions = self.interface.functions
        self.needs, self._run = needs, run
        if needs.generators or any(f.draws or f.makes for f in functions):
            self._run = Drawing(self._run, needs.generators, locks=not functions)
        if any(f.postpones for f in functions):
            self._run = partial(_run_then_show, self._run)

    def __call__(self, *args: Any) -> list[Array]:
        try:
            result = self._run(*args)
        except (FailedCheck, DeviceMemoryError):
            raise
        except (MemoryError, ValueError) as error:  # of taking memory, of which NumPy may need less: nothing has run yet
            message = str(error) or f"no memory for {self.interface.arena} bytes"
            raise failed_check(type(error).__name__)(message) from None
        if type(result) is list:
            return self.shaped(result)
        if result is not None:
            raise self.failure(*result)
        # Something was no plain array: a subclass, a NumPy scalar.
        arrays = [np.array(x, b.dtype, copy=None, ndmin=0) for x, b in zip(args, self.inputs, strict=True)]
        return self(*[x if type(x) is np.ndarray else x.view(np.ndarray) for x in arrays])

    def shaped(self, outputs: list[Array]) -> list[Array]:
        """Outputs of their true shapes, which the last one may tell."""
        return outputs if self._measured is None else shrunk(outputs, self._measured)

    def failure(self, status: int, *values: Any) -> BaseException:
        """What the tuple that a run gave stands for: a failed check, worded by it and pointing at the user's line."""
        check = self.interface.checks[status - 1]
        message = check.message.format(*values[: len(check.values)])
        failure: FailedCheck = failed_check(check.error)(message, source=check.source)
        return failure


def _run_then_show(run: Callable[..., Any], *args: Any) -> Any:
    """Run a program, and do what it has postponed unless it fails."""
    result, effects = postponing(run, *args)
    if not has_failed(result):
        for effect in effects:
            postpone(effect)
    return result
