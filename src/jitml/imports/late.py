"""Late imports: modules that are imported when they are first asked for something, and classes of modules that may never be.

    if TYPE_CHECKING:
        from jitml.sections import split
    else:
        split = late("jitml.sections.split")  # imports nothing

    split.SplitFunction  # imports it

What a program does not do it need not wait for: with the program on disk, a first call is little more than imports.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from typing import Any

from jitml.forks import InterruptSafeLock, hold_at_fork
from jitml.interrupts import uninterrupted

_LOCK = InterruptSafeLock()  # forks wait for it: a child cannot import what another thread was about to
hold_at_fork(_LOCK)


class _LateModule:
    """Stands for a module in another one's globals, until that is asked for something."""

    def __init__(self, name: str, user: dict[str, Any]) -> None:
        self._name, self._user = name, user

    def __getattr__(self, attribute: str) -> Any:
        module = sys.modules.get(self._name)
        if module is None or getattr(module.__spec__, "_initializing", False):
            module = uninterrupted(partial(_imported, self._name))
        for name in [name for name, value in [*self._user.items()] if value is self]:
            self._user[name] = module  # later calls find the module itself
        return getattr(module, attribute)


def late(name: str) -> Any:
    """What to ask in place of a module, by functions of the one that calls this, and not by what runs while that is imported."""
    return _LateModule(name, sys._getframe(1).f_globals)


def _imported(name: str) -> Any:
    with _LOCK:
        return import_module(name)


class _OfAModule(type):
    """A class that stands for one of a module: before that is imported, nothing is an instance of it."""

    home: str

    def real(cls) -> Any:
        return getattr(sys.modules.get(cls.home), cls.__name__, ())

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, cls.real())

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.real())


def late_class(home: str, name: str) -> Any:
    """For `isinstance` and `issubclass`: a module's class, without the module.

    >>> isinstance(1.5, late_class("fractions", "Fraction"))
    False
    """
    return _OfAModule(name, (), {"home": home})


__all__ = ["late", "late_class"]
