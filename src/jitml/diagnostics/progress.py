"""Progress: a compilation that takes longer than a second says so, on a terminal or in a notebook, and leaves nothing behind.

Nothing is shown where stderr is a file or a pipe, where `JITML_LOG` tells of compilations anyway, and with `JITML_PROGRESS=0`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Protocol

from jitml.config import CONFIG
from jitml.diagnostics.log import described

DELAY = 1.0  # seconds that a compilation takes before it is shown
_PERIOD = 0.5  # seconds between two looks
_showing = threading.Lock()  # one at a time


class Display(Protocol):
    """Where progress is shown."""

    def show(self, text: str) -> None: ...
    def clear(self) -> None: ...


class Terminal:
    """The last line of a terminal."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._width = stream, 0

    def show(self, text: str) -> None:
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = len(text)

    def clear(self) -> None:
        self.show("")
        self._stream.write("\r")
        self._stream.flush()


class NotebookBar:
    """A bar below a cell. Nobody knows how long it takes: it moves, and the seconds stand beside it."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display, self._handle = display, None

    def show(self, text: str) -> None:
        from html import escape  # few need it

        self._put({"text/html": f"<progress></progress> <code>{escape(text)}</code>", "text/plain": text})

    def clear(self) -> None:
        self._put({"text/html": "", "text/plain": ""})

    def _put(self, data: dict[str, str]) -> None:
        if self._handle is None:
            self._handle = self._display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)


def display() -> Display | None:
    """Where progress is to be shown; None for nowhere."""
    if not CONFIG.progress or CONFIG.log:
        return None
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None and hasattr(shell, "kernel"):
        return NotebookBar(sys.modules["IPython"].display.display)
    stream = sys.stderr
    return Terminal(stream) if stream is not None and stream.isatty() else None


@contextmanager
def in_sight(function: Callable[..., Any]) -> Iterator[None]:
    """Inside the block a function is compiled."""
    if (shown := display()) is None:
        yield
        return
    over = threading.Event()
    watch = threading.Thread(target=_show_while_compiling, args=(function, shown, over), name="jitml-progress", daemon=True)
    watch.start()
    try:
        yield
    finally:
        over.set()
        watch.join()


def _show_while_compiling(function: Callable[..., Any], shown: Display, over: threading.Event) -> None:
    began = monotonic()
    if over.wait(DELAY) or not _showing.acquire(blocking=False):
        return
    try:
        name = described(function)
        while True:
            shown.show(f"jitml: compiling {name}, {monotonic() - began:.0f} s")
            if over.wait(_PERIOD):
                break
        shown.clear()
    finally:
        _showing.release()


__all__ = ["Display", "NotebookBar", "Terminal", "display", "in_sight"]
