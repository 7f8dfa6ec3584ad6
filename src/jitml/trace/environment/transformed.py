"""Transformed functions: what `grad`, `vmap` and their like make of a function, an object that is called like one.

Python's own functions pickle by name alone, and the name of such a one is that of the function it was made of.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from jitml.diagnostics.tracebacks import shorten
from jitml.functions import FunctionLike
from jitml.imports.late import late

if TYPE_CHECKING:
    from jitml.trace.environment import pickling
else:
    pickling = late("jitml.trace.environment.pickling")


class Transformed(FunctionLike):
    """A function that a transform has made of its `__wrapped__`.

    Args:
        key: its transform, and all that tells it from others that are made of the same function.
        again: makes another one like it.
    """

    def __init__(self, key: tuple[Hashable, ...], function: Callable[..., Any], again: functools.partial[Any]) -> None:
        functools.update_wrapper(self, function)
        self.__wrapped__: Callable[..., Any] = function.__wrapped__  # type: ignore[attr-defined]  # functools.wraps sets it
        self._key, self._function, self._again = key, function, again

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._function(*args, **kwargs)
        except BaseException as error:
            shorten(error)
            raise

    def __reduce__(self) -> str | tuple[Any, ...]:
        return pickling.reduced(self, self._again)

    def __repr__(self) -> str:
        return f"<{self._again.func.__name__} of {getattr(self, '__qualname__', self.__wrapped__)}>"

    @property
    def key(self) -> Hashable:
        return self._key

    @property
    def is_derivative(self) -> bool:
        """Whether it may be taken on a tape where the function cannot be traced."""
        return self._key[0] not in ("vmap", "checkpoint")
