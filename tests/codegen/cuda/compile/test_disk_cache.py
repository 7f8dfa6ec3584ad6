"""What is kept on disk: whole or not at all, whoever writes at the same time, and no more than the limit."""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path

import pytest

from jitml.codegen.cuda.disk_cache import DiskCache, user_cache_folder


def test_what_is_put_is_got(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "deep" / "folder", 1 << 20)
    assert cache.get("a") is None
    for data in (b"", b"first", b"second"):
        cache.put("a", data)
        assert DiskCache(cache.folder, 1).get("a") == data
    assert [path.name for path in (tmp_path / "deep" / "folder").iterdir()] == ["a"]


@pytest.mark.parametrize(
    "damage", [lambda whole: whole[:-1], lambda whole: whole[:3], lambda whole: b"", lambda whole: whole[::-1]]
)
def test_a_damaged_file_counts_as_not_there(damage: object, tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 1 << 20)
    cache.put("a", b"content")
    path = tmp_path / "a"
    assert callable(damage)
    path.write_bytes(damage(path.read_bytes()))
    assert cache.get("a") is None
    cache.put("a", b"content")
    assert cache.get("a") == b"content"


def test_what_has_not_been_used_longest_goes_first(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 1000)
    for n, name in enumerate("abcd"):
        cache.put(name, bytes(200))
        os.utime(tmp_path / name, (n, n))
    assert cache.get("a") is not None
    cache.put("e", bytes(200))
    assert {path.name for path in tmp_path.iterdir()} == {"a", "d", "e"}
    cache.put("large", bytes(2000))
    assert cache.get("large") is None and cache.get("e") is not None


@pytest.mark.parametrize("folder", [None, "nowhere"])
def test_nothing_is_kept_without_a_folder_or_with_no_room(folder: str | None, tmp_path: Path) -> None:
    cache = DiskCache(folder and tmp_path / folder, 0 if folder else 1000)
    cache.put("a", b"content")
    assert cache.get("a") is None and not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = DiskCache(tmp_path / "file" / "folder", 1000)
    cache.put("a", b"content")
    assert cache.get("a") is None


def _write_and_read(folder: Path, number: int) -> None:
    cache = DiskCache(folder, 50_000)
    for n in range(100):
        key, data = f"k{n % 7}", bytes([n % 7]) * 10_000
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
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert user_cache_folder() == Path("/caches/jitml")
    for other in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", other)
        assert user_cache_folder() == Path("/home/somebody/.cache/jitml")
