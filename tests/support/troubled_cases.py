"""Cases that go wrong in each way, for the test of what supervises them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from gpu.failures import Skipped, require_same


def cases(setting: Any) -> Iterator[tuple[str, Callable[[], Mapping[str, Any] | None]]]:
    yield "a figure", lambda: {"figures": {"seconds": 1.5}}
    yield "wrong", lambda: require_same([[1.0, 2.0, 4.0]], [[1.0, 2.0, 3.0]])
    yield "killed", lambda: os.kill(os.getpid(), signal.SIGKILL)
    yield "not here", absent
    yield "for ever", partial(time.sleep, 1000)
    yield "an exit", lambda: os._exit(3)
    yield "well", lambda: None
    for n in range(1000):
        yield f"long {n}", partial(time.sleep, 0.5)


def absent() -> None:
    raise Skipped("there is none")
