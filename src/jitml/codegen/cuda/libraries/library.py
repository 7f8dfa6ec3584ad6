"""Shared libraries of NVIDIA's: how is one found, and its functions called?  Through ctypes, where cuda-pathfinder finds it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_int, c_void_p
from importlib import import_module
from typing import Any, TypeVar

from jitml.forks import InterruptSafeLock


class LibraryError(Exception):
    """A function of a library has failed."""


class Library:
    """Functions that return a status, 0 if all is well, and a handle that most of them take.

    Attributes:
        name: for people.
        create: the function that makes a handle.

    Raises:
        OSError: it is not installed.
    """

    name: str
    create: str

    def __init__(self, path: str) -> None:
        self._functions = ctypes.CDLL(path)
        self._handle = c_void_p()
        self._lock = InterruptSafeLock()

    def open(self) -> None:
        """
        Raises:
            LibraryError: there is no GPU.
        """
        self._call(self.create, byref(self._handle))

    def has(self, name: str) -> bool:
        """Whether this version has a function."""
        return hasattr(self._functions, name)

    def _call(self, name: str, *arguments: Any) -> None:
        function = getattr(self._functions, name)
        function.restype = c_int
        status = function(*arguments)
        if status:
            raise LibraryError(f"{name} of {self.name} has failed with status {status}")


AnyLibrary = TypeVar("AnyLibrary", bound=Library)


def installed(name: str, library: Callable[[str], AnyLibrary]) -> AnyLibrary | None:
    """A library that is installed.

    Args:
        name: as `cuda.pathfinder` has it.
    """
    try:
        pathfinder: Any = import_module("cuda.pathfinder")
    except ImportError:
        return None
    try:
        return library(pathfinder.load_nvidia_dynamic_lib(name).abs_path)
    except (pathfinder.DynamicLibNotFoundError, OSError):
        return None


def opened(library: AnyLibrary | None) -> AnyLibrary | None:
    """The library with a handle; None where it is not installed, or there is no GPU."""
    try:
        if library is not None:
            library.open()
    except LibraryError:
        return None
    return library
