"""Recompilation: is a function compiled again and again? What changes from one call to the next, and what to do about it."""

from __future__ import annotations

import re
from collections import Counter, deque
from time import monotonic

MOST = 8  # compilations of a function in
PERIOD = 60.0  # seconds, after which it is told
_BEFORE = "not so any more: "

# What a guard says that failed, and what helps. Where none of these matches, it is about a value.
_REMEDIES = (
    (r"another structure", "Pass the same arguments in the same containers in each call."),
    (r" has the shape ", "jit(dynamic=True) compiles one program for arrays of all lengths."),
    (r" has the strides | aligned| C order", "Pass contiguous arrays: np.ascontiguousarray(x)."),
    (
        r" is \w+\d*\[| is \w+, of \d+ axes| of type |: type of ",
        "Pass arrays of one dtype and one number of axes.",
    ),
    (r" is the same (function|method)", "Make the function once, outside of the loop that calls."),
)
_OF_VALUES = "Pass what changes as an array or a number that is only computed with, or keep it the same."


class Compilations:
    """The last compilations of one function, and why each was made.

    >>> made = Compilations()
    >>> for n in range(9):
    ...     made.note(f"not so any more: mode is {n} (model.py:3 in step)", at=float(n))
    >>> made.complaint().splitlines()[0]
    'was compiled 9 times within a minute; what changes is mode (9 times). No longer so: mode is 8 (model.py:3 in step).'
    >>> made.complaint()
    ''
    """

    def __init__(self) -> None:
        self._last: deque[tuple[float, str]] = deque(maxlen=MOST + 1)
        self._is_told = False

    def note(self, why: str, at: float | None = None) -> None:
        self._last.append((monotonic() if at is None else at, why))

    def complaint(self) -> str:
        """What to tell the user, once, if there are too many; else nothing."""
        if self._is_told or len(self._last) <= MOST or self._last[-1][0] - self._last[0][0] > PERIOD:
            return ""
        self._is_told = True
        return _told([why for _, why in self._last])

    def is_refused(self, claim: str) -> str:
        """What to tell the user, once, where no more programs are made; `claim` is what each call needs another one for."""
        if self._is_told:
            return ""
        self._is_told = True
        reasons = [*(why for _, why in self._last), claim]
        return f"{_told(reasons)} No more of them are compiled: what depends on it runs as Python."


def _told(reasons: list[str]) -> str:
    found = Counter(subject for why in reasons if (subject := _subject(why)))
    subject, times = found.most_common(1)[0] if found else ("", 0)
    last = next((why for why in reversed(reasons) if subject and _subject(why) == subject), reasons[-1])
    what = f"; what changes is {subject} ({times} times)" if subject else ""
    remedy = next((text for pattern, text in _REMEDIES if re.search(pattern, last)), _OF_VALUES)
    return f"was compiled {len(reasons)} times within a minute{what}. No longer so: {last.removeprefix(_BEFORE)}.\n{remedy}"


def _subject(why: str) -> str:
    """What a reason is about: `x` of `not so any more: x is float32[3]`."""
    match = re.match(r"(?:type of )?(\S+) (?:is|has|was|are) ", why.removeprefix(_BEFORE))
    return match[1] if match else ""


__all__ = ["MOST", "Compilations"]
