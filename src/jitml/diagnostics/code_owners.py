"""Code owners: is the code of a file the user's, jitml's own, or a library's?"""

from __future__ import annotations

import os
from functools import lru_cache
from importlib.util import find_spec

_JITML = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_DEMO = os.path.join(_JITML, "demo", "")  # its programs stand for a user's
_LIKE_THE_USERS = os.path.join(_JITML, "control.py")  # is written like a user's code
_PACKAGES = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))  # of whichever environment
# Code that dataclasses and namedtuples generate, and Python's frozen modules.
_GENERATED = ("<string>", "<frozen", "<jitml")


def is_jitmls(file: str) -> bool:
    """Whether a file is one of jitml's own."""
    return file.startswith(_JITML) and not file.startswith(_DEMO)


@lru_cache(maxsize=4096)
def is_users(file: str) -> bool:
    """Whether code from this file is the user's, to be converted and named in messages, or a library's."""
    if file.startswith(_JITML):
        return file.startswith(_DEMO)
    return not file.startswith((*_libraries(), *_GENERATED)) and not any(folder in file for folder in _PACKAGES)


def is_converted(file: str) -> bool:
    """Whether functions of this file are converted: the user's, and jitml's own that are written like those."""
    return is_users(file) or file == _LIKE_THE_USERS


def is_machinery(file: str) -> bool:
    """Whether a file is one of jitml's own that is never converted."""
    return is_jitmls(file) and file != _LIKE_THE_USERS


@lru_cache(maxsize=1)
def _libraries() -> tuple[str, ...]:
    """Folders of what jitml is made with, wherever it is installed, and of the standard library."""
    found = (find_spec(name) for name in ("numpy", "optree"))
    folders = [folder for spec in found if spec is not None for folder in spec.submodule_search_locations or ()]
    folders.append(os.path.dirname(os.__file__))  # without `sysconfig`, which takes 1 ms
    return tuple(os.path.join(os.path.abspath(folder), "") for folder in folders)


__all__ = ["is_converted", "is_jitmls", "is_machinery", "is_users"]
