"""What is kept on disk: whole or not at all, whoever writes at the same time, no more than the limit, and nobody else's."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import jitml.__main__ as command
from jitml.disk_cache import DiskCache, user_cache_folder

A, B = (DiskCache.key("test", [name]) for name in "ab")


def test_what_is_put_is_got(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "deep" / "folder", 1 << 20)
    assert cache.get(A) is None
    for data in (b"", b"first", b"second"):
        cache.put(A, data)
        assert DiskCache(cache.folder, 1).get(A) == data
    assert [path.name for path in (tmp_path / "deep" / "folder").iterdir()] == [A]
    assert (tmp_path / "deep" / "folder").stat().st_mode & 0o777 == 0o700 or sys.platform == "win32"


DAMAGE: list[Callable[[bytes], bytes]] = [
    lambda whole: whole[:-1],
    lambda whole: whole[:3],
    lambda whole: b"",
    lambda whole: whole[::-1],
    lambda whole: whole[:-1] + bytes([whole[-1] ^ 1]),
    lambda whole: b"what another program has written\n",
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_counts_as_not_there(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 1 << 20)
    cache.put(A, b"content")
    (tmp_path / A).write_bytes(damage((tmp_path / A).read_bytes()))
    assert cache.get(A) is None
    cache.put(A, b"content")
    assert cache.get(A) == b"content"


def test_a_file_under_another_ones_name_counts_as_not_there(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 1 << 20)
    cache.put(A, b"content")
    os.rename(tmp_path / A, tmp_path / B)
    assert cache.get(A) is None and cache.get(B) is None


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are others there")
@pytest.mark.parametrize("place", ["file", "folder", "link", "pipe"])
def test_what_others_could_have_written_is_not_read(place: str, tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache", 1 << 20)
    cache.put(A, b"content")
    path = tmp_path / "cache" / A
    if place in ("file", "folder"):
        (path if place == "file" else path.parent).chmod(0o777)
    else:
        path.rename(tmp_path / A)
        path.symlink_to(tmp_path / A) if place == "link" else os.mkfifo(path)
    assert cache.get(A) is None
    cache.put(B, b"other")
    assert (cache.get(B) is None) == (place == "folder") == (cache.why_unused() is not None)
    assert place != "folder" or not (tmp_path / "cache" / B).exists()


def test_a_folder_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = DiskCache(tmp_path, 1 << 20)
    cache.put(A, b"content")
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1, raising=False)
    cache.put(B, b"content")
    assert cache.get(A) is None and [path.name for path in tmp_path.iterdir()] == [A]


def test_what_has_not_been_used_longest_goes_first(tmp_path: Path) -> None:
    cache, names = DiskCache(tmp_path, 1000), {name: DiskCache.key("test", [name]) for name in "abcde"}
    (tmp_path / "somebody's").write_bytes(bytes(5000))
    for n, name in enumerate("abcd"):
        cache.put(names[name], bytes(200))
        os.utime(tmp_path / names[name], (n, n))
    assert cache.get(names["a"]) is not None
    cache.put(names["e"], bytes(200))
    assert {path.name for path in tmp_path.iterdir()} == {"somebody's", *(names[name] for name in "ade")}
    cache.put(B, bytes(2000))
    assert cache.get(B) is None and cache.get(names["e"]) is not None


def test_a_folder_is_looked_through_now_and_then_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, looked, scan = DiskCache(tmp_path, 100_000), [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: looked.append(path) or scan(path))
    for n in range(100):
        cache.put(DiskCache.key("test", [str(n)]), bytes(100))
    assert 1 <= len(looked) <= 4 and cache.taken() == 100 * 132


def test_processes_that_write_little_each_keep_the_limit_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked, scan, most = [], os.scandir, 0
    monkeypatch.setattr(os, "scandir", lambda path: looked.append(path) or scan(path))
    for n in range(500):
        DiskCache(tmp_path, 1 << 20).put(DiskCache.key("test", [str(n)]), bytes(4000))
        if n % 10 == 0:
            most = max(most, sum(path.stat().st_size for path in map(Path, scan(tmp_path))))
    assert 0.7 * (1 << 20) < most <= 1 << 20
    assert 100 < len(looked) < 400


@pytest.mark.parametrize("folder", [None, "nowhere"])
def test_nothing_is_kept_without_a_folder_or_with_no_room(folder: str | None, tmp_path: Path) -> None:
    cache = DiskCache(folder and tmp_path / folder, 0 if folder else 1000)
    cache.put(A, b"content")
    assert cache.get(A) is None and not list(tmp_path.iterdir()) and cache.why_unused() is not None


def test_a_folder_that_cannot_be_made_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = DiskCache(tmp_path / "file" / "folder", 1000)
    cache.put(A, b"content")
    assert cache.get(A) is None


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, open_file = DiskCache(tmp_path, 1000), os.open
    monkeypatch.setattr(
        os, "open", lambda path, *rest: open_file("/dev/full", os.O_WRONLY) if len(rest) == 2 else open_file(path, *rest)
    )
    cache.put(A, b"content")
    monkeypatch.undo()
    assert cache.get(A) is None and not list(tmp_path.iterdir())


def test_checked_and_cleared(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 1 << 20)
    for name in (A, B):
        cache.put(name, b"content")
    (tmp_path / B).write_bytes(b"damaged")
    (tmp_path / f".{A}.0123abcd").write_bytes(b"of a process that has died")
    (tmp_path / "somebody's").write_bytes(b"")
    assert cache.remove_damaged() == (1, 2)
    assert [(file.kind, file.size) for file in cache.files()] == [("test", 39)]
    assert cache.clear() == 1 and [path.name for path in tmp_path.iterdir()] == ["somebody's"]


def test_a_folder_that_may_only_be_read_is_as_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise PermissionError(13, "read-only")

    cache, open_file = DiskCache(tmp_path, 1000), os.open
    cache.put(A, b"content")
    monkeypatch.setattr(os, "utime", refuse)
    monkeypatch.setattr(os, "open", lambda path, flags, *mode: refuse() if flags & os.O_CREAT else open_file(path, flags, *mode))
    cache.put(B, b"content")
    assert cache.get(A) == b"content" and cache.get(B) is None


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    cache = DiskCache(tmp_path, 1000)
    monkeypatch.setattr(command, "disk_cache", lambda: cache)
    cache.put(A, b"content")
    for action in ("show", "check", "clear"):
        assert command.main(["cache", action]) == 0
    *show, check, clear = capsys.readouterr().out.splitlines()
    assert str(tmp_path) in show[0] and show[2:] == ["test    1 files, 39 B", "all     1 files, 39 B"]
    assert check.startswith("1 files are whole; 0 were damaged") and clear.startswith("1 files removed")
    assert not list(tmp_path.iterdir())
    tmp_path.chmod(0o777)
    command.main(["cache"])
    assert ("unused  other users own it, or may write there" in capsys.readouterr().out) == (sys.platform != "win32")


def _write_and_read(folder: Path, number: int) -> None:
    cache = DiskCache(folder, 50_000)
    for n in range(100):
        key, data = DiskCache.key("test", [str(n % 7)]), bytes([n % 7]) * 10_000
        cache.put(key, data)
        assert cache.get(key) in (None, data), "half a file"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_processes_that_write_the_same_files_read_whole_ones(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_write_and_read, args=(tmp_path, number)) for number in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert all(not path.name.startswith(".") for path in tmp_path.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other conventions")
def test_the_folder_is_the_one_for_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "relative")
    assert user_cache_folder() is None
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert user_cache_folder() == Path("/caches/jitml")
    for other in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", other)
        assert user_cache_folder() == Path("/home/somebody/.cache/jitml")
