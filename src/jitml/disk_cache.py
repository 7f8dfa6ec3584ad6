"""Disk cache: what compilers have made, kept in the user's folder for caches for processes to come; many may run at once.

A file is written beside its place and then moved there, so that nobody reads half of one; a digest in front of it, of its name
and content, tells files that are damaged or were another's, which count as not there. Files that have not been asked for
longest go first, once there are too many bytes. What is kept is run: so nothing is read or written where another user could
have written it.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

try:
    from _blake2 import blake2b  # as `random` has its own: hashlib brings OpenSSL, which takes 3 ms of each first call
except ImportError:
    from hashlib import blake2b

from jitml.config import CONFIG
from jitml.diagnostics import log

IMPORTED = time.time_ns()  # what has changed since then may be other than what runs
_DIGEST = 32  # bytes
_NAME = re.compile(r"(?:([a-z]+)-)?[0-9a-f]{64}")  # of a file that is ours: nothing else is counted, or removed
_UNFINISHED = re.compile(rf"\.{_NAME.pattern}\.[0-9a-f]+")
_OURS = re.compile(f"{_NAME.pattern}|{_UNFINISHED.pattern}")
_LOOKS = 128  # into the folder, while all processes together write as much as it may hold
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
_BINARY = getattr(os, "O_BINARY", 0)


class KeptFile(NamedTuple):
    """A file: when it was used last, its bytes, its path, and what kind of thing is in it."""

    used: int
    size: int
    path: str
    kind: str


def user_cache_folder() -> Path | None:
    """Where this user's programs keep what they can make again, by the convention of the system; None without a home."""
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if not home.is_absolute():  # HOME is a relative path
        return None
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "jitml" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "jitml"
    given = Path(os.environ.get("XDG_CACHE_HOME") or "")
    return (given if given.is_absolute() else home / ".cache") / "jitml"


class DiskCache:
    """Bytes by key.

    Args:
        folder: None for none: nothing is kept.
        limit: bytes that all files may have; with 0, nothing is kept.
    """

    def __init__(self, folder: Path | None, limit: int) -> None:
        self.folder = folder if limit > 0 else None
        self.limit = limit
        self._room = 0  # bytes that may be written before the folder is looked through again

    @staticmethod
    def key(kind: str, parts: Sequence[str | bytes]) -> str:
        """A name for what these parts say all of.

        >>> DiskCache.key("object", ["a", "bc"]) == DiskCache.key("object", ["ab", "c"])
        False
        """
        digest = blake2b(digest_size=_DIGEST)
        for part in parts:
            data = part if isinstance(part, bytes) else part.encode()
            digest.update(len(data).to_bytes(8, "little") + data)
        return f"{kind}-{digest.hexdigest()}"

    @property
    def is_used(self) -> bool:
        return self.folder is not None and self.why_unused() is None

    def get(self, key: str) -> bytes | None:
        if self.folder is None or self.why_unused() is not None:
            return None
        data = _content(os.path.join(self.folder, key))
        if data is None:
            log.kept("miss", key)
        else:
            log.kept("hit", key, f"{len(data)} bytes")
            with suppress(OSError):  # a folder that may only be read is as good
                os.utime(os.path.join(self.folder, key))
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keep it, if the folder can be written and there is room: what is not kept is made again."""
        size = len(data) + _DIGEST
        if self.folder is None or size > self.limit:
            return
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self.why_unused() is None:
                self._make_room(size, key)
                _write(os.path.join(self.folder, key), _digest(key, data) + data)
                log.kept("kept", key, f"{size} bytes", self.folder)

    def why_unused(self) -> str | None:
        """Why the folder is not used; None if it is, or would be once there is one."""
        if self.folder is None:
            return "there is no folder (JITML_CACHE_DIR), or no room (JITML_CACHE_BYTES)"
        try:
            status = os.stat(self.folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            return str(error)
        if not stat.S_ISDIR(status.st_mode):
            return "it is no folder"
        return None if _is_ours_alone(status) else "other users own it, or may write there"

    def _make_room(self, wanted: int, key: str) -> None:
        """Remove files until three quarters of the limit are taken, if it is near; also what the dead have left.

        The folder is looked through only after so much has been written that others might have filled it meanwhile: by a
        process that has not looked yet, for some of the names. A look takes milliseconds for each thousand files.
        """
        self._room -= wanted
        if self._room >= 0 or int(key[-8:], 16) * self.limit > _LOOKS * wanted << 32:
            return
        files = [*self._named(_OURS)]
        taken = wanted + sum(file.size for file in files)
        if taken > self.limit - self.limit // 16:
            for file in sorted(files):
                if taken <= self.limit * 3 // 4:
                    break
                with suppress(OSError):
                    os.unlink(file.path)
                    taken -= file.size
        self._room = (self.limit - taken) // 4

    def taken(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files())

    def files(self) -> Iterator[KeptFile]:
        """What is kept, in any order."""
        return self._named(_NAME)

    def _unfinished(self) -> Iterator[KeptFile]:
        return self._named(_UNFINISHED)

    def _named(self, pattern: re.Pattern[str]) -> Iterator[KeptFile]:
        with suppress(OSError):
            for entry in os.scandir(self.folder) if self.folder is not None else ():
                match = pattern.fullmatch(entry.name)
                with suppress(OSError):  # another process may have removed it
                    if match is not None and entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        yield KeptFile(status.st_mtime_ns, status.st_size, entry.path, match[1] or "cubin")

    def remove_damaged(self) -> tuple[int, int]:
        """Remove what nobody would read, damaged files and unfinished ones.

        Returns:
            How many files are whole, and how many were removed.
        """
        kept = list(self.files())
        bad = [file for file in kept if _content(file.path) is None] + list(self._unfinished())
        return len(kept) - sum(not os.path.basename(file.path).startswith(".") for file in bad), _unlink(bad)

    def clear(self) -> int:
        """Remove all files that are ours; how many they were."""
        self._room = 0
        return _unlink([*self.files(), *self._unfinished()])


def disk_cache() -> DiskCache:
    """The one that JITML_CACHE_DIR and JITML_CACHE_BYTES ask for."""
    return _asked_for(CONFIG.cache_dir, CONFIG.cache_bytes, *map(os.environ.get, _WHERE_HOMES_ARE))


@cache
def _asked_for(folder: str | None, limit: int, *_: str | None) -> DiskCache:
    return _in_folder(Path(folder) if folder else user_cache_folder(), limit)


_WHERE_HOMES_ARE = ("HOME", "USERPROFILE", "LOCALAPPDATA", "XDG_CACHE_HOME")
_in_folder = cache(DiskCache)


def stamps(folder: str, inner: tuple[str, ...] | None = None) -> list[tuple[str, int, int, int]]:
    """Size and times of each source file in a folder, and in the folders in it, of which `inner` names those that count."""
    found = []
    with os.scandir(folder) as entries:
        for name, entry in sorted((entry.name, entry) for entry in entries):
            if name.endswith(".py"):
                found.append((name, *stamp(entry.stat())))
            elif name != "__pycache__" and (inner is None or name in inner) and entry.is_dir():
                found += stamps(entry.path)
    return found


def stamp(status: os.stat_result) -> tuple[int, int, int]:
    """Bytes, when the text was changed, and when anything of the file was."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _digest(name: str, data: bytes) -> bytes:
    return blake2b(name.encode() + b"\0" + data, digest_size=_DIGEST).digest()


def _content(path: str) -> bytes | None:
    """What is kept in a file; None if there is none, it is damaged, or another user could have written it."""
    try:
        handle = os.open(path, _READ | _BINARY)
    except OSError:
        return None
    try:
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            content = file.read() if stat.S_ISREG(status.st_mode) and _is_ours_alone(status) else b""
    except OSError:
        return None
    data = content[_DIGEST:]
    return data if _digest(os.path.basename(path), data) == content[:_DIGEST] else None


def _is_ours_alone(status: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or (status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _write(path: str, content: bytes) -> None:
    folder, name = os.path.split(path)
    unfinished = os.path.join(folder, f".{name}.{os.urandom(8).hex()}")
    handle = os.open(unfinished, _WRITE | _BINARY, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished)
        raise


def _unlink(files: Sequence[KeptFile]) -> int:
    removed = 0
    for file in files:
        with suppress(OSError):
            os.unlink(file.path)
            removed += 1
    return removed
