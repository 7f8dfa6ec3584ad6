"""Queues from outside: `q.put(x)` changes a copy of what is in the queue, which is written back when the call has succeeded.

Threads that wait for the queue are woken then. An item is taken, and room is asked for, only where no other thread is in the
user's code, which might do so as well. Who would have to wait is refused.
"""

from __future__ import annotations

import functools
import queue
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

from jitml.trace.carried.outer_lists import OpenList
from jitml.trace.effects import queue_methods as methods
from jitml.trace.effects.attributes import HookProtocol, refuse_write
from jitml.trace.environment.loads import load
from jitml.trace.record.guards import HostConst
from jitml.trace.record.parts import CallPart
from jitml.trace.record.threads import others_run
from jitml.trace.values.boxing import is_traced

QUEUES = (queue.Queue, queue.LifoQueue, queue.PriorityQueue)
_PUT: dict[type, Any] = {queue.PriorityQueue: methods.put_by_priority}
_GET: dict[type, Any] = {queue.LifoQueue: methods.get_last, queue.PriorityQueue: methods.get_by_priority}
_OTHERS: dict[str, Any] = {
    "qsize": methods.size, "empty": methods.is_empty, "full": methods.is_full, "task_done": methods.task_done,
}  # fmt: skip


def of_queue(hooks: HookProtocol, function: Any) -> Callable[..., Any] | None:
    """What is called in the place of a method of a queue from outside; None of all others."""
    q: Any = function.__self__ if type(function) is MethodType else None
    if type(q) not in QUEUES or id(q) not in hooks.trace.outside.places:
        return None
    name = function.__name__
    if name in ("put", "put_nowait"):
        return functools.partial(_put, hooks, q, name == "put")
    if name in ("get", "get_nowait"):
        return functools.partial(_get, hooks, q, name == "get")
    return functools.partial(_other, hooks, q, name) if name in _OTHERS else None


def _put(hooks: HookProtocol, q: Any, waits: bool, item: Any, block: Any = True, timeout: Any = None) -> None:
    if (room := hooks.attr(q, "maxsize")) > 0:
        _require_alone(hooks, q)
        if _may_wait(hooks, q, waits, block, timeout) and _count(hooks, q) >= room:
            refuse_write(hooks.trace, q)
    _note(hooks, q)
    hooks.convert(_PUT.get(type(q), methods.put))(q, item)


def _get(hooks: HookProtocol, q: Any, waits: bool, block: Any = True, timeout: Any = None) -> Any:
    _require_alone(hooks, q)
    if _may_wait(hooks, q, waits, block, timeout) and not _count(hooks, q):
        refuse_write(hooks.trace, q)
    _note(hooks, q)
    return hooks.convert(_GET.get(type(q), methods.get))(q)


def _other(hooks: HookProtocol, q: Any, name: str) -> Any:
    if name == "task_done":
        _note(hooks, q)
    return hooks.convert(_OTHERS[name])(q)


def _may_wait(hooks: HookProtocol, q: Any, waits: bool, block: Any, timeout: Any) -> bool:
    """Whether a method waits until there is something, or room."""
    if not isinstance(block, (bool, int)) or is_traced(block):
        refuse_write(hooks.trace, q)
    if waits and block and isinstance(timeout, (int, float)) and not is_traced(timeout) and timeout < 0:
        raise ValueError("'timeout' must be a non-negative number")
    return waits and bool(block)


def _count(hooks: HookProtocol, q: Any) -> int:
    """How many items there are, which has to be known."""
    items = hooks.attr(q, "queue")
    if type(items) is OpenList:
        items.close()
    count = hooks.conv(len)(items)
    if is_traced(count):
        refuse_write(hooks.trace, q)
    known: int = count
    return known


def _require_alone(hooks: HookProtocol, q: Any) -> None:
    if others_run():
        refuse_write(hooks.trace, q)
    trace = hooks.trace
    trace.host.require(load(trace, _runs_alone, HostConst(None), None, "no other thread in the user's code"), True)


def _runs_alone(_: None, __: None) -> bool:
    return not others_run()


class ChangedQueues(dict[int, object], CallPart):
    """Queues from outside that the function changes, by id."""


def _note(hooks: HookProtocol, q: Any) -> None:
    """Those who wait for a queue are to be woken in the end; one that is shut down raises instead."""
    if hasattr(q, "is_shutdown") and hooks.attr(q, "is_shutdown"):  # Python 3.13
        refuse_write(hooks.trace, q)
    hooks.trace.call[ChangedQueues][id(q)] = q


def wake(q: Any, _: Sequence[Any]) -> None:
    """Tell threads that wait that a queue has changed."""
    with q.mutex:
        q.not_empty.notify_all()
        q.not_full.notify_all()
        if not q.unfinished_tasks:
            q.all_tasks_done.notify_all()
