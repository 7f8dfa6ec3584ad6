"""Transformed functions: what `grad`, `vmap` and their like make of a function, an object that is called like one.

Python's own functions pickle by name alone, and the name of such a one is that of the function it was made of.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Hashable
from typing import Any

from jitml.trace.environment.pickling import reduced


class FunctionLike:
    """An object that stands for a function: it becomes a method as a function does."""

    __name__: str
    __call__: Callable[..., Any]

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __copy__(self) -> Any:
        return self  # as functions do

    def __deepcopy__(self, memo: object) -> Any:
        return self

    @property
    def traced_as(self) -> Callable[..., Any] | None:
        """The function that takes its place where it is called in a trace, if it does nothing else there."""
        return None

    def __set_name__(self, owner: type, name: str) -> None:
        # Methods pickle by the name of what they call: of `slope = grad(loss)` in a class it would lead to the loss.
        if self.__dict__.get("__name__", name) != name and vars(owner).get(self.__name__) is not self:
            self.__name__, self.__qualname__ = name, f"{owner.__qualname__}.{name}"


_OF_FUNCTIONS = frozenset({"__code__", "__defaults__", "__kwdefaults__", "__globals__", "__closure__"})


class FunctionAttributes(FunctionLike):
    """One that does the same as a function, and has what `inspect` asks for to tell generators and coroutines."""

    function: Callable[..., Any]

    def __getattr__(self, name: str) -> Any:
        if name not in _OF_FUNCTIONS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.function, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OF_FUNCTIONS:
            setattr(self.function, name, value)
        else:
            object.__setattr__(self, name, value)


class Transformed(FunctionLike):
    """A function that a transform has made of its `__wrapped__`.

    Args:
        key: all that tells it from others that are made of the same function.
        again: makes another one like it.
    """

    def __init__(self, key: Hashable, function: Callable[..., Any], again: functools.partial[Callable[..., Any]]) -> None:
        functools.update_wrapper(self, function)
        self.__wrapped__: Callable[..., Any] = function.__wrapped__  # type: ignore[attr-defined]  # functools.wraps sets it
        self._key, self._function, self._again = key, function, again

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __reduce__(self) -> str | tuple[Any, ...]:
        return reduced(self, self._again)

    def __repr__(self) -> str:
        return f"<{self._again.func.__name__} of {getattr(self, '__qualname__', self.__wrapped__)}>"

    @property
    def key(self) -> Hashable:
        return self._key
