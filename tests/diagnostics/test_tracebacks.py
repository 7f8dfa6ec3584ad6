"""Tracebacks of errors: the user's frames alone, whoever prints them; `JITML_TRACEBACK=full` shows jitml's, too."""

from __future__ import annotations

import io
import linecache
import logging
import os
import pickle
import random
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitml
from device.device_cases import on_device
from jitml.config import CONFIG
from jitml.diagnostics.tracebacks import entry, shorten
from jitml.errors import CompilerError
from sections.forced_breaks import no_trials, trials
from support.host_device import host_device

pytestmark = pytest.mark.loose

OURS = os.path.dirname(os.path.abspath(jitml.__file__))


@pytest.fixture(autouse=True)
def short() -> Iterator[None]:
    """As users have it."""
    is_full = CONFIG.full_traceback
    object.__setattr__(CONFIG, "full_traceback", False)
    yield
    object.__setattr__(CONFIG, "full_traceback", is_full)


def names(error: BaseException) -> list[str]:
    """The functions of a traceback, without the one that has caught it; those of jitml with a mark."""
    _, *frames = traceback.extract_tb(error.__traceback__)
    return [f"jitml:{frame.name}" if frame.filename.startswith(OURS) else frame.name for frame in frames]


def raised(call: Callable[[], object]) -> BaseException:
    try:
        call()
    except BaseException as error:
        return error
    pytest.fail("nothing was raised")


def clock(x: Any) -> Any:
    return x + time.perf_counter()


def timed(x: Any) -> Any:
    return clock(x)


def misfit(x: Any) -> Any:
    return (x @ np.ones(4)).sum()


def picked(x: Any, i: int) -> Any:
    return (x * 2)[i]


def inverse(x: Any) -> Any:
    return np.linalg.inv(x).sum()


def in_parts(x: Any) -> Any:
    y = np.sin(x) * 2
    y = y + random.random()
    misfit(y)
    return y


def rows(x: Any) -> Iterator[Any]:
    for i in range(9):
        yield picked(x, i)


@jitml.custom_vjp
def own_rule(x: Any) -> Any:
    return misfit(x)


own_rule.defvjp(lambda x: (own_rule(x), None), lambda _, ct: (ct,))
X = np.ones(3)

CALLS: dict[str, tuple[Callable[[], object], list[str]]] = {
    "a strict refusal": (lambda: jitml.jit(timed, strict=True)(X), ["timed", "clock"]),
    "shapes": (lambda: jitml.jit(misfit)(X), ["misfit"]),
    "a check at run time": (lambda: jitml.jit(picked)(X, 3), ["picked"]),
    "LAPACK": (lambda: jitml.jit(inverse)(np.zeros((2, 2))), ["inverse", "inv", "_raise_linalgerror_singular"]),
    "a function in sections": (lambda: jitml.jit(in_parts)(X), ["in_parts", "misfit"]),
    "a generator": (lambda: list(jitml.jit(rows)(X)), ["rows", "picked"]),
    "a function of NumPy": (lambda: jitml.jit(np.dot)(X, np.ones(4)), []),
    "grad of an integer": (lambda: jitml.grad(abs)(3), []),
    "grad": (lambda: jitml.grad(misfit)(X), ["misfit"]),
    "grad, compiled": (lambda: jitml.jit(jitml.grad(misfit))(X), ["misfit"]),
    "value_and_grad": (lambda: jitml.value_and_grad(misfit)(X), ["misfit"]),
    "hessian": (lambda: jitml.hessian(misfit)(X), ["misfit"]),
    "hvp": (lambda: jitml.hvp(misfit, (X,), (X,)), ["misfit"]),
    "vmap": (lambda: jitml.vmap(misfit)(np.ones((2, 3))), ["misfit"]),
    "rows of different lengths": (lambda: jitml.vmap(np.add)(X, np.ones(4)), []),
    "jvp": (lambda: jitml.jvp(misfit, (X,), (X,)), ["misfit"]),
    "tangents": (lambda: jitml.jvp(np.sin, X, X), []),
    "vjp": (lambda: jitml.vjp(misfit, X), ["misfit"]),
    "a cotangent": (lambda: jitml.vjp(np.sin, X)[1](np.ones(4)), []),
    "a tangent": (lambda: jitml.linearize(np.sin, X)[1](np.ones(4)), []),
    "checkpoint": (lambda: jitml.grad(jitml.checkpoint(misfit))(X), ["misfit"]),
    "a rule of one's own": (lambda: own_rule(X), ["own_rule", "misfit"]),
    "its derivative": (lambda: jitml.grad(own_rule)(X), ["<lambda>", "own_rule", "misfit"]),
    "check_grads": (lambda: jitml.check_grads(misfit, (X,)), ["misfit"]),
    "pure_callback": (lambda: jitml.pure_callback(np.sin, X, np.ones(4)), []),
    "an option": (lambda: jitml.jit(misfit, fastmath="no such"), []),
    "an option of Numba": (lambda: jitml.jit(misfit, parallel=True), []),
    "options, then no function": (lambda: jitml.jit(strict=True)(3), []),
    "no such parameter": (lambda: jitml.jit(misfit, static_argnames="y"), []),
    "an array as a static argument": (lambda: jitml.jit(misfit, static_argnames="x")(X), []),
    "argnums": (lambda: jitml.grad(misfit, argnums="x"), []),
    "a schedule": (lambda: jitml.jit(misfit, schedules={"k0": "no such"}), []),
    "a device": (lambda: jitml.asarray(X, device="tpu"), []),
    "lower": (lambda: jitml.jit(misfit).lower(X), ["misfit"]),
    "explain": (lambda: jitml.explain(misfit, X), ["misfit"]),
}


@pytest.mark.parametrize("case", CALLS)
@pytest.mark.parametrize("kept", [trials, no_trials], ids=["rented", "compiled"])
def test_frames_are_the_users(case: str, kept: Callable[[], Any]) -> None:
    call, wanted = CALLS[case]
    with kept():
        assert names(raised(call)) == ["<lambda>", *wanted]
        assert names(raised(call)) == ["<lambda>", *wanted]  # and once more, compiled or remembered


def test_operations_on_device_arrays() -> None:
    with host_device():
        x = on_device(X)
        assert names(raised(lambda: x @ on_device(np.ones(4)))) == ["<lambda>"]
        assert names(raised(lambda: x.reshape(2, 2))) == ["<lambda>", "reshape", "_wrapfunc"]  # of NumPy's


def test_the_lines_are_the_users() -> None:
    error = raised(lambda: jitml.jit(timed, strict=True)(X))
    lines = [frame.line for frame in traceback.extract_tb(error.__traceback__)]
    assert lines[-2:] == ["return clock(x)", "return x + time.perf_counter()"]


def test_full_tracebacks_show_ours() -> None:
    call, _ = CALLS["a strict refusal"]
    object.__setattr__(CONFIG, "full_traceback", True)
    found = names(raised(call))
    assert {"jitml:__call__", "timed", "clock", "jitml:refuse"} <= set(found)


def test_bugs_of_jitml_show_ours() -> None:
    @entry
    def failing() -> None:
        try:
            raise KeyError("inside")
        except KeyError as error:
            raise CompilerError("a stage has failed") from error

    error = raised(failing)
    assert names(error) == ["jitml:call", "failing"]
    assert isinstance(error.__cause__, KeyError)


def chain(error: BaseException | None) -> list[str]:
    found = []
    while error is not None:
        frames = traceback.extract_tb(error.__traceback__)
        assert not [frame for frame in frames if frame.filename.startswith(OURS)]
        found.append(type(error).__name__)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return found


def handled(x: Any) -> Any:
    try:
        return misfit(x)
    except ValueError:
        return {"a": x}["b"]


def renamed(x: Any) -> Any:
    try:
        return misfit(x)
    except ValueError as error:
        raise RuntimeError("does not fit") from error


def hushed(x: Any) -> Any:
    try:
        return misfit(x)
    except ValueError:
        raise RuntimeError("does not fit") from None


@pytest.mark.parametrize("f", [misfit, handled, renamed, hushed])
@pytest.mark.parametrize("transform", [jitml.jit, jitml.grad, jitml.vmap, jitml.hessian])
def test_causes_are_those_of_the_plain_function(transform: Callable[..., Any], f: Callable[..., Any]) -> None:
    wanted = chain(raised(lambda: f(X)))
    with no_trials():
        for _ in range(2):
            error = raised(lambda: transform(f)(np.ones((2, 3)) if transform is jitml.vmap else X))
            assert [name.replace("Shape", "Value") for name in chain(error)] == wanted
            assert (error.__cause__ is not None) == (f is renamed)


def test_what_the_caller_handles_is_the_context() -> None:
    def call() -> None:
        try:
            raise LookupError("first")
        except LookupError:
            jitml.jit(misfit)(X)

    assert chain(raised(call)) == ["ValueError", "LookupError"]


def test_members_of_a_group_are_shortened() -> None:
    def all_of(x: Any) -> Any:
        found = []
        for f in (jitml.grad(misfit), jitml.vmap(misfit)):
            try:
                f(x)
            except ValueError as error:
                found.append(error)
        raise ExceptionGroup("several", found)

    error = raised(lambda: jitml.jit(all_of)(np.ones((2, 3))))
    assert isinstance(error, ExceptionGroup)
    assert [chain(one)[0] for one in error.exceptions] == ["ValueError", "ShapeError"]


def test_in_threads() -> None:
    seen: list[threading.ExceptHookArgs] = []
    hook, threading.excepthook = threading.excepthook, seen.append
    try:
        thread = threading.Thread(target=lambda: jitml.grad(misfit)(X))
        thread.start()
        thread.join()
    finally:
        threading.excepthook = hook
    (args,) = seen
    told = "".join(traceback.format_exception(args.exc_type, args.exc_value, args.exc_traceback))
    assert "in misfit" in told and OURS not in told
    with ThreadPoolExecutor(1) as pool:
        error = pool.submit(jitml.jit(misfit), X).exception()
    assert error is not None and names(error)[-1] == "misfit" and chain(error)[0] == "ValueError"


def test_in_a_log() -> None:
    stream = io.StringIO()
    logger = logging.getLogger("users")
    handler = logging.StreamHandler(stream)
    logger.addHandler(handler)
    try:
        jitml.jit(timed, strict=True)(X)
    except jitml.UnsupportedError:
        logger.exception("failed")
    finally:
        logger.removeHandler(handler)
    told = stream.getvalue()
    assert "in clock" in told and "perf_counter" in told and OURS not in told


def test_in_ipython(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("IPython")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell()
    shell.colors = "NoColor"
    with capture_output() as shown:
        shell.run_cell("import jitml, numpy as np\ndef f(x):\n    return x @ np.ones(4)\njitml.grad(f)(np.ones(3))")
    assert "ValueError" in shown.stdout and "return x @ np.ones(4)" in shown.stdout
    assert OURS not in shown.stdout and "run_or_tape" not in shown.stdout


SCRIPT = """
import numpy as np
import jitml

def loss(x):
    return (x @ np.ones(4)).sum()

def test_loss():
    jitml.grad(loss)(np.ones(3))

if __name__ == "__main__":
    test_loss()
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scripts") / "test_script.py"
    path.write_text(SCRIPT)
    return path


def told_by(*command: str | Path, **variables: str) -> str:
    environment = {**os.environ, "JITML_STRICT": "0", "JITML_TRACEBACK": "", **variables}
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1
    return done.stdout + done.stderr


def test_in_a_script(script: Path) -> None:
    assert "in loss" in told_by(script) and OURS not in told_by(script)
    assert OURS in told_by(script, JITML_TRACEBACK="full")


def test_in_pytest(script: Path) -> None:
    told = told_by("-m", "pytest", "-q", "-p", "no:cacheprovider", script)
    assert "ValueError" in told and "jitml.grad(loss)" in told and OURS not in told and "run_or_tape" not in told


def test_they_pickle_with_what_processes_send_back() -> None:
    error = pickle.loads(pickle.dumps(raised(lambda: jitml.jit(misfit)(X))))
    assert type(error) is ValueError and not vars(error)


def test_an_entry_is_the_function_to_those_who_look() -> None:
    assert jitml.grad.__name__ == "grad" and jitml.grad.__module__ == "jitml.autograd.api.gradients"
    assert pickle.loads(pickle.dumps(jitml.grad)) is jitml.grad
    assert vars(sys.modules["jitml.autograd.api.gradients"]) is jitml.grad.__globals__  # or its doctests would be passed by


def test_frames_of_a_library_that_uses_jitml_are_kept() -> None:
    """They are its users' frames."""
    text = "def library(f, x):\n    return f(x)\n"
    file = os.path.join(os.path.dirname(np.__file__), "no_such_file.py")
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space: dict[str, Any] = {}
    exec(compile(text, file, "exec"), space)
    error = raised(lambda: space["library"](jitml.jit(misfit), X))
    assert names(error) == ["<lambda>", "library", "misfit"]


def test_an_error_without_a_traceback_has_none() -> None:
    error = ValueError("not raised")
    shorten(error)
    assert error.__traceback__ is None


def several_parts(x: Any) -> Any:
    y = (x - 2.0) / 3.0
    scale = 8.0
    z = ((y * 0.5 + 1) * y - 4) * y
    if scale > 3:
        z = z + y * y
    z *= 2
    w = np.sin(scale)
    return w + np.cos(z)  # of objects there is no cosine


CALLED: list[Callable[..., Any]] = []


def again_and_again(x: Any, n: int) -> Any:
    y = x * 2
    if n == 0:
        raise ValueError(f"{y.sum()}")
    return CALLED[0](y, n - 1)


def test_a_function_in_sections_is_one_frame() -> None:
    with no_trials():
        jitted = jitml.jit(several_parts, strict=False)
        jitted(np.arange(3.0))
        for x in (np.arange(3.0).astype(object), np.array(["a"]), None):
            for _ in range(3):
                assert names(raised(lambda: jitted(x))) == names(raised(lambda: several_parts(x)))  # noqa: B023


def test_each_call_of_a_function_that_recurs_is_a_frame() -> None:
    with no_trials():
        jitted = jitml.jit(again_and_again, strict=False)
        CALLED[:] = [jitted]
        for _ in range(3):
            assert names(raised(lambda: jitted(np.arange(3.0).astype(object), 2))) == ["<lambda>", *["again_and_again"] * 3]
