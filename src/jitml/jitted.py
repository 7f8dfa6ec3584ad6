"""Jitted functions: what `jitml.jit` makes of one.

At first that is the function as it was written, whose time is counted. What compiles it (`engine.py`) takes longer to import than
many a program takes to run: it comes when something has cost enough, or is likely to, or when somebody asks for what only it
knows.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FunctionType
from typing import TYPE_CHECKING, Any
from warnings import warn

import numpy as np

from jitml.diagnostics.tracebacks import entry
from jitml.dispatch.direct_calls import call_directly
from jitml.dispatch.left_alone import Rented, is_called_plainly
from jitml.dispatch.renting import FEW, FRAME, PURSE, Rent
from jitml.dispatch.work import has_arrays, has_loop, is_called_once, is_driver, is_worth_a_first_call, sizes_of
from jitml.functions import is_disabled, keep_switchable

if TYPE_CHECKING:
    from jitml.dispatch.specialize import Variant
    from jitml.engine import Engine
    from jitml.options import Options
    from jitml.outline import Explanation
    from jitml.pipeline import Lowered
    from jitml.sections.kinds import Splits

_HOST = frozenset({np.ndarray, bool, int, float, complex, str, list, tuple, dict, set, type(None)})  # which are nowhere else


class Jit(Rented):
    """A function that is compiled for the kinds of arguments it is called with, where that pays.

    It keeps the function's name, signature and docstring, works as a method, pickles as a function does and may be called from
    many threads at once.

    Args:
        options: None for the usual ones, where the environment asks for nothing.
        rent: what it has cost, if it is to be compiled now.
    """

    __slots__ = ("_engine", "_made", "_options", "_rent", "awaits_frame")

    def __init__(self, function: Callable[..., Any], options: Options | None = None, *, rent: Rent | None = None) -> None:
        functools.update_wrapper(self, function, updated=("__dict__",) if type(function) is FunctionType else ())
        self.function = function
        if options is None and "jitml.config" in sys.modules:
            options = _usual_options()
        self._options = options
        self._engine: Engine | None = None
        self._made: list[Engine] = []
        self._rent = rent or Rent()
        self.alone = None
        self.awaits_frame = True  # whether it may be split before the whole has been paid for
        if type(function) is FunctionType and function.__code__.co_filename.startswith("<"):
            with suppress(MemoryError, OSError):  # nothing to load it with: it is said when the function is called
                from jitml.trace.rewrite.source_texts import keep  # few need it

                keep(function)
        keep_switchable(self)
        if rent is None and (options is None or options.is_rented):
            self.leave_alone(self._rent.paid)
        else:
            self.answer_by(self._seen if is_disabled() or (engine := self._loaded()) is None else engine.__call__)

    @property
    def options(self) -> Options:
        if self._options is None:
            self._options = _usual_options()
        return self._options

    @property
    def engine(self) -> Engine:
        """What compiles it."""
        if self._engine is None:
            began = PURSE.began()
            if "jitml.engine" not in sys.modules:
                from jitml.headroom import require_engine  # few programs need it

                require_engine()
            from jitml.process import importing  # as above

            with importing():
                from jitml.engine import Engine

            self._made.append(Engine(self.function, self.options, jitted=self, rent=self._rent))
            self._engine = self._made[0]  # another thread may have been first
            PURSE.brought(PURSE.ended(began))
        return self._engine

    def _loaded(self) -> Engine | None:
        """What compiles it; None where there is no memory to load it, or no file may be opened: each call tries again."""
        try:
            return self.engine
        except (MemoryError, OSError) as error:
            name = getattr(self.function, "__qualname__", self.function)
            told = f"{name} was not compiled: {getattr(error, 'message', error)}; each call tries again"
            errors = sys.modules.get("jitml.errors")  # nothing may be imported now
            warn(told, RuntimeWarning if errors is None else errors.UncompiledWarning, stacklevel=4)
            return None

    def _answer_seen(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        engine = self._loaded()
        return self.function(*args, **kwargs) if engine is None else engine.answer_seen(*args, **kwargs)

    def instead(self, args: tuple[Any, ...], kwargs: dict[str, Any], skipped: int) -> Callable[..., Any] | None:
        self._rent.comes(skipped)
        if not (self._is_worth_a_try(args, kwargs) or _has_device_arrays(args, kwargs)):
            return None
        if (engine := self._loaded()) is None:
            return self.function
        from jitml.ir.execute.debug_nans import runs_as_python  # which the engine has brought

        if runs_as_python():  # an answer is being checked, say
            return self.function
        self.go_on()
        return engine.__call__

    def _is_worth_a_try(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether to see what can be compiled before it has been paid for: of what a first call takes, nobody knows."""
        if self._rent.in_a_row and self._rent.is_due(may_be_soon=True) and has_arrays(args, kwargs):
            return True
        if self._rent.turns < FEW and not kwargs:
            self._rent.before = sizes_of(args)
        is_first = self._engine is None and not self._rent.turns
        self.awaits_frame = self.awaits_frame and has_loop(self.function)
        is_worth_it = is_first and is_worth_a_first_call(self.function, args, kwargs)
        is_worth_it = is_worth_it and not (is_driver(self.function, args, kwargs) and is_called_once())
        if not (is_worth_it or (self.awaits_frame and PURSE.has_earned(FRAME))):
            return False
        is_short = is_called_plainly()
        self.awaits_frame = self.awaits_frame and not is_short
        return not is_short

    @property
    def is_open(self) -> bool:
        return self._rent.is_open and not self.variants

    def be_enabled(self) -> None:
        if self.alone is None:
            self.go_on()
        else:
            self.alone.begin()

    def go_on(self) -> None:
        self.alone = None
        self.answer_by(self._seen if self._engine is None else self._engine.__call__)

    @property
    def traced_as(self) -> Callable[..., Any]:
        return self.function

    @entry
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Every stage of this function for these arguments, as text and data: of the variant that answers them, if there is one.

        Nothing is run and nothing is cached.
        """
        return self.engine.lower(args, kwargs)

    @entry
    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """See `jitml.explain`."""
        return self.engine.explain(repr(self), args, kwargs)

    @property
    def splits(self) -> Splits:
        """The function in sections."""
        return self.engine.splits

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The compiled specialisations, each with the reason for its compilation."""
        return () if self._engine is None else self._engine.variants

    @property
    def all_variants(self) -> tuple[Variant, ...]:
        """Those of the whole function, and those of its sections."""
        return () if self._engine is None else self._engine.all_variants

    def __dir__(self) -> list[str]:
        """What users have of it, which consoles and notebooks complete."""
        return sorted({*dir(self.function), "__wrapped__", "clear_cache", "explain", "lower", "variants"})

    def clear_cache(self) -> None:
        """Forget every specialisation."""
        if self._engine is not None:
            self._engine.clear()
            self.go_on()

    def __reduce__(self) -> Any:
        from jitml.trace.environment.pickling import reduced

        return reduced(self, Jit, self.function, self._options)

    def __repr__(self) -> str:
        count = len(self.variants)
        plainly = ", runs as Python for now" if self.alone is not None and self._rent.turns else ""
        name = getattr(self.function, "__qualname__", self.function)
        return f"<jit {name}, {count} variant{'' if count == 1 else 's'}{plainly}>"


def _usual_options() -> Options:
    from jitml.options import Options

    return Options()


def _has_device_arrays(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether arrays on a device are among arguments, or, where any has been made of ours, in them."""
    registry = sys.modules.get("jitml.device.registry")
    if registry is not None and registry.is_used():
        from jitml.trace.record.pytree import flatten

        return any(map(_is_on_device, flatten((args, kwargs))[0]))
    return any(map(_is_on_device, args)) or any(map(_is_on_device, kwargs.values()))


def _is_on_device(x: Any) -> bool:
    """Whether this is an array on a device, ours or another library's."""
    kind = type(x)
    if kind in _HOST or isinstance(x, (np.ndarray, np.generic)):
        return False
    if not (hasattr(kind, "__cuda_array_interface__") or hasattr(kind, "__dlpack_device__")):
        return False
    from jitml.device.convert import is_on_device

    return is_on_device(x)


call_directly(Jit)

__all__ = ["Jit"]
