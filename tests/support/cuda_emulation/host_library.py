"""Shared libraries that tests build with the host's C++ compiler, kept by content for the tests of all processes to come."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest


class BuildError(RuntimeError):
    """The host's compiler refuses a source; the message is its log."""


def compiler() -> str:
    return os.environ.get("CXX", "g++")


@cache
def has_compiler() -> bool:
    return shutil.which(compiler()) is not None


def kept(name: str, *content: str) -> Path:
    """Where what is made of this content lies."""
    folder = Path(tempfile.gettempdir()) / f"jitml-host-libraries-{os.getuid()}"
    key = hashlib.sha256("\0".join((compiler(), *content)).encode()).hexdigest()[:24]
    path = folder / key / name
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path


def shared_library(source: Path, *options: str, name: str | None = None) -> Path:
    """A library of one source, under a name by which a loader may look for it."""
    library = kept(name or f"{source.stem}.so", source.read_text(), *options)
    if not library.exists():
        compile_to(library, ("-shared", "-fPIC", *options, str(source)))
    return library


def compile_to(path: Path, arguments: Sequence[str]) -> None:
    """One call of the compiler; processes that make the same file find a whole one. Tests without a compiler are skipped."""
    if not has_compiler():
        pytest.skip(f"the host's compiler builds what is needed, and {compiler()} is not there")
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    done = subprocess.run([compiler(), *arguments, "-o", str(temporary)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(done.stderr)
    temporary.replace(path)


def write(path: Path, text: str) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)
