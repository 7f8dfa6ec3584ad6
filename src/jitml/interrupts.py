"""Asynchronous exceptions come between any two steps: Ctrl-C, a signal's handler, one thread's to another.  What do they leave?

Nothing, in three ways. `contained` runs what changes the state of a thread or of the process, and puts it back where an exception
comes out: a `with` alone does not, for the exception may come while its `__enter__` or `__exit__` runs. `uninterrupted` runs what
must not stop half way, in a thread of its own, where none of them arrives. And a statement that restores something by a single
call into C stands first in its `finally`: Python looks for signals after calls, not before.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from contextvars import ContextVar, Token, copy_context
from queue import SimpleQueue
from typing import Any, TypeVar
from weakref import ref

import numpy as np

from jitml.records import dataclass

T = TypeVar("T")

_KEPT: list[tuple[Callable[[], Any], Callable[[Any], object]]] = []
_ABSENT = object()


def preserve(read: Callable[[], Any], write: Callable[[Any], object]) -> None:
    """Have `contained` give back what `read` reads before, by `write`: often, and twice if need be."""
    _KEPT.append((read, write))


def contained(function: Callable[[], T]) -> T:
    """The result of `function`; if it raises, the state of the thread and of the process is as before.

    It runs in a copy of the context, which an exception drops. NumPy's error state is among the variables: it is as before in any
    case, for what has been handled inside may have left it as an `np.errstate` there says.
    """
    before, errors = [read() for read, _ in _KEPT], np.geterr()
    context = copy_context()
    try:
        result = context.run(function)
    except BaseException:
        try:
            _restore(before)
        finally:  # should another exception come meanwhile
            _restore(before)
        raise
    for variable, value in context.items():
        if variable.get(_ABSENT) is not value:
            variable.set(value)
    if np.geterr() != errors:
        np.seterr(**errors)
    return result


def unset(variable: ContextVar[Any], token: Token[Any]) -> None:
    """Reset a variable, unless the context that it was set in is gone: what an exception has left of a block ends late."""
    try:
        variable.reset(token)
    except ValueError:
        return


def codes_of_handlers() -> list[Any]:
    """Code objects of what Python calls for signals."""
    handlers = [signal.getsignal(n) for n in range(1, signal.NSIG)]  # `valid_signals` makes members of an enumeration of all
    calls = [call for h in handlers if callable(h) for call in (h, vars(type(h)).get("__call__"))]  # functions, and objects
    return [getattr(call, "__code__", call) for call in calls]


def is_from_a_handler(error: BaseException) -> bool:
    """Whether a signal's handler has raised it, and no function that has been running."""
    codes = codes_of_handlers()
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def pass_on(error: BaseException) -> None:
    """Raise what a signal's handler has raised: it is for the caller, whatever has been running, and nobody goes on instead."""
    if is_from_a_handler(error):
        raise error


def pass_on_what_it_hides(error: BaseException) -> None:
    """The same of an exception of ours that has been raised while another one was on its way."""
    hidden = error.__context__
    while hidden is not None:
        pass_on(hidden)
        hidden = hidden.__context__


def _restore(before: list[Any]) -> None:
    for (read, write), value in zip(_KEPT, before):
        if read() is not value:
            write(value)


def _set_filters(filters: Any) -> None:
    warnings.filters = filters
    with warnings.catch_warnings():  # tells those who have kept what the filters said
        pass


preserve(lambda: warnings.filters, _set_filters)
preserve(sys.gettrace, sys.settrace)


# --------------------------------------------------------------------------------------------------- threads of our own

_STACK = 16 << 20  # bytes: passes follow nested statements, and a program may have asked for small stacks, for threads of its own


@dataclass(eq=False)
class _Work:
    """What a thread of ours does for the thread that waits for it."""

    owner: int
    is_abandoned: bool = False


class _Alive:
    """What a thread of ours alone holds."""


_work: ContextVar[_Work | None] = ContextVar("jitml_work", default=None)


class Abandoned(BaseException):
    """Who has waited for this work has been interrupted: it ends, and nobody hears of it."""


def uninterrupted(function: Callable[[], T]) -> T:
    """The result of `function`, run in a thread of its own: an exception that comes to this one ends the wait, and not the work.

    The work comes to an end by itself, or where it asks (`leave_if_abandoned`). Where no thread is to be had, as when the process
    ends, this one runs it.
    """
    if is_own_thread():
        return function()
    answers: SimpleQueue[Any] = SimpleQueue()  # (result, exception), or a reference to what has gone with the thread
    alive = _Alive()
    gone = ref(alive, answers.put)
    work, context = _Work(threading.get_ident()), copy_context()

    def run(_: _Alive = alive) -> None:
        answer: tuple[T | None, BaseException | None] = None, RuntimeError("an exception was sent to a thread of jitml's")
        try:
            _work.set(work)
            answer = function(), None
        except BaseException as error:
            answer = None, error
        finally:  # who waits must hear something, whatever comes in between
            answers.put(answer)

    try:
        if not _start_thread(context.run, run):
            return function()
        del alive, run
        if (answer := answers.get()) is gone:  # Python takes a thread that just begins for the one that has started it
            return function()
        result, error = answer
    except BaseException:
        work.is_abandoned = True
        raise
    if error is not None:
        try:
            raise error
        finally:
            del error  # or its traceback would hold it, and so itself
    return result


def _start_thread(function: Callable[..., object], *args: Any) -> bool:
    return has_room_to_start(lambda: _thread.start_new_thread(function, args))


def has_room_to_start(start: Callable[[], object]) -> bool:
    """Call what starts a thread of ours, with a stack that is large enough; False if no thread is to be had."""
    before = threading.stack_size()
    try:
        threading.stack_size(max(before, _STACK))
        start()
    except RuntimeError:  # there is no memory for a stack, no further thread, or the interpreter ends
        return False
    finally:
        threading.stack_size(before)
    return True


def is_own_thread() -> bool:
    """Whether this is a thread that `uninterrupted` has started."""
    return _work.get() is not None


def leave_if_abandoned() -> None:
    """Where long work may end, if nobody waits for it any more.

    Raises:
        Abandoned: nobody does.
    """
    if is_abandoned():
        raise Abandoned


def is_abandoned() -> bool:
    """Whether nobody waits any more for what this thread does."""
    work = _work.get()
    return work is not None and work.is_abandoned


def owner() -> int:
    """The thread for which this one works: itself, or the one that waits for it."""
    work = _work.get()
    return threading.get_ident() if work is None else work.owner
