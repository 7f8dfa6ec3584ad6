"""Floating-point error state: what happens when floating-point errors come up in a compiled program?

What NumPy's error state asks for: `ErrorWatch`.

The processor's flags say that something happened, not where. Unless the error state ignores it, the call is left to the plain
function, which warns or raises as NumPy does. For that the caller's arrays must be as they were: those that a program writes are
copied before the call, if they are small; large ones before the first call, where errors may raise, be it by what the function
says, and from the first call on in which errors came up. Where the copy is missing, a warning says what is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from warnings import warn_explicit

import numpy as np

from jitml.errors import FailedCheck, Source
from jitml.ir.analysis.fp_errors import CATEGORIES, demanded_in, name_of, place_of, possible_in, suspect
from jitml.ir.execute.kept_inputs import are_kept
from jitml.ir.graph import Graph
from jitml.records import dataclass, field

Array = np.ndarray[Any, Any]

Saved = list[tuple[Array, Array]]

_TEXTS = {"divide": "divide by zero", "over": "overflow", "under": "underflow", "invalid": "invalid value"}
_ERROR_STATE = getattr(getattr(getattr(np, "_core", None), "umath", None), "_extobj_contextvar", None)


_SMALL = 1 << 14  # bytes that are copied in less time than a call takes otherwise


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
    nodes = {error: suspect(graph, error) for error in CATEGORIES.values()}
    names = {error: (name_of(n), *place_of(n)) for error, n in nodes.items() if n is not None}
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
    """Runs a program and looks at its flags.

    Args:
        run: gives a list of outputs, or something else; a pair (outputs, flags) where flags came up.
        written: positions of the inputs that the program writes, and how many bytes those are at most.
    """

    def __init__(self, run: Callable[..., Any], written: Mapping[int, int], errors: Errors) -> None:
        self.run, self.written, self.errors = run, tuple(written), errors
        self.is_small = sum(written.values()) <= _SMALL
        self.is_careful, self.has_seen = True, False

    def __call__(self, *args: Any) -> Any:
        """The outputs; a `FailedCheck` in their place if the plain function is to answer; what `run` gives otherwise."""
        saved: Saved | None = None
        if self.is_small or self.is_careful or self.errors.demanded or may_raise() or self._are_small(args):
            saved = [(args[n], args[n].copy()) for n in self.written if type(args[n]) is np.ndarray and not are_kept()]
        result = self.run(*args)
        if type(result) is tuple and len(result) == 2:
            return self.judge(*result, saved)
        if self.is_careful and type(result) is list and not self.has_seen:
            self.is_careful = False
        return result

    def _are_small(self, args: Sequence[Any]) -> bool:
        """Whether the arrays of this call are small, where sizes are open."""
        return sum([args[n].nbytes for n in self.written]) <= _SMALL

    def judge(self, outputs: list[Array], flags: int, saved: Saved | None) -> Any:
        """The outputs of a program in which flags came up, or a `FailedCheck`."""
        flags &= heard() | self.errors.demanded
        if not flags:
            return outputs
        self.is_careful = self.has_seen = True
        if saved is None:
            self._warn(flags)
            return outputs
        for array, copy in saved:
            np.copyto(array, copy)
        return FailedCheck(f"{' and '.join(_texts(flags))} encountered")

    def _warn(self, flags: int) -> None:
        for name, flag in CATEGORIES.items():
            if flags & flag:
                what, file, line = self.errors.suspects.get(flag, ("a compiled program", "<jitml>", 1))
                warn_explicit(f"{_TEXTS[name]} encountered in {what}", RuntimeWarning, file, line)


def _texts(flags: int) -> list[str]:
    return [_TEXTS[name] for name, flag in CATEGORIES.items() if flags & flag]
