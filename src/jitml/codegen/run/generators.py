"""Generator locks: what becomes of generators while a program draws from them?  They are locked, as NumPy locks them.

Should the call be left to the plain function after all, they get the state from before it back.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from jitml.codegen.run.results import has_failed
from jitml.forks import holding
from jitml.ir.run_state import generator_at, keeping_made

_TWISTER_BYTES = 4 * 625  # 624 numbers and the place of the next
_held: Callable[[Any], Any] = holding if sys.version_info >= (3, 14) else lambda lock: lock  # 0.5 us less where it is safe
_KEPT_BYTES = 16  # whether there is one, and the number


class Drawing:
    """Runs a program that draws from generators.

    Args:
        run: the program; a result that is a failure has drawn nothing.
        positions: of the inputs that are generators' addresses.
        locks: whether it never draws through Python, so that the generators can be locked meanwhile.
    """

    def __init__(self, run: Callable[..., Any], positions: Sequence[int], *, locks: bool) -> None:
        self._run, self._positions, self._locks = run, positions, locks

    def __call__(self, *args: Any) -> Any:
        generators = [generator_at(int(args[n])) for n in self._positions]  # arrays, where an argument was no plain one
        return self._run_locked(_locks_of(generators) if self._locks else (), generators, args)

    def _run_locked(self, locks: Sequence[Any], generators: Sequence[Any], args: tuple[Any, ...]) -> Any:
        """Run with all these locks, of which none stays taken, whenever an exception comes."""
        if locks:
            with _held(locks[0]):
                return self._run_locked(locks[1:], generators, args)
        with keeping_made():
            restore = [state_keeper(g) for g in generators]
            result: Any = None
            try:
                result = self._run(*args)
            finally:
                if result is None or has_failed(result):
                    for function in restore:
                        function()
        return result


def _locks_of(generators: Sequence[Any]) -> Sequence[Any]:
    """Each once, in the order of their addresses, so that two programs do not wait for each other."""
    if len(generators) == 1:
        return (_bits(generators[0]).lock,)
    return tuple(dict(sorted((id(lock), lock) for lock in (_bits(g).lock for g in generators))).values())


def _bits(generator: Any) -> Any:
    return generator._bit_generator if isinstance(generator, np.random.RandomState) else generator.bit_generator


def state_keeper(generator: Any) -> Callable[[], None]:
    """What gives a generator the state that it has now.

    That of a Mersenne twister takes NumPy 70 us to tell, so its memory is copied.
    """
    bits, places = _bits(generator), _twister_places()
    is_legacy = isinstance(generator, np.random.RandomState)
    if type(bits) is np.random.MT19937 and places is not None:
        parts = [(bits.ctypes.state_address, _TWISTER_BYTES)]
        parts += [(id(generator) + places, _KEPT_BYTES)] if is_legacy else []
        return partial(_write, [(address, ctypes.string_at(address, size)) for address, size in parts])
    if is_legacy:
        return partial(generator.set_state, generator.get_state(legacy=False))
    return partial(setattr, bits, "state", bits.state)


def _write(parts: Sequence[tuple[int, bytes]]) -> None:
    for address, contents in parts:
        ctypes.memmove(address, contents, len(contents))


@cache
def _twister_places() -> int | None:
    """Where a RandomState keeps the second of two normal numbers, if a twister's memory is what it has been so far."""
    bits = np.random.MT19937(1)
    state: Any = bits.state["state"]
    words = np.frombuffer(ctypes.string_at(bits.ctypes.state_address, _TWISTER_BYTES), np.uint32)
    return kept_normal() if np.array_equal(words, [*state["key"], state["pos"]]) else None


@cache
def generator_places() -> dict[bool, int] | None:
    """Where in a generator (RandomState: True) its `bitgen_t` begins, in bytes; None if it is not where it has been so far."""
    places = {}
    for legacy, kind in ((False, np.random.Generator), (True, np.random.RandomState)):
        bits = np.random.PCG64(1)
        generator = kind(bits)
        interface = bits.ctypes
        steps = (interface.next_uint64, interface.next_uint32, interface.next_double)
        wanted = [interface.state_address, *(ctypes.cast(f, ctypes.c_void_p).value for f in steps)]
        words = (ctypes.c_uint64 * (kind.__basicsize__ // 8)).from_address(id(generator))
        found = [n for n in range(len(words) - 3) if list(words[n : n + 4]) == wanted]
        if len(found) != 1:
            return None
        places[legacy] = 8 * found[0]
    return places


@cache
def kept_normal() -> int | None:
    """Where a RandomState keeps `int has_gauss; double gauss`: behind a pointer to its own `bitgen_t`."""
    generator = np.random.RandomState(np.random.PCG64(1))
    places = generator_places()
    if places is None:
        return None
    words = (ctypes.c_uint64 * (np.random.RandomState.__basicsize__ // 8)).from_address(id(generator))
    found = [n for n in range(len(words) - 2) if words[n] == id(generator) + places[True]]
    return 8 * (found[0] + 1) if len(found) == 1 else None
