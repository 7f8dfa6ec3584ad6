"""Texts of traced values, and what prints, logs or warns: at every call, once, and only if the call succeeds."""

import logging
import pathlib
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import jitml

Array = np.ndarray[Any, Any]


def texts(x: Array, n: int) -> Any:
    r = x.sum()
    parts = [f"{r:.3f}", f"{r!r:>30}", f"{x}", "%d of %5.2f" % (n, r), "{} {k:e}".format(n, k=r), str(r), repr(x)]  # noqa: UP031, UP032
    return parts, ", ".join(str(v) for v in x), "a" + f"{n}" + "b", format(r, ".2e"), f"{x.shape} {{}} {'q':>{n}}"


def test_texts_are_pythons() -> None:
    f = jitml.jit(texts)
    for x, n in ((np.array([1.5, -0.25]), 3), (np.array([np.nan, 1e300]), 7)):
        assert f(x, n) == texts(x, n)


def talks(x: Array, tol: float) -> Array:
    for step in range(20):
        x = x * 0.5
        largest = np.abs(x).max()
        if step % 5 == 0:
            print(f"{step}: {largest:.2e}", x[0], sep=" | ")
        if largest < tol:
            print("done", step, x)
            break
    x[0] = 9.0
    print("%g" % x[0], end="!\n")  # noqa: UP031
    return x


def test_prints_at_every_call(capsys: pytest.CaptureFixture[str]) -> None:
    f = jitml.jit(talks)
    for scale in (1.0, 100.0, 1.0):
        x = np.arange(3.0) * scale
        talks(x, 0.01)
        expected = capsys.readouterr().out
        f(x, 0.01)
        assert capsys.readouterr().out == expected
    assert len(f.variants) == 1 and not f.variants[0].replays


def test_a_call_that_numpy_answers_prints_once(capsys: pytest.CaptureFixture[str]) -> None:
    def guarded(x: Array, i: int) -> Any:
        print("before", x[0])
        y = x[np.array([i])]
        print("after", y[0])
        return y

    f = jitml.jit(guarded)
    f(np.ones(3), 1)
    capsys.readouterr()
    with pytest.raises(IndexError):
        f(np.ones(3), 7)
    assert capsys.readouterr().out == "before 1.0\n"


def test_eager_derivatives_print(capsys: pytest.CaptureFixture[str]) -> None:
    def loss(x: Array) -> Any:
        print("loss", x.sum())
        return (x * x).sum()

    np.testing.assert_array_equal(jitml.grad(loss)(np.arange(3.0)), [0.0, 2.0, 4.0])
    assert capsys.readouterr().out == "loss 3.0\n"
    np.testing.assert_array_equal(jitml.jit(jitml.grad(loss))(np.arange(3.0)), [0.0, 2.0, 4.0])
    assert capsys.readouterr().out == "loss 3.0\n"


def test_an_exception_has_its_text() -> None:
    @jitml.jit
    def f(x: Array) -> Array:
        if x.sum() > 10:
            raise ValueError(f"too much: {x.sum():.1f} in {x}")
        return x

    f(np.ones(2))
    with pytest.raises(ValueError, match=r"too much: 20\.0 in \[10\. 10\.\]"):
        f(np.full(2, 10.0))


def warns(x: Array) -> Array:
    if x[0] > 1:
        warnings.warn(f"large: {x[0]}", RuntimeWarning)  # noqa: B028
    return x * 2


@pytest.mark.loose
def test_warnings_come_from_the_users_line() -> None:
    f = jitml.jit(warns)
    f(np.ones(2))
    for filter in ("always", "error"):
        found: list[Any] = []
        for function in (warns, f):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter(filter)  # type: ignore[arg-type]
                try:
                    function(np.full(2, 3.0))
                except RuntimeWarning as error:
                    found.append(repr(error))
                else:
                    found.append([(str(w.message), w.category, w.filename, w.lineno) for w in caught])
        assert found[0] == found[1] and found[0]


@pytest.mark.skipif(not hasattr(warnings, "deprecated"), reason="of Python 3.13 and later")
@pytest.mark.loose
def test_what_is_deprecated_says_so_at_each_call() -> None:
    deprecated: Any = getattr(warnings, "deprecated", None)

    @deprecated("old")
    def old(x: Array, k: float = 2.0) -> Array:
        return x - k if x[0] > 5 else x * k

    class Model:
        @deprecated("older", category=FutureWarning)
        def step(self, x: Array) -> Array:
            return old(x, k=3.0)

    def function(x: Array) -> Array:
        for _ in range(2):
            x = old(x)
        return Model().step(x) + sum(map(old, [x]))

    def said(f: Any, x: Array) -> Any:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = f(x)
        return result.tolist(), [(str(w.message), w.category, w.filename, w.lineno) for w in caught]

    compiled = jitml.jit(function)
    for x in (np.ones(2), np.ones(2), np.full(2, 9.0)):
        assert said(compiled, x) == said(function, x)


def test_what_python_says_of_a_text_is_not_said_again(tmp_path: pathlib.Path) -> None:
    file, space = tmp_path / "text.py", dict[str, Any]()
    inverted = "~True" if sys.version_info < (3, 14) else "-2"  # later ones say it where it runs
    file.write_text(f"def f(x):\n    return {inverted}, '\\d', x\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(file.read_text(), str(file), "exec"), space)
        said = len(caught)
        assert jitml.jit(space["f"], verify="never")(1.0) == (-2, "\\d", 1.0)
    assert said > 0 and caught[said:] == []


@pytest.mark.loose
def test_logging(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("jitml.test")

    @jitml.jit
    def f(x: Array) -> Array:
        log.warning("sum %.2f of %s", x.sum(), x)
        return x

    for scale in (1.0, 2.0):
        f(np.ones(2) * scale)
    assert [record.getMessage() for record in caplog.records] == ["sum 2.00 of [1. 1.]", "sum 4.00 of [2. 2.]"]


def fails_and_logs(x: Array, log: Any) -> Array:
    log.info("begins")
    [log.info("item %s", v) for v in x]
    try:
        if len(x) > 2:
            raise ValueError("too long")
    except ValueError:
        log.exception("failed at %s", x[0])
        log.error("failed", exc_info=True)
    return x + 1


def warns_for_its_caller(x: Array, log: Any) -> Array:
    def warned(y: Array) -> Array:
        log.warning("old", stacklevel=2)
        return y * 2

    return warned(x) + 1


@pytest.mark.loose
def test_records_of_logging_are_those_of_the_plain_function() -> None:
    log, records = logging.getLogger("jitml.records"), list[str]()
    log.handlers, log.propagate = [logging.Handler()], False
    log.setLevel(logging.INFO)
    layout = logging.Formatter("%(pathname)s:%(lineno)d %(funcName)s %(message)s")
    log.handlers[0].emit = lambda record: records.append(layout.format(record))  # type: ignore[method-assign]
    for f, compiled in ((g, jitml.jit(g)) for g in (fails_and_logs, warns_for_its_caller)):
        for n in (2, 3, 3):
            x = np.arange(n) + 0.5
            found: list[list[str]] = []
            for function in (f, compiled):
                function(x, log)
                found.append([line.replace("<listcomp>", f.__name__) for line in records])
                records.clear()
            assert found[0] == found[1] and found[0]


def test_effects_are_host_calls() -> None:
    f = jitml.jit(talks, host_calls="error")
    with pytest.raises(jitml.UnsupportedError, match="print would be a host call"):
        f(np.ones(3), 0.1)


MEMBERS: list[Any] = [
    lambda x: 3 in x, lambda x: 9 not in x, lambda x: x[0] in (1, 2), lambda x: x[1] not in [5, x[2]], lambda x: x[0] in range(3),
    lambda x: x[0] + 0.5 in range(5), lambda x: x[0] in range(1, 9, 3), lambda x: x[0] in {1, 4},
    lambda x: [i for i in (1, 2) if i in (2, 3)],
    lambda x: sum(1 if v in (1, 3) else 0 for v in x), lambda x: "a" in {"a": x},
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(MEMBERS)))
def test_membership(number: int) -> None:
    f, compiled = MEMBERS[number], jitml.jit(MEMBERS[number])
    for x in (np.array([1, 3, 2]), np.array([4, 9, 9])):
        assert compiled(x) == f(x) and type(compiled(x)) is type(f(x))


def test_sequences_as_indices_and_lists_of_numbers() -> None:
    def f(x: Array, y: Array) -> Any:
        for _ in range(3):
            x = x * 2
            s = x[range(3), y]
        return s, x.tolist(), y.tolist(), list(map(float, x[0])), list(map(int, x[:, 0])), list(filter(None, [0, 1]))

    x, y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 0])
    a, b = f(x, y), jitml.jit(f)(x, y)
    np.testing.assert_array_equal(a[0], b[0])
    assert a[1:] == b[1:]


def test_a_scalar_taken_from_an_array_reaches_a_host_call_as_a_scalar() -> None:
    special = pytest.importorskip("scipy.special")

    def f(x: Array) -> Any:
        y = x + 1
        return special.jv(y[0], y[1])

    compiled = jitml.jit(f)
    assert compiled(np.arange(3.0)) == f(np.arange(3.0))
    assert not compiled.variants[0].replays
