"""The program so far, and what its names hold at the place where it is being written.

Programs are written by running them: after each statement the whole function runs once on the arguments of its first call, up
to the place where the next statement goes, and what the locals hold there decides what fits. So nearly all programs are well
typed, although no part of the generator knows NumPy's rules.

Each name has a *level*: EXACT values (integers, and multiples of a power of two that are not too large) have the same sum in
any order; ROUNDED ones are reproducible bit by bit but their sums are not; INEXACT ones may differ by some units of the last
place. No decision (a branch, an index, a cast to integers) is taken on an inexact value: a difference in rounding must not
become one in kind.
Arguments and globals have levels of their own, as a caller sees them when no name holds them any more.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Container, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

import numpy as np

from programs.drawn.inputs import CALLS

EXACT, ROUNDED, INEXACT = 0, 1, 2
PREFIX = "def program({parameters}):\n"
_INDENT = "    "
_LARGEST = 400  # elements
_FILE = "<being written>"
_MOST_LINES = 50_000  # that a call may run: nested loops can be much longer than the text
_MOST_BYTES = 1 << 26  # of its arrays


class TooLong(Exception):
    """Raised in a program that would run for minutes."""


class Elsewhere(BaseException):
    """Raised at the place of writing, with the locals there; no `except` of a program can swallow it."""


@dataclass(frozen=True)
class Expression:
    """Text, what it gave at the place of writing, and its level."""

    text: str
    value: Any
    level: int = EXACT


class Scope:
    """A function being written."""

    def __init__(self, header: str, parameters: list[str], arguments: str, levels: dict[str, int]) -> None:
        self.header, self.parameters, self.arguments = header, parameters, arguments
        self.lines: list[str] = []
        self.depth = 1
        self.levels = dict(levels)
        self.helpers: list[str] = []
        self.loops = 0  # how many loops enclose the place
        self.fresh = 0
        self.values: dict[str, Any] = {}
        self.filled: set[str] = set()  # lists that loops append to: their items are objects of their own (docs/mutation.md)
        self.outside: dict[str, Any] = {}  # arguments and globals, of the same run as the values
        self.namespace: dict[str, Any] = {}
        self.look()

    @property
    def body(self) -> str:
        return PREFIX.format(parameters=", ".join(self.parameters)) + "".join(f"{line}\n" for line in self.lines)

    def write(self, *lines: str) -> None:
        self.lines += [_INDENT * self.depth + line for line in lines]

    @contextmanager
    def block(self, opening: str, *, loop: bool = False) -> Any:
        self.write(opening)
        self.depth += 1
        self.loops += loop
        yield
        self.depth -= 1
        self.loops -= loop

    def attempt(self, *lines: str) -> bool:
        """Write these lines if the program runs with them; look around again."""
        before = len(self.lines)
        self.write(*lines)
        if self.runs():
            self.look()
            if not any(map(_holds_arrays, self.values.values())):
                return True
            del self.lines[before:]
            self.look()
            return False
        del self.lines[before:]
        return False

    def runs(self) -> bool:
        """Whether the program so far ends without an exception."""
        text = self.body + _INDENT * self.depth + "pass\n"
        try:
            self._run(text)
        except Exception:
            return False
        return True

    def look(self) -> None:
        """Find out what the locals hold here; what they held before, if this place is not reached."""
        text = self.body + _INDENT * self.depth + "raise Elsewhere({n: v for n, v in locals().items() if n != 'rng'})\n"
        try:
            self._run(text)
        except Elsewhere as found:
            self.values = {name: value for name, value in found.args[0].items() if not name.startswith("_")}
            self.outside = {f"argument {n}": x for n, x in enumerate(self._arguments)}
            self.outside |= {f"global {name}": x for name, x in self.namespace.items() if name.startswith("G")}
        except Exception:
            pass

    def _run(self, text: str) -> None:
        namespace: dict[str, Any] = {"np": np, "Elsewhere": Elsewhere, "print": _silent}
        with quiet():
            exec(_compiled(self.header), namespace)
            exec(compile(text, _FILE, "exec"), namespace)
            self._arguments = namespace["arguments"](0)
            self.namespace = namespace
            with bounded():
                namespace["program"](*self._arguments)

    def evaluate(self, text: str, level: int) -> Expression | None:
        """An expression that has a value here, of a kind that programs use."""
        try:
            with quiet():
                value = eval(text, self.namespace, dict(self.values))
        except Exception:
            return None
        if isinstance(value, np.ndarray):
            if value.size > _LARGEST or value.dtype.kind not in "biuf" or value.ndim > 4:
                return None
        elif isinstance(value, np.generic):
            if value.dtype.kind not in "biuf":
                return None
        elif not isinstance(value, (bool, int, float)) or abs(value) > 1e6:
            return None
        if np.asarray(value).dtype.kind != "f" and level < INEXACT:
            level = EXACT
        elif level == EXACT and _is_large(value):
            level = ROUNDED
        return Expression(text, value, level)

    def level_of(self, name: str) -> int:
        return self.levels.get(name, EXACT)

    def taint(self, name: str, level: int) -> None:
        """A name is bound to, or its memory gets, a value of this level; so does all that shares the memory."""
        value = self.values.get(name)
        sharing = [name]
        if isinstance(value, np.ndarray):
            held = {**self.values, **self.outside}
            sharing += [n for n, x in held.items() if isinstance(x, np.ndarray) and np.may_share_memory(value, x)]
        self.levels |= {n: max(level, self.level_of(n)) for n in sharing}

    def taint_large(self, changed: Container[str]) -> None:
        """What iterations have added up to large numbers need not be the sums that it would be in another order.

        Args:
            changed: names that may be of such sums, though what they held before was rounded.
        """
        for name, value in self.values.items():
            is_free = self.level_of(name) == EXACT or (self.level_of(name) == ROUNDED and name in changed)
            if is_free and isinstance(value, (np.ndarray, np.generic, float)) and _is_large(value):
                self.taint(name, INEXACT)

    def name(self) -> str:
        """A name that is not in use."""
        self.fresh += 1
        return f"v{self.fresh}"

    def arrays(self, most: int = INEXACT) -> list[str]:
        """Names of arrays, the latest first."""
        found = [n for n, v in self.values.items() if isinstance(v, np.ndarray) and self.level_of(n) <= most]
        return found[::-1]

    def scalars(self, most: int = INEXACT) -> list[str]:
        """Names of Python and NumPy numbers."""
        kinds = (bool, int, float, np.generic)
        return [n for n, v in self.values.items() if isinstance(v, kinds) and self.level_of(n) <= most][::-1]

    def containers(self, *kinds: type) -> list[str]:
        """Names of lists, tuples and dicts, the latest first."""
        found = [n for n, v in self.values.items() if isinstance(v, kinds or (list, tuple, dict)) and v]
        return [n for n in found[::-1] if n not in self.filled]


def _silent(*args: Any, **kwargs: Any) -> None:
    """In the place of `print` while a program is being written; what is printed must be printable."""
    for x in args:
        str(x)


@lru_cache(maxsize=8)
def _compiled(header: str) -> CodeType:
    """What stands above a program, which is run each time for its own arrays."""
    return compile(header, _FILE, "exec")


def _is_large(value: Any) -> bool:
    """Whether sums of such floats, multiples of 1/4 and as many as an array may have, can be rounded."""
    x = np.asarray(value)
    return x.dtype.kind == "f" and bool(np.any(np.isfinite(x) & (np.abs(x) * _LARGEST > 2.0 ** (np.finfo(x.dtype).nmant - 2))))


@contextmanager
def bounded() -> Any:
    """Raises TooLong in a program that runs too many lines, or whose arrays double too often."""
    left = _MOST_LINES

    def count(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal left
        left -= event == "line"
        if left < 0 or (not left % 8 and sum(getattr(x, "nbytes", 0) for x in frame.f_locals.values()) > _MOST_BYTES):
            raise TooLong
        return count

    def enter(frame: FrameType, event: str, arg: Any) -> Any:
        return count if frame.f_code.co_filename == _FILE else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        yield
    finally:
        sys.settrace(before)


def comes_back(text: str) -> bool:
    """Whether all calls of a program can be made, each after what the one before has left, and end."""
    namespace: dict[str, Any] = {"print": _silent}
    try:
        exec(compile(text, _FILE, "exec"), namespace)
        for number in range(CALLS):
            arguments = namespace["arguments"](number)
            if not _ends(namespace["program"], arguments):
                return False
    except Exception:  # of making the arguments
        return False
    return True


def _ends(function: Callable[..., Any], arguments: Sequence[Any]) -> bool:
    try:
        with quiet(), bounded():
            function(*arguments)
    except TooLong:
        return False
    except Exception:
        return True
    return True


def _holds_arrays(value: Any) -> bool:
    """Whether it is an array of objects with arrays in it: NumPy overflows the stack where one holds itself."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "O" and any(isinstance(x, np.ndarray) for x in value.ravel())


@contextmanager
def quiet() -> Any:
    """No warnings."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
