"""Floating-point error state: what happens when floating-point errors come up in a compiled program?

What NumPy's error state asks for: `ErrorWatch`.

The processor's flags say that something happened, not where. Unless the error state ignores it, the call is left to the plain
function, which warns or raises as NumPy does. For that the caller's arrays must be as they were: those that a program writes are
copied before the call, if they are small; large ones before the first call, where errors may raise, be it by what the function
says, and from the first call on in which errors came up. Where the copy is missing, a warning says what is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from warnings import warn_explicit

import numpy as np

from jitml.errors import FailedCheck, Source
from jitml.ir.analysis.fp_errors import CATEGORIES, demanded_in, name_of, place_of, possible_in, suspects
from jitml.ir.execute.kept_inputs import are_kept
from jitml.ir.graph import Graph
from jitml.records import dataclass, field

Array = np.ndarray[Any, Any]

Saved = list[tuple[Array, Array]]

_TEXTS = {"divide": "divide by zero", "over": "overflow", "under": "underflow", "invalid": "invalid value"}
_ERROR_STATE = getattr(getattr(getattr(np, "_core", None), "umath", None), "_extobj_contextvar", None)

SMALL = 1 << 14  # bytes that are copied in less time than a call takes otherwise


@dataclass(frozen=True, slots=True)
class Errors:
    """What is known of a program's floating-point errors.

    Args:
        demanded: those to be heard of whatever the state at the call.
        possible: those that may come up.
        suspects: of each error, the operation and the place to name where NumPy cannot be asked.
    """

    demanded: int = 0
    possible: int = 0
    suspects: Mapping[int, tuple[str, str, int]] = field(default_factory=dict)

    def require_unheard(self, why: str) -> None:
        """
        Args:
            why: what runs the program cannot hear of errors.

        Raises:
            FailedCheck: an error would have to be heard of, or would raise: the plain function has to answer.
        """
        if self.demanded or (self.possible and may_raise()):
            raise FailedCheck(f"floating-point errors must be heard of, which {why}")


def errors_of(graph: Graph) -> Errors:
    """The account for a traced graph."""
    names = {error: (name_of(n), *place_of(n)) for error, n in suspects(graph).items()}
    return Errors(demanded_in(graph), possible_in(graph), names)


def heard() -> int:
    """The flags that NumPy's error state does not ignore."""
    return sum(CATEGORIES[name] for name, reaction in np.geterr().items() if reaction != "ignore")


def raising_at(source: Source | None) -> np.errstate:
    """The error state of a host call: what shall be heard of raises, so that the plain function is the one to say it, once."""
    raised = heard() if source is None else (heard() | source.demanded) & ~source.ignored
    return np.errstate(**{name: "raise" if raised & flag else "ignore" for name, flag in CATEGORIES.items()})  # type: ignore[arg-type]  # names and texts


def error_state() -> Any:
    """What NumPy keeps its error state in, to be given back."""
    return np.geterr() if _ERROR_STATE is None else _ERROR_STATE.get()


def give_back(state: Any) -> None:
    """Have the error state as it was: an exception from outside may come while `np.errstate` begins or ends."""
    now = error_state()
    if now is not state and now != state:
        np.seterr(**state) if _ERROR_STATE is None else _ERROR_STATE.set(state)


class _Raising:
    """Whether errors may raise at present: the state is looked at again only when it is another one."""

    def __init__(self) -> None:
        self._known: tuple[object, bool] = (None, False)

    def __call__(self) -> bool:
        if _ERROR_STATE is None:
            return self._look()
        state, known = _ERROR_STATE.get(), self._known
        if known[0] is not state:
            known = self._known = (state, self._look())
        return known[1]

    def _look(self) -> bool:
        return not {"ignore", "warn"}.issuperset(np.geterr().values())


may_raise = _Raising()


class ErrorWatch:
    """What a program that looks for errors asks before and after its runs (`llvm/native_call.py`).

    Args:
        written: positions of the inputs that it writes.
    """

    def __init__(self, written: Iterable[int], errors: Errors) -> None:
        self.written, self.errors = tuple(written), errors
        self.is_careful = True

    def save(self, *args: Any) -> Saved | None:
        """Copies of what is written, before a run that is given these; None where there shall be none."""
        is_careful, self.is_careful = self.is_careful or bool(self.errors.demanded) or may_raise(), False
        if are_kept():
            return []
        if is_careful or sum([args[n].nbytes for n in self.written]) <= SMALL:
            return [(args[n], args[n].copy()) for n in self.written]
        return None

    def judge(self, outputs: list[Array], flags: int, saved: Saved | None) -> bool:
        """Whether outputs are good though flags came up; if plain Python is to answer, what was saved is put back."""
        flags &= heard() | self.errors.demanded
        if not flags:
            return True
        self.is_careful = True
        if saved is None:
            self._warn(flags)
            return True
        for array, copy in saved:
            np.copyto(array, copy)
        return False

    def _warn(self, flags: int) -> None:
        for name, flag in CATEGORIES.items():
            if flags & flag:
                what, file, line = self.errors.suspects.get(flag, ("a compiled program", "<jitml>", 1))
                try:
                    warn_explicit(f"{_TEXTS[name]} encountered in {what}", RuntimeWarning, file, line)
                except RuntimeWarning as error:
                    error.add_note("The compiled function has written its arrays: their elements are new.")
                    raise


def failure_of(flags: int) -> FailedCheck:
    """What is said of errors of which plain Python tells."""
    return FailedCheck(f"{' and '.join(_TEXTS[name] for name, flag in CATEGORIES.items() if flags & flag)} encountered")
