"""Free lists: memory that is given to whoever next asks for as much, without a call of the driver.

All work is done in the order of one stream, so that what is freed may be written by whatever is asked for later. Calls of a
program ask for the same sizes again and again, and so get the same addresses.

A collector frees in the midst of anything, in any thread: no lock is taken. Each list or dict is changed by one operation of the
interpreter at a time, and a thread that is late finds nothing, or lets a list become one longer than it should be.
"""

from __future__ import annotations

GRAIN = 512  # bytes: sizes are multiples of it, as they are in the driver
_SIZES = 64


class FreeLists:
    """Addresses by size.

    Args:
        most: bytes of one size that are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._sizes: dict[int, int] = {}  # of what is in use, by address
        self._free: dict[int, list[int]] = {}

    def take(self, nbytes: int) -> int:
        """An address that was kept; 0 if there is none."""
        try:
            address = self._free[nbytes].pop()
        except (KeyError, IndexError):
            return 0
        self._sizes[address] = nbytes
        return address

    def add(self, address: int, nbytes: int) -> int:
        """Note what has come from the driver."""
        self._sizes[address] = nbytes
        return address

    def keep(self, address: int) -> bool:
        """Whether what is freed is kept; if not, it is to be given back to the driver (`drop`).

        Raises:
            KeyError: it is not in use.
        """
        nbytes = self._sizes[address]
        known = self._free.get(nbytes)
        if known is None:
            if len(self._free) >= _SIZES:
                return False
            known = self._free.setdefault(nbytes, [])
        if (len(known) + 1) * nbytes > self._most:
            return False
        del self._sizes[address]
        known.append(address)
        return True

    def drop(self, address: int) -> list[int]:
        """What to give back in place of keeping this: it, and all there is where other sizes are in use by now than were."""
        del self._sizes[address]
        return [address, *(self.drop_all() if len(self._free) >= _SIZES else ())]

    def drop_all(self) -> list[int]:
        """Keep nothing; the caller gives these back."""
        dropped: list[int] = []
        for nbytes in list(self._free):
            known = self._free.pop(nbytes)
            while known:
                dropped.append(known.pop())
        return dropped

    @property
    def in_use(self) -> int:
        """Bytes that are not kept: those of arrays and programs."""
        return sum(list(self._sizes.values()))

    @property
    def held(self) -> int:
        """Bytes that are kept."""
        return sum(nbytes * len(known) for nbytes, known in list(self._free.items()))
