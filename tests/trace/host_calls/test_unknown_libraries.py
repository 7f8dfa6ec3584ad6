"""Objects of libraries that nobody has heard of: a function reads what they hold in its call, or is refused."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import UnsupportedError

pytestmark = [pytest.mark.loose, pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")]

X = np.ones(3)
SOURCE = '''
import array
import functools
import queue
import numpy as np

CONFIG = {"scale": 2.0}
LEVEL = 2
NAMES = ["a", "b"]

class Column:
    __slots__ = ("values", "name")

    def __init__(self, values, name=""):
        self.values, self.name = np.array(values, float), name

    def mean(self):
        return self.values.mean()

    def raw(self):
        return self.values[:2]

    def __array__(self, dtype=None, copy=None):
        return self.values

    def __getitem__(self, n):
        return self.values[n]

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return iter(self.values.tolist())

    def __matmul__(self, other):
        return self.values @ other

    def __contains__(self, x):
        return x in self.values

class Frame:
    def __init__(self, **columns):
        self._columns = {name: Column(values, name) for name, values in columns.items()}
        self.factor, self.label, self.seen, self.notes = 1.0, "a", 0, []

    def __getattr__(self, name):
        try:
            return vars(self)["_columns"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __getitem__(self, name):
        return self._columns[name]

    def __len__(self):
        return len(self._columns["a"])

    @property
    def shape(self):
        return len(self), len(self._columns)

    def __call__(self, x):
        return x * self.factor

    def doubled(self):
        return Frame(**{name: 2 * column.values for name, column in self._columns.items()})

    def kept(self):
        return self.notes

    def noted(self):
        return len(self.notes)

    def step(self):
        self.seen += 1
        return self.seen

    def put(self, value):
        self._columns["a"].values[0] = value
        self.factor, self.label = value, "b"

class Deep(Frame):
    pass

class Hidden(queue.SimpleQueue):
    """What is written in C holds what it holds."""

DEFAULT = Frame(a=[1.0, 2.0, 3.0])

def made(value):
    frame = Frame(a=[value, 2.0, 3.0])
    frame.factor = value
    return frame

def scale(times=1):
    return CONFIG["scale"] * times

def level():
    return LEVEL

def current():
    return DEFAULT

def count():
    global LEVEL
    LEVEL += 1
    return float(LEVEL)

def log(text):
    NAMES.append(text)

def total(frame):
    return frame.a.values.sum()

@functools.lru_cache
def weights(n):
    return np.zeros(n), np.ones(2)

def halves():
    m = np.arange(6.0)
    return m[:4], m[2:]

COUNTS = array.array("d", [0.0])

def bump(x):
    COUNTS[0] += 1
    return x * COUNTS[0]

RNG = np.random.default_rng(0)
KEPT = {}

class Settings:
    calls = 0

SETTINGS = Settings()

def drawn(x):
    return x * RNG.normal()

def counted(x):
    SETTINGS.calls += 1
    return x * SETTINGS.calls

def noted(x):
    NAMES.append("x")
    return x + len(NAMES)

def told(v):
    NAMES.append("v")
    return 1.0

def made_counter():
    n = 0
    def step(x):
        nonlocal n
        n += 1
        return x * n
    return step

step = made_counter()

def kept(x):
    if "ones" not in KEPT:
        KEPT["ones"] = np.ones(3)
    return x + KEPT["ones"]
'''


@pytest.fixture(scope="module")
def madeup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("env") / "site-packages"
    folder.mkdir()
    Path(folder, "madeup.py").write_text(SOURCE)
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("madeup")
    finally:
        sys.path.remove(str(folder))
        del sys.modules["madeup"]


def gone_through(f: Any, x: Any) -> Any:
    for v in f.a:
        x = x + v
    return x


def in_a_loop(f: Any, x: Any) -> Any:
    for i in range(3):
        x = x * f.a[0] + i
    return f(x)


def in_a_branch(f: Any, x: Any) -> Any:
    return f(x) if x.sum() > 1 else x


READS: dict[str, Callable[[Any, Any], Any]] = {
    "an array in an attribute": lambda f, x: x + f.a.values,
    "an item": lambda f, x: x + f["a"].values,
    "a number": lambda f, x: x * f.a[0],
    "a float of its own": lambda f, x: x * f.factor,
    "a text": lambda f, x: x * (2 if f.label == "a" else 3),
    "a method": lambda f, x: x * f.a.mean(),
    "as an array": lambda f, x: x + np.asarray(f.a),
    "by a function of NumPy's": lambda f, x: x * np.sum(f.a),
    "an operator": lambda f, x: x * (f.a @ x),
    "called": lambda f, x: f(x),
    "its length": lambda f, x: np.zeros(len(f)) + f.a[0],
    "its shape": lambda f, x: np.zeros(f.shape[0]) + f.a[0],
    "what it makes": lambda f, x: x + f.doubled().a.values,
    "whether it is there": lambda f, x: x if f and f is not None else -x,
    "in": lambda f, x: x * (7.0 in f.a),
    "gone through": gone_through,
    "a sum": lambda f, x: x * sum(f.a),
    "unpacked": lambda f, x: x * (lambda a, b, c: a)(*f.a),
    "its largest": lambda f, x: x * max(f.a),
    "in a loop": in_a_loop,
    "in a branch": in_a_branch,
    "by another": lambda f, x: x * getattr(f, "a").mean(),  # noqa: B009
    "by a library's function": lambda f, x: x * sys.modules["madeup"].total(f),
    "by its class": lambda f, x: f(x) if isinstance(f, sys.modules["madeup"].Frame) else x,
}


LOOKED_UP = ("by a library's function", "by its class")  # in sys.modules, which is left to Python


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.loose] * (name in LOOKED_UP)) for name in READS])
def test_what_it_holds_in_a_call_is_read(name: str, madeup: ModuleType) -> None:
    read, module = READS[name], madeup
    frame = module.made(1.0)
    holder, items, table = SimpleNamespace(frame=frame), [frame], {"f": frame}
    programs: list[Callable[[Any], Any]] = [
        lambda x: read(frame, x),
        lambda x: read(holder.frame, x),
        lambda x: read(items[0], x),
        lambda x: read(table["f"], x),
        lambda x, f=frame: read(f, x),
    ]
    compiled = [*map(jitml.jit, programs)]
    passed = jitml.jit(read)
    for value in (None, None, 7.0, 8.0):
        if value is not None:
            frame.put(value)
        want = read(frame, X)
        for function in compiled:
            np.testing.assert_array_equal(function(X), want)
        np.testing.assert_array_equal(passed(frame, X), want)
        other = module.made((value or 0.0) + 1.0)
        np.testing.assert_array_equal(passed(other, X), read(other, X))


def test_another_class_is_another_program(madeup: ModuleType) -> None:
    compiled = jitml.jit(lambda f, x: x * (2 if type(f).__name__ == "Deep" else 3))
    for cls in (madeup.Frame, madeup.Deep, madeup.Frame):
        np.testing.assert_array_equal(compiled(cls(a=[1.0]), X), X * (2 if cls is madeup.Deep else 3))
    assert len(compiled.variants) == 2


def test_what_a_module_keeps_is_read(madeup: ModuleType) -> None:
    programs: list[Callable[[Any], Any]] = [
        lambda x: x * madeup.CONFIG["scale"],
        lambda x: x * madeup.LEVEL,
        lambda x: x * len(madeup.NAMES),
        lambda x: x * madeup.scale() + madeup.scale(times=3),
        lambda x: np.zeros(madeup.level())[:1] + x + madeup.level(),
        lambda x: x * madeup.current().factor + madeup.DEFAULT.a.values,
        lambda x: madeup.current()(x) + madeup.total(madeup.DEFAULT),
    ]
    compiled = [*map(jitml.jit, programs)]
    for _ in range(2):
        assert all(np.array_equal(f(X), g(X)) for f, g in zip(compiled, programs))
    module: Any = madeup
    module.CONFIG["scale"], module.LEVEL = 7.0, 7
    module.NAMES.append("c")
    module.DEFAULT.put(7.0)
    assert all(np.array_equal(f(X), g(X)) for f, g in zip(compiled, programs))


CHANGES: list[Callable[[Any, Any], Any]] = [
    lambda f, x: x * f.step(),
    lambda f, x: f.put(x[0]) or x,
    lambda f, x: len(str(f)) * x,
    lambda f, x: x * sys.modules["madeup"].count(),
    lambda f, x: sys.modules["madeup"].log("a") or x,
    lambda f, x: x * sys.modules["madeup"].told(1.0),
    lambda f, x: 0 + sys.modules["madeup"].drawn(x),
    lambda f, x: 0 + sys.modules["madeup"].counted(x),
    lambda f, x: 0 + sys.modules["madeup"].noted(x),
    lambda f, x: 0 + sys.modules["madeup"].step(x),
    lambda f, x: 0 + sys.modules["madeup"].bump(x),
]


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_what_it_changes_is_changed_once_in_each_call(number: int, madeup: Any) -> None:
    def state(f: Any) -> str:
        return repr((f.seen, f.a.values, madeup.LEVEL, madeup.NAMES, madeup.SETTINGS.calls, madeup.COUNTS))

    told = []
    for function in (CHANGES[number], jitml.jit(CHANGES[number])):
        madeup.LEVEL, madeup.NAMES[:], madeup.SETTINGS.calls, madeup.COUNTS[0] = 2, ["a", "b"], 0, 0.0
        madeup.RNG, madeup.step = np.random.default_rng(0), madeup.made_counter()
        frame = madeup.made(1.0)
        told.append([(repr(function(frame, X * k)).partition(" at 0x")[0], state(frame)) for k in (1.0, 2.0, 3.0)])
    assert told[0] == told[1]


@pytest.mark.parametrize("ask", [lambda f, x: f.step() * x, lambda f, x: sys.modules["madeup"].total(f) * x])
def test_refused_if_all_is_to_be_compiled(ask: Callable[[Any, Any], Any], madeup: Any) -> None:
    with pytest.raises(UnsupportedError, match=r"f, a madeup\.Frame, is asked for its step|sys.modules is looked into"):
        jitml.jit(ask, strict=True)(madeup.made(1.0), X)


def test_arrays_that_overlap_and_are_new_at_each_call(madeup: ModuleType) -> None:
    def f(x: Any) -> Any:
        a, b = madeup.halves()
        a += 1
        return b * x[0]

    compiled = jitml.jit(f)
    for k in (1.0, 2.0):
        np.testing.assert_array_equal(compiled(X * k), f(X * k))


def test_a_function_that_fills_a_cache_is_called(madeup: ModuleType) -> None:
    compiled = jitml.jit(lambda x: 0 + madeup.kept(x))
    for k in (1.0, 2.0):
        np.testing.assert_array_equal(compiled(X * k), X * k + 1)


@pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")  # Python does it
def test_lists_of_its_own_change_where_it_sees_them(madeup: ModuleType) -> None:
    programs: list[Callable[[Any, Any], Any]] = [
        lambda f, x: f.notes.append(x[0]) or x * f.noted(),
        lambda f, x: x * f.noted() + (f.notes.append(x[0]) or 1),
        lambda f, x: f.kept().append(x[0]) or x * f.noted(),
        lambda f, x: [f.notes.append(v) or f.noted() for v in x],
        lambda f, x: madeup.made(2.0).kept().append(x[0]) or x,
    ]
    for function in programs:
        found = []
        for g in (function, jitml.jit(function, verify="never")):
            frame = madeup.made(1.0)
            found.append(repr(([g(frame, X * k) for k in (1.0, 2.0)], frame.notes)))
        assert found[0] == found[1]


def test_memory_that_an_object_has_given_is_not_read_once_it_has_written_there(madeup: ModuleType) -> None:
    def f(x: Any, last: Any = None) -> Any:
        frame = madeup.made(x[0])
        k = frame.a.raw()
        assert k.flags.writeable
        y = k * 2
        frame.put(5.0)
        return y if last is None else k * last

    np.testing.assert_array_equal(jitml.jit(f)(X), f(X))
    np.testing.assert_array_equal(jitml.jit(f)(X, 2.0), f(X, 2.0))


def test_what_a_cache_keeps_is_written(madeup: ModuleType) -> None:
    def add(x: Any) -> Any:
        kept, _ = madeup.weights(x.size)
        kept += x
        return kept.copy(), madeup.weights(3)[0] * x

    results = []
    for function in (add, jitml.jit(add, verify="never")):
        madeup.weights.cache_clear()
        results.append([function(X * k) for k in (1.0, 2.0, 3.0)])
    np.testing.assert_array_equal(*results)


def test_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": np.arange(3.0), "b": [1, 2, 2]})
    programs: list[Callable[[Any], Any]] = [
        lambda x: x + frame["a"].values,
        lambda x: x + frame.a.to_numpy(),
        lambda x: x + np.asarray(frame["a"]),
        lambda x: x * frame["a"].mean() + len(frame),
        lambda x: x * frame.iloc[0, 0] * frame.loc[0, "a"],
        lambda x: np.zeros(frame.shape[0]) + frame.groupby("b")["a"].sum().values[0],
        lambda x: np.where(frame["a"] > 1, x, 0),
        lambda x: x * sum(v for v in frame["a"]),
        lambda x: (frame["a"] * x).to_numpy(),
    ]
    compiled = [*map(jitml.jit, programs)]
    for value in (0.0, 0.0, 7.0):
        frame.loc[0, "a"] = value
        for f, g in zip(compiled, programs):
            np.testing.assert_array_equal(f(X), g(X))
    passed = jitml.jit(lambda d, x: x * d["a"].mean())
    for k in (1.0, 2.0):
        np.testing.assert_array_equal(passed(frame * k, X), X * (frame["a"] * k).mean())
