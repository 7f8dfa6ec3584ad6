"""Disk cache: what a compiler has made, kept in the user's folder for caches for processes to come; many may run at once.

A file is written beside its place and then moved there, so that nobody reads half of one; a digest in front of it tells files
that are damaged, which count as not there. Files that have not been asked for longest go first, once there are too many bytes.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from jitml.config import CONFIG

_DIGEST = hashlib.sha256().digest_size


def user_cache_folder() -> Path | None:
    """Where this user's programs keep what they can make again, by the convention of the system; None without a home."""
    try:
        home = Path.home()
    except RuntimeError:
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

    @staticmethod
    def key(parts: Sequence[str]) -> str:
        """A name for what these texts say all of.

        >>> DiskCache.key(["a", "bc"]) == DiskCache.key(["ab", "c"])
        False
        """
        digest = hashlib.sha256()
        for part in parts:
            data = part.encode()
            digest.update(len(data).to_bytes(8, "little") + data)
        return digest.hexdigest()

    def get(self, key: str) -> bytes | None:
        if self.folder is None:
            return None
        path = self.folder / key
        try:
            content = path.read_bytes()
        except OSError:
            return None
        digest, data = content[:_DIGEST], content[_DIGEST:]
        if hashlib.sha256(data).digest() != digest:
            return None
        with suppress(OSError):  # a folder that may only be read is as good
            os.utime(path)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keep it, if the folder can be written and there is room: what is not kept is made again."""
        if self.folder is None or len(data) + _DIGEST > self.limit:
            return
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._make_room(len(data) + _DIGEST)
            self._write(self.folder / key, hashlib.sha256(data).digest() + data)

    def _write(self, path: Path, content: bytes) -> None:
        handle, temporary = tempfile.mkstemp(prefix=".", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise

    def _make_room(self, wanted: int) -> None:
        """Remove files until three quarters of the limit are taken, if the new one does not fit; also what the dead have left."""
        files = self._files()
        taken = wanted + sum(size for _, size, _ in files)
        if taken <= self.limit:
            return
        for _, size, path in sorted(files):
            if taken <= self.limit * 3 // 4:
                break
            with suppress(OSError):
                os.unlink(path)
                taken -= size

    def taken(self) -> int:
        """Bytes of all files."""
        return sum(size for _, size, _ in self._files())

    def _files(self) -> list[tuple[int, int, str]]:
        """When each was used last, its size and its path."""
        files: list[tuple[int, int, str]] = []
        if self.folder is None:
            return files
        with suppress(OSError):
            for entry in os.scandir(self.folder):
                with suppress(OSError):  # another process may have removed it
                    status = entry.stat()
                    files.append((status.st_mtime_ns, status.st_size, entry.path))
        return files


def disk_cache() -> DiskCache:
    """The one that JITML_CACHE_DIR and JITML_CACHE_BYTES ask for."""
    return DiskCache(Path(CONFIG.cache_dir) if CONFIG.cache_dir else user_cache_folder(), CONFIG.cache_bytes)
