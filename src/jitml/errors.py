"""Every exception that users see, and the one way to word it.

A message is: what went wrong with its values (the first line stands alone), where in the user's code, what to do.
Each type is a built-in exception too, so that `except ValueError` around a NumPy program keeps working under `jit`.
"""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from traceback import extract_tb
from typing import Any

from jitml.records import dataclass, field


@dataclass(frozen=True, slots=True)
class Source:
    """A place in the user's code: the innermost frame outside jitml when a node was recorded.

    Under `np.errstate` there, floating-point errors (bits of `ir/analysis/fp_errors.py`) may be ignored, or demanded whatever the
    state of the caller. `role` says, where somebody watches, what a derivative has recorded there: `slope of sqrt`. `operation`
    is what NumPy calls the operator or ufunc there, if it is one: `scalar power`.
    """

    file: str
    line: int
    function: str
    ignored: int = 0
    demanded: int = 0
    role: str = field(default="", compare=False)
    operation: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"

    @property
    def text(self) -> str:
        """The line's text, stripped; empty if the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()


@dataclass(frozen=True, slots=True)
class UserFrame:
    """Where one of the user's functions was: the code object, by its file, qualified name and first line, and a place in it.

    Lines count from 1; columns are bytes and count from 0, as in syntax trees, and are -1 if they are not known.
    """

    file: str
    function: str
    first_line: int
    line: int
    end_line: int
    column: int
    end_column: int


class Cause(StrEnum):
    """Why a function cannot be compiled, in a word."""

    ALIAS = "alias"  # which of two objects something is, or whether two arrays share memory, only the run knows
    CONTROL = "control"  # a branch or a loop on values that only the run knows can neither be captured nor assumed
    DERIVATIVE = "derivative"  # a transform does not take it
    DEVICE = "device"  # it is on another device
    DTYPE = "dtype"  # elements are of a type that is not compiled
    EFFECT = "effect"  # it would happen once, while the function is traced, and not at every call
    ITERATOR = "iterator"  # an iterator or generator would go on once
    LIBRARY = "library"  # a function of NumPy's or of a library cannot be a part of a compiled program
    NUMBER = "number"  # Python needs a number, a type or a text that only the run knows
    OBJECT = "object"  # an object of a kind that cannot be taken in, changed or handed out
    RANDOM = "random"  # random numbers would be drawn once
    SHAPE = "shape"  # shapes or types do not fit together, as far as is known
    SLOW = "slow"  # it would take too long to trace or to compile
    SYNTAX = "syntax"  # the source is missing, or has what is never compiled
    UNROLLED = "unrolled"  # a loop that cannot stay one has too many iterations to be written out
    OTHER = "other"  # none of these

    @property
    def code(self) -> str:
        """What its section of docs/error-codes.md is called."""
        return CODES[self]


# Codes are stable: people look them up. A new cause gets a new one, and none is used again.
CODES = {
    Cause.ALIAS: "JM101",
    Cause.CONTROL: "JM102",
    Cause.DERIVATIVE: "JM103",
    Cause.DEVICE: "JM104",
    Cause.DTYPE: "JM105",
    Cause.EFFECT: "JM106",
    Cause.ITERATOR: "JM107",
    Cause.LIBRARY: "JM108",
    Cause.NUMBER: "JM109",
    Cause.OBJECT: "JM110",
    Cause.RANDOM: "JM111",
    Cause.SHAPE: "JM112",
    Cause.SLOW: "JM113",
    Cause.SYNTAX: "JM114",
    Cause.UNROLLED: "JM115",
    Cause.OTHER: "JM116",
}
# Where the pages of docs/ will be: `site_url` of mkdocs.yml, `Documentation` of pyproject.toml.
SITE = "https://jitml.example/"


def default_site() -> str:
    """The site, if there is one: nothing ever answers under `.example` (RFC 2606)."""
    return "" if SITE.endswith(".example/") else SITE


def _site() -> str:
    config = getattr(sys.modules.get("jitml.config"), "CONFIG", None)  # who sets JITML_SITE has it imported
    return default_site() if config is None else str(config.site)


def with_addresses(text: str) -> str:
    """A message in which pages are named by their addresses; where there is no site, by the commands that print them.

    >>> with_addresses("see docs/sections.md")
    'see `python -m jitml help sections`'
    """
    site = _site()
    return re.sub(r"\bdocs/([\w/-]+)\.md", rf"{site}\1/" if site else r"`python -m jitml help \1`", text)


def address(code: str) -> str:
    """Where a code is explained.

    >>> address("JM106")
    'python -m jitml help JM106'
    """
    site = _site()
    return f"{site}error-codes/#{code.lower()}" if site else f"python -m jitml help {code}"


_stack: Callable[[], tuple[UserFrame, ...]] = tuple
_room: Callable[[], Cause | None] = type(None)


def take_places_from(stack: Callable[[], tuple[UserFrame, ...]], room: Callable[[], Cause | None]) -> None:
    """What says, from now on, as an error is made, where the user's functions are and what the room that makes it refuses for."""
    global _stack, _room
    _stack, _room = stack, room


class JitmlError(Exception):
    """Base of all errors that jitml raises on purpose: `except jitml.JitmlError` catches each of them.

    Args:
        message: what went wrong, with its values, in one line.
        source: where in the user's code, if known.
        remedy: what to do about it, if that follows from what is known.
        cause: why the function cannot be compiled, if the error's type or the room that makes it does not say so.

    Attributes:
        stack: the user's functions that were being traced, outermost first.
        argument: a parameter, or an outer name, that holds what a traced function cannot take in or change; else empty.
        result: a name that holds what it cannot hand out; else empty.
    """

    usual: Cause | None = None  # the cause of all errors of a type
    own_code: str | None = None  # of a type, where its cause does not say it; empty for what users do not see
    is_bug = False  # of jitml: its own frames are what a report needs
    leaves_changes: bool = False  # whether what tracing has done to the outside stays: plain Python would do it once more

    def __init__(self, message: str, *, source: Source | None = None, remedy: str = "", cause: Cause | None = None) -> None:
        self.message, self.source, self.remedy = message, source, remedy
        self.stack = _stack()
        self.cause = cause or self.usual or _room() or Cause.OTHER
        self.argument = self.result = ""
        super().__init__(message)

    @property
    def code(self) -> str:
        """What docs/error-codes.md explains it under."""
        return self.cause.code if self.own_code is None else self.own_code

    def __str__(self) -> str:
        lines = [self.message]
        if self.source is not None:
            lines.append(f"  {self.source}")
            if self.source.text:
                lines.append(f"    {self.source.text}")
        if self.remedy:
            lines.append(self.remedy)
        if self.code:
            lines.append(f"{self.code}: {address(self.code)}")
        return with_addresses("\n".join(lines))


def bare_message(error: BaseException) -> str:
    """What an error says, to be a part of another message: without place, remedy and code."""
    return error.message if isinstance(error, JitmlError) else str(error)


class UnsupportedError(JitmlError, NotImplementedError):
    """The program uses something that jitml cannot compile (yet); nothing has been changed."""


class SourceNotFound(UnsupportedError):
    """A function has no source, so that what it does besides computing would happen once, while it is traced, unseen."""

    usual = Cause.SYNTAX


class LifetimeError(UnsupportedError):
    """When an object is let go can be seen: by a weak reference to it, or by its `__del__`. No part of the function is compiled.

    What a section takes in, the frame around it holds until the function ends, whatever is bound in the section.
    """

    usual = Cause.EFFECT


class RowsDiffer(UnsupportedError):
    """Rows of a batch take ways that no one program computes for all of them."""

    usual = Cause.CONTROL


class UnknownNumberError(UnsupportedError):
    """A number that only the running program knows is needed while it is compiled. A loop that asks for one unrolls.

    `place` is where in the program, if the number may be assumed to be what it is in the call that is traced.
    """

    usual = Cause.NUMBER
    place: object = None


class UnknownSizeError(UnknownNumberError):
    """A size that only the running program knows is needed while it is compiled."""


class ManyPrograms(UnsupportedError):
    """Each call needs another program; `claim` is what the others take for granted, and is something else each time."""

    own_code = "JM210"

    def __init__(self, count: int, claim: str, source: Source | None) -> None:
        text = f"{count} programs have been compiled, each for calls where something else is so: {claim}"
        super().__init__(text, source=source, remedy="Pass it as an array, or keep it the same.")
        self.claim = claim


class FailedCheck(JitmlError):
    """A compiled program found, before it wrote anything, that it cannot answer this call; `jit` calls the function itself.

    Its subclasses are built-in exceptions too, for those who run an `Executable` by hand.
    """

    own_code = ""


class RaisingBranch(FailedCheck):
    """A call takes a branch that raised an exception when it was traced, which its message says."""


class WrongPath(FailedCheck):
    """A compiled program assumes of a condition, or of a number that Python needed, what does not hold in this call.

    Its message begins "assumption <number> is <outcome>": which one (in the order of the trace), and what is the case.
    """

    @property
    def fact(self) -> tuple[int, Any]:
        """The number of the assumption, and the outcome in this call."""
        _, number, _, outcome, *_ = self.message.split()
        return int(number), int(outcome)


class OtherSizes(WrongPath, ValueError):
    """A compiled program takes two sizes for equal, or one of them for 1, and they are something else in this call.

    Its message begins "assumption <number> is <size> and <size>".
    """

    @property
    def fact(self) -> tuple[int, tuple[int, int]]:
        """The number of the assumption, and the two sizes in this call."""
        _, number, _, first, _, second, *_ = self.message.split()
        return int(number), (int(first), int(second))


class BeyondLimit(WrongPath):
    """A size is larger than a compiled program assumes that it ever is."""


class MoreIterations(FailedCheck):
    """A loop runs more often than a program has room to save for its derivative; one may have more (`ir/capacity.py`).

    Its message begins "loop <number> ran <times> times, more than <room>".
    """

    @property
    def fact(self) -> tuple[int, int, int]:
        """The number of the loop, how often it runs at least, and for how many iterations there is room."""
        _, number, _, times, _, _, _, room, *_ = self.message.split()
        return int(number), int(times), int(room)


class OtherResult(WrongPath):
    """A host call has returned something else than the program assumes.

    Args:
        fact: the number of the assumption, and what holds of this call.
    """

    def __init__(self, message: str, fact: tuple[int, Any]) -> None:
        super().__init__(message)
        self._fact = fact

    @property
    def fact(self) -> tuple[int, Any]:
        return self._fact


def is_programs_own(error: Exception) -> bool:
    """Whether an exception may be one that the plain function raises, too."""
    return isinstance(error, FailedCheck) or not isinstance(error, (JitmlError, MemoryError))


class CodedWarning(UserWarning):
    """A warning of jitml, with its code."""

    code = ""

    def __str__(self) -> str:
        return with_addresses(f"{super().__str__()}\n{self.code}: {address(self.code)}")


class UncompiledWarning(CodedWarning):
    """A jitted function could not be traced for a reason that NumPy has not: it has run as plain Python."""

    code = "JM301"


class RecompileWarning(CodedWarning):
    """A function is compiled again and again, since each call needs another program; it says what changes from call to call."""

    code = "JM302"


class WrongResultWarning(CodedWarning):
    """A compiled program's answer was not that of plain NumPy: a bug in jitml. The caller has got NumPy's."""

    code = "JM303"


class ShapeError(JitmlError, ValueError):
    """Shapes do not fit together."""

    usual = Cause.SHAPE


class DTypeError(JitmlError, TypeError):
    """Dtypes do not fit the operation."""

    usual = Cause.SHAPE


class TraceError(JitmlError, TypeError):
    """A traced value was used where Python needs a concrete one, or after its trace had ended."""

    own_code = "JM201"


class NonFiniteError(JitmlError, FloatingPointError):
    """Under `jitml.debug_nans`, a result is NaN, or a derivative NaN or infinite, whose operands are not."""

    own_code = "JM202"


class LentMemory(JitmlError, ValueError):
    """An array or a list that a library's object has is changed, so that it sees it: plain Python does it, and `jit` lets it."""

    usual = Cause.EFFECT


class NoRoom(JitmlError, MemoryError):
    """There is no memory for what a loop may save for its derivative."""

    own_code = "JM203"


class StarvedError(JitmlError, MemoryError):
    """There is no memory to compile, where a library would end the process for want of it, or no file or module may be opened."""

    own_code = "JM204"


class NoDeviceError(JitmlError, RuntimeError):
    """There is no GPU to run on: none in the machine, no driver, one that is too old, or a package is missing; it says which."""

    own_code = "JM205"
    usual = Cause.DEVICE


class DeviceMemoryError(JitmlError, MemoryError):
    """A GPU has not as much memory as a program or an array needs; nothing has been changed. It says how much there is."""

    own_code = "JM206"


class DeviceFault(JitmlError, RuntimeError):
    """Code has failed on the GPU: an access outside of memory, an instruction that it has not, an error of the hardware.

    The driver gives this process no further work on that GPU and everything in its memory is lost; the CPU keeps working.
    """

    own_code = "JM207"


class DerivativeError(JitmlError, TypeError):
    """A derivative was asked of something that has none: an integer input, a non-scalar output."""

    usual = Cause.DERIVATIVE


class CompilerError(JitmlError, RuntimeError):
    """A stage of the compiler has failed on a program that was traced: a bug in jitml, whatever the cause looks like."""

    own_code = "JM901"
    is_bug = True


class LoweringError(JitmlError, RuntimeError):
    """An op has no rule in a layer that needs one: a gap in jitml itself."""

    own_code = "JM902"
    is_bug = True


class VerificationError(JitmlError, AssertionError):
    """A layer's data breaks that layer's own rules: a bug in jitml."""

    own_code = "JM903"
    is_bug = True


class ScheduleError(JitmlError, ValueError):
    """A schedule cannot be read, or does not fit its kernel; the message shows the loops and marks the one that it is about."""

    own_code = "JM208"


class ParseError(JitmlError, ValueError):
    """The text form of a layer could not be read back."""

    own_code = "JM904"


def forget_frames(error: BaseException | None) -> None:
    """Let an exception that is dealt with go at once: its frames hold it, and the call's arguments, until the collector comes.

    What lends an array its memory, an `array.array`, say, cannot be resized as long.
    """
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__  # what it was raised among may be the user's


@contextmanager
def own_faults() -> Iterator[None]:
    """Inside the block only jitml's own code runs: whatever it raises, but for a refusal, is no exception of the program's.

    Raises:
        CompilerError: instead.
    """
    try:
        yield
    except (UnsupportedError, ScheduleError, CompilerError, MemoryError, NoDeviceError, DeviceFault):
        raise
    except Exception as error:
        place = extract_tb(error.__traceback__)[-1]
        first, *_ = str(error).splitlines() or [""]
        raise CompilerError(
            f"jitml has failed to compile this program: {type(error).__name__}: {first}"
            f" ({Path(place.filename).name}:{place.lineno} in {place.name})",
            remedy="This is a bug in jitml: please report it, with the function and this traceback."
            " The plain function, `f.__wrapped__`, answers meanwhile.",
        ) from error
