"""Queues of the standard library as what they are made of: a deque or list of items, and numbers. Converted like the user's code.

`queue.Queue` and its like have locks, and wake threads that wait: the call does so when it has succeeded (`queues.py`).
"""

from __future__ import annotations

import heapq
import queue
from typing import Any


def put(q: Any, item: Any) -> None:
    if 0 < q.maxsize <= len(q.queue):
        raise queue.Full
    q.queue.append(item)
    q.unfinished_tasks += 1


def put_by_priority(q: Any, item: Any) -> None:
    if 0 < q.maxsize <= len(q.queue):
        raise queue.Full
    heapq.heappush(q.queue, item)
    q.unfinished_tasks += 1


def get(q: Any) -> Any:
    if not len(q.queue):
        raise queue.Empty
    return q.queue.popleft()


def get_last(q: Any) -> Any:
    if not len(q.queue):
        raise queue.Empty
    return q.queue.pop()


def get_by_priority(q: Any) -> Any:
    if not len(q.queue):
        raise queue.Empty
    return heapq.heappop(q.queue)


def size(q: Any) -> Any:
    return len(q.queue)


def is_empty(q: Any) -> Any:
    return not len(q.queue)


def is_full(q: Any) -> Any:
    return 0 < q.maxsize <= len(q.queue)


def task_done(q: Any) -> None:
    if q.unfinished_tasks <= 0:
        raise ValueError("task_done() called too many times")
    q.unfinished_tasks -= 1
