"""Values on a tape: what does a function see that is differentiated as it runs?

`Taped`: an array or number that is known, and has a place on a tape. What asks for the bare number, and would lose the
derivative, is refused; what only looks at it is told. Operators and methods are installed by `operators.py`.
"""

from __future__ import annotations

import operator
import sys
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import ref

import numpy as np

from jitml.autograd.tape.memory import MemoryPlace, MemoryWindow, OwnMemory, Remembrance, owned, window_of
from jitml.autograd.tape.tape import RememberedView, Slot, SlotKind, Taking, Tape, current_tape, recalled
from jitml.diagnostics.code_owners import is_users
from jitml.errors import DerivativeError
from jitml.trace.record.recording import user_source
from jitml.trace.record.user_code import makes_text

Array = np.ndarray[Any, Any]
NUMBERS = (float, complex, int, bool)


class Taped:
    """An array or number with a place on a tape; an inactive one has none, but may be written with what has.

    value: the array, or the number. storage: an array's memory. number: a number's slot, or that of a view as `seen`.
    """

    __slots__ = ("__weakref__", "number", "seen", "storage", "tape", "value")

    if TYPE_CHECKING:  # what `operators.py` installs

        def __getattr__(self, name: str) -> Any: ...

        def __getitem__(self, index: Any) -> Any: ...

    def __init__(self, tape: Tape, value: Any, storage: OwnMemory | None, number: Slot = None) -> None:
        self.tape, self.value, self.storage, self.number, self.seen = tape, value, storage, number, -1
        tape.values.append(ref(self))

    @property  # type: ignore[misc]  # a class says what its instances pass for
    def __class__(self) -> Any:
        return type(self.value)

    @property
    def slot(self) -> Slot:
        """Its value now, on the tape."""
        storage = self.storage
        if storage is None:
            return self.number
        if storage.slot is None or self.value is storage.buffer:
            return storage.slot
        if self.seen != storage.slot:
            place = MemoryPlace(window_of(self.value, storage.buffer), None, False)
            self.number, self.seen = self.tape.new(kind_of(self.value)), storage.slot
            self.tape.entries.append(Taking(place, storage.slot, self.number))
        return self.number

    @property
    def is_active(self) -> bool:
        return (self.number if self.storage is None else self.storage.slot) is not None

    def __window__(self, window: MemoryWindow) -> Taped:
        assert self.storage is not None
        return Taped(self.tape, window.of(self.storage.buffer), self.storage)

    def place(self, index: Any) -> MemoryPlace:
        """Elements of it, in its storage."""
        assert self.storage is not None
        window = None if self.value is self.storage.buffer else window_of(self.value, self.storage.buffer)
        parts = index if type(index) is tuple else (index,)
        picks = [type(i) in (list, tuple) or isinstance(i, np.ndarray) for i in parts]
        if not any(picks):
            return MemoryPlace(window, index, False)
        frozen = tuple(_frozen(i) if pick else i for i, pick in zip(parts, picks))
        is_picked = any(p.dtype.kind in "iu" for p, pick in zip(frozen, picks) if pick)
        return MemoryPlace(window, frozen if type(index) is tuple else frozen[0], is_picked)

    # ------------------------------------------------------------------------------------------------ as Python sees it

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if self.is_active:
            lose("an array of NumPy's own")
        if self.storage is not None:
            self.storage.exposed = True
        return np.array(self.value, dtype) if copy else np.asarray(self.value, dtype)

    def __float__(self) -> float:
        if self.is_active and not makes_text(sys._getframe(1)):
            lose("a float")
        return float(self.value)

    def __complex__(self) -> complex:
        if self.is_active:
            lose("a complex number")
        return complex(self.value)

    def __hash__(self) -> int:
        if self.is_active:
            lose("a key")
        return hash(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        return operator.index(self.value)

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.value, digits)

    def __trunc__(self) -> int:
        return int(self.value)

    def __floor__(self) -> int:
        return float(self.value).__floor__()

    def __ceil__(self) -> int:
        return float(self.value).__ceil__()

    def __repr__(self) -> str:
        return repr(self.value)

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)

    def __len__(self) -> int:
        return len(self.value)

    def __contains__(self, x: Any) -> bool:
        return bare(x) in self.value

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        lose("bytes")


def _frozen(index: Any) -> Array:
    """The same array of numbers or truths, whose owner may change his."""
    array = np.array(index)
    return array if array.size or isinstance(index, np.ndarray) else array.astype(np.intp)


def refuse(what: str, remedy: str) -> NoReturn:
    error = DerivativeError(what, source=user_source(), remedy=remedy)
    tape = current_tape()
    if tape is not None:
        tape.refusal = error
    raise error


_WRITTEN = " An array that it is put into is made inside of the function, by np.zeros, np.array(x), x.copy() and their kin."


def refuse_foreign() -> NoReturn:
    refuse(
        "what is differentiated is put into an array that comes from outside, or that an operator of plain numbers has made",
        "Put it into a copy, np.array(x), made inside of the function.",
    )


def lose(as_what: str) -> NoReturn:
    """Refuse what would take a derivative away without a word."""
    frame = sys._getframe(2)
    home = str(frame.f_globals.get("__name__"))
    by = "" if is_users(frame.f_code.co_filename) or home.startswith("jitml.") else f" by {home}.{frame.f_code.co_qualname}"
    refuse(
        f"a number that is differentiated is taken as {as_what}{by}, which has no derivative",
        "Where only its value is of interest, take that of jitml.stop_gradient(x)." + ("" if by else _WRITTEN),
    )


def bare(x: Any) -> Any:
    """The value of what is on a tape, and everything else as it is; inside of lists and tuples, too."""
    kind = type(x)
    if kind is Taped:
        return x.value
    if kind is tuple or kind is list:
        return kind(map(bare, x)) if has_taped(x) else x
    return x


def has_taped(x: Any) -> bool:
    kind = type(x)
    if kind is Taped:
        return True
    if kind is list or kind is tuple:
        return any(map(has_taped, x))
    return kind is dict and any(map(has_taped, x.values()))


def kind_of(value: Any) -> SlotKind:
    kind = type(value)
    if kind is np.ndarray:
        flags = value.flags
        return SlotKind(value.shape, value.dtype, True, flags.f_contiguous and not flags.c_contiguous)
    return SlotKind((), np.dtype(kind) if kind in (float, complex) else value.dtype, False)


def wrapped(tape: Tape | None, value: Any) -> Any:
    """What is not differentiated: arrays of floats may become so by what is written into them."""
    if tape is not None and type(value) is np.ndarray and value.dtype.kind in "fc":
        array = owned(value)
        return Taped(tape, array, OwnMemory(array, None))
    return value


def of_slot(tape: Tape, value: Any, number: int) -> Taped:
    if type(value) is np.ndarray:
        array = owned(value)
        return Taped(tape, array, OwnMemory(array, number))
    return Taped(tape, value, None, number)


def saved(tape: Tape, x: Any) -> Any:
    """What remembers an operand as it is now."""
    kind = type(x)
    if kind is Taped:
        if x.storage is None:
            value = x.value
            return np.asarray(value)[()] if type(value) in NUMBERS else value
        cell = x.storage.remembered()
        return cell if x.value is x.storage.buffer else RememberedView(cell, window_of(x.value, x.storage.buffer))
    if kind is np.ndarray:
        return tape.remembered(x)
    return np.asarray(x)[()] if kind in NUMBERS else x


def of_saved(tape: Tape, remembered: Any, slot: Slot) -> Any:
    """What has been remembered of a value, as that value."""
    if slot is None:
        return recalled(remembered)
    if type(remembered) is Remembrance:
        storage = OwnMemory(remembered.array, slot)
        storage.cell = remembered
        return Taped(tape, remembered.array, storage)
    value = recalled(remembered)
    return of_slot(tape, value.copy() if type(remembered) is RememberedView else value, slot)
