"""Staging buffers: copies between NumPy's arrays and a GPU's memory through memory that the driver has pinned.

From pinned memory the GPU copies by itself while the host goes on; and when a piece is in it, the caller's array may change.
Where a copy is longer than one piece, the GPU copies one while the host copies another; several threads share a piece, since one
does not copy as fast as the GPU.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from jitml.codegen.cuda.runtime.driver import Calls

Array = np.ndarray[Any, Any]

PIECE = 8 << 20  # bytes
_SHARE = 1 << 20  # bytes that are worth a thread
_THREADS = min(4, os.cpu_count() or 1)
_ALIGNMENT = 64


class _Piece:
    """Pinned memory, filled from its start on; and an event that has come when the GPU no longer needs it."""

    def __init__(self, calls: Calls) -> None:
        driver = calls.driver
        self._calls = calls
        self.address = int(calls(driver.cuMemHostAlloc, PIECE, 0))
        self.bytes = np.ctypeslib.as_array((ctypes.c_uint8 * PIECE).from_address(self.address))
        self._event = calls(driver.cuEventCreate, driver.CUevent_flags.CU_EVENT_DISABLE_TIMING.value)
        self.used, self._is_recorded = 0, False

    def close(self, stream: Any) -> None:
        """What is asked for from now on does not touch what is in it."""
        self._calls(self._calls.driver.cuEventRecord, self._event, stream)
        self._is_recorded = True

    def wait(self) -> None:
        """Until the GPU has done what was asked for before `close`."""
        if self._is_recorded:
            self._calls(self._calls.driver.cuEventSynchronize, self._event)
        self.used, self._is_recorded = 0, False

    def free(self) -> None:
        self._calls(self._calls.driver.cuEventDestroy, self._event)
        self._calls(self._calls.driver.cuMemFreeHost, self.address)


class Staging:
    """Copies in and out, in the order of a stream. One thread at a time uses it.

    Args:
        pieces: how many for copies in; two more are for those out.
    """

    def __init__(self, calls: Calls, stream: Any, pieces: int = 4) -> None:
        self._calls, self._stream, self._most = calls, stream, pieces
        self._entering: list[_Piece] = []  # the last one is being filled; the first is the next to be used again
        self._leaving: list[_Piece] = []

    def copy_in(self, address: int, host: Array) -> None:
        """
        Args:
            host: C-contiguous.
        """
        contents = _bytes_of(host)
        start = 0
        while start < contents.size:
            piece = self._piece_with_room()
            taken = min(contents.size - start, PIECE - piece.used)
            _copy(piece.bytes[piece.used : piece.used + taken], contents[start : start + taken])
            self._calls(self._calls.driver.cuMemcpyHtoDAsync, address + start, piece.address + piece.used, taken, self._stream)
            piece.used += -(-taken // _ALIGNMENT) * _ALIGNMENT
            start += taken

    def copy_out(self, pairs: Sequence[tuple[Array, int]]) -> None:
        """Fill arrays, and wait until they are."""
        if not self._leaving:
            self._leaving = [_Piece(self._calls), _Piece(self._calls)]
        under_way: list[tuple[_Piece, list[tuple[Array, int]]]] = []
        for n, batch in enumerate(_batches(pairs)):
            piece = self._leaving[n % 2]
            for part, address, place in batch:
                self._calls(self._calls.driver.cuMemcpyDtoHAsync, piece.address + place, address, part.size, self._stream)
            piece.close(self._stream)
            under_way.append((piece, [(part, place) for part, _, place in batch]))
            if len(under_way) == 2:
                _fill(*under_way.pop(0))
        for piece, parts in under_way:
            _fill(piece, parts)

    def free(self) -> None:
        for piece in (*self._entering, *self._leaving):
            piece.free()
        self._entering, self._leaving = [], []

    def _piece_with_room(self) -> _Piece:
        if self._entering and self._entering[-1].used < PIECE:
            return self._entering[-1]
        if self._entering:
            self._entering[-1].close(self._stream)
        if len(self._entering) < self._most:
            self._entering.append(_Piece(self._calls))
        else:
            self._entering.append(self._entering.pop(0))
            self._entering[-1].wait()
        return self._entering[-1]


def _fill(piece: _Piece, parts: list[tuple[Array, int]]) -> None:
    piece.wait()
    for part, place in parts:
        _copy(part, piece.bytes[place : place + part.size])


def _copy(target: Array, source: Array) -> None:
    """Copy bytes, by several threads if there are many: NumPy lets go of the interpreter's lock meanwhile."""
    shares = min(_THREADS, target.size // _SHARE)
    if shares < 2:
        np.copyto(target, source)
        return
    ends = [target.size * n // shares for n in range(shares + 1)]
    parts = [slice(start, end) for start, end in pairwise(ends)]
    under_way = [_threads().submit(np.copyto, target[part], source[part]) for part in parts[1:]]
    try:
        np.copyto(target[parts[0]], source[parts[0]])
    finally:
        wait(under_way)  # whatever happens: nobody writes to memory that is used again


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS - 1, "jitml-copies")


def _batches(pairs: Sequence[tuple[Array, int]]) -> Iterator[list[tuple[Array, int, int]]]:
    """Parts of arrays as bytes, their addresses, and their places in a piece; each list fits into one."""
    batch: list[tuple[Array, int, int]] = []
    place = 0
    for host, address in pairs:
        contents, start = _bytes_of(host), 0
        while start < contents.size:
            taken = min(contents.size - start, PIECE - place)
            batch.append((contents[start : start + taken], address + start, place))
            start, place = start + taken, place + -(-taken // _ALIGNMENT) * _ALIGNMENT
            if place >= PIECE:
                yield batch
                batch, place = [], 0
    if batch:
        yield batch


def _bytes_of(host: Array) -> Array:
    """The memory of a C-contiguous array."""
    return host.reshape(-1).view(np.uint8)
