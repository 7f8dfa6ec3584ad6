"""A later process traces nothing either: what it finds holds, or is not found. Wrong would be worse than slow."""

from __future__ import annotations

import builtins
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from jitml.config import CONFIG
from jitml.disk_cache import DiskCache
from jitml.dispatch.specialize import CallArguments
from jitml.options import Options
from jitml.program_cache import guards, written
from jitml.program_cache.identities import NotKept, of_function
from jitml.program_cache.variants import KeptVariants
from jitml.records import replace
from jitml.trace.trace import trace

SOURCE = """
import math
import numpy as np

TABLE, SCALE, LIMITS, ORDER = np.linspace(-1, 1, 4), 3, {"low": 0.5, "high": 2.5}, [1, 2]

def helper(x, power=2, *, shift=0.25):
    return x**power + shift

def made(c):
    def inner(x):
        return helper(x) + c
    return inner

closed = made(5.0)

def f(x, y=1.5):
    a = np.sin(x) + TABLE[: len(x)] * SCALE
    for n in ORDER:
        a = closed(a) * math.pi * LIMITS["low"] + abs(y) * n
    return a, np.linalg.norm(a), x.shape[0]

def g(x, y):
    x[:] = x * 2 + y
    return x.sum()
"""


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Callable[..., ModuleType]]:
    """Gives the module as each process would have it: new objects of the same file."""
    path = tmp_path / "of_the_user.py"
    path.write_text(SOURCE)

    def loaded(*changes: tuple[str, str]) -> ModuleType:
        text = SOURCE
        for before, after in changes:
            assert before in text
            text = text.replace(before, after)
        spec = spec_from_file_location("of_the_user", path)
        assert spec is not None
        module = sys.modules["of_the_user"] = module_from_spec(spec)
        exec(compile(text, str(path), "exec"), vars(module))
        path.write_text(text)  # which the trace reads
        return module

    yield loaded
    sys.modules.pop("of_the_user", None)


def kept(function: Any, *args: Any) -> guards.KeptGuards:
    """The guard program, written and read again."""
    import pickle

    found: guards.KeptGuards = pickle.loads(written.as_bytes(written.guards_of(function, trace(function, args, {}).host)))
    return found


X = np.linspace(0.0, 1.0, 4)


def test_guards_hold_in_another_process(load: Any) -> None:
    known = kept(load().f, X)
    other = load()
    host = guards.read(known, other.f, (X,))
    assert host is not None and not host.first_failure((X,))
    other.SCALE = 4  # later calls are compared with what is here
    assert "SCALE is 3" in host.first_failure((X,))


CHANGES = {
    "a helper's code": ("x**power + shift", "x**power - shift"),
    "a helper's line": ("def helper", "\n\ndef helper"),
    "a helper's default": ("power=2", "power=3"),
    "a helper's keyword default": ("shift=0.25", "shift=0.5"),
    "a default": ("y=1.5", "y=2.5"),
    "the type of a default": ("y=1.5", "y=1"),
    "what is closed over": ("made(5.0)", "made(6.0)"),
    "its type": ("made(5.0)", "made(5)"),
    "a global": ("1, 4), 3,", "1, 4), 4,"),
    "the type of a global": ("1, 4), 3,", "1, 4), 3.0,"),
    "the shape of a global array": ("-1, 1, 4)", "-1, 1, 5)"),
    "the dtype of a global array": ("-1, 1, 4)", "-1, 1, 4, dtype=np.float32)"),
    "an item": ('"low": 0.5', '"low": 0.75'),
    "a key": ('"high"', '"higher"'),
    "the order of keys": ('"low": 0.5, "high": 2.5', '"high": 2.5, "low": 0.5'),
    "a list": ("[1, 2]", "[1, 2, 3]"),
    "another function": ("closed = made(5.0)", "closed = lambda x: made(5.0)(x)"),
    "an object": ("closed = made(5.0)", "class C:\n    def __call__(self, x): return x\nclosed = C()"),
    "another module by that name": ("import numpy as np", "import numpy as np, numpy.linalg as math_, cmath as math"),
    "a builtin that is a global now": ("TABLE, SCALE", "abs = float\nTABLE, SCALE"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_has_changed_is_seen(load: Any, change: tuple[str, str]) -> None:
    known, other = kept(load().f, X), load(change)
    assert guards.read(known, other.f, (X,)) is None or other.f.__code__.co_code != load().f.__code__.co_code


def test_values_of_arrays_are_read_anew(load: Any) -> None:
    known = kept(load().f, X)
    assert guards.read(known, load(("-1, 1, 4)", "-7, 1, 4)")).f, (X,)) is not None


@pytest.mark.parametrize(
    ("home", "name", "value"),
    [
        *((np, "sin", np.cos), (np, "sin", lambda x: x), (np, "sin", np.frompyfunc(abs, 1, 1)), (np, "sin", np.float64)),
        *((math, "pi", 3.0), (np.linalg, "norm", np.linalg.det), (builtins, "abs", lambda x: x)),
    ],
)
def test_a_library_that_has_been_changed_is_seen(load: Any, monkeypatch: Any, home: Any, name: str, value: Any) -> None:
    known, other = kept(load().f, X), load()
    assert guards.read(known, other.f, (X,)) is not None
    with monkeypatch.context() as patched:
        patched.setattr(home, name, value)
        found = guards.read(known, other.f, (X,))
    assert found is None


def test_a_wrapped_function_of_a_library_is_seen(load: Any, monkeypatch: Any) -> None:
    import functools

    plain = np.linalg.norm

    @functools.wraps(plain)
    def norm(x: Any) -> Any:
        return plain(x) + 1

    known, other = kept(load().f, X), load()
    monkeypatch.setattr(np.linalg, "norm", norm)
    assert guards.read(known, other.f, (X,)) is None


class Own(np.ndarray):
    pass


def read_only(x: Any) -> Any:
    x.flags.writeable = False
    return x


SHARED = np.linspace(0.0, 1.0, 8)
CALLS = {
    "another dtype": lambda: (X.astype("f4"), X),
    "the other byte order": lambda: (X.astype(">f8"), X),
    "another length": lambda: (np.ones(5), np.ones(5)),
    "another rank": lambda: (np.ones((4, 1)), X),
    "strides": lambda: (SHARED[::2], X),
    "not aligned": lambda: (np.zeros(33, "u1")[1:].view("f8"), X),
    "a subclass": lambda: (X.copy().view(Own), X),
    "a list": lambda: ([0.0, 1.0, 2.0, 3.0], X),
    "read-only": lambda: (read_only(X.copy()), X),
    "overlapping": lambda: (SHARED[:4], SHARED[2:6]),
    "one array twice": lambda: (SHARED[:4],) * 2,
    "a number": lambda: (X.copy(), 1.0),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_calls_of_another_kind_are_seen(load: Any, call: Callable[[], tuple[Any, ...]]) -> None:
    known, other = kept(load().g, X.copy(), X.copy()), load()
    assert guards.read(known, other.g, (X.copy(), X.copy())) is not None
    assert guards.read(known, other.g, call()) is None


NOT_KEPT = {
    "a set": "def f(x):\n    for n in {1, 2}:\n        x = x * n\n    return x",
    "a constant set": "def f(x):\n    return x if 'a' in {'a', 'b'} else -x",
    "keys as sets": "D = {'a': 1.0}\ndef f(x):\n    return x * sum(D[k] for k in D.keys() & D.keys())",
    "an object": "class C:\n    k = 2.0\nC0 = C()\ndef f(x):\n    return x * C0.k",
    "a class": "class C:\n    k = 2.0\ndef f(x):\n    return x * C.k",
    "a set outside": "S = frozenset({'a', 'b'})\ndef f(x):\n    return x * len(S)",
    "draws": "def f(x):\n    return x + np.random.rand()",
    "a generator": "R = np.random.default_rng(1)\ndef f(x):\n    return x + R.standard_normal(4)",
    "prints": "def f(x):\n    print(x.sum())\n    return x",
    "an import": "def f(x):\n    import math\n    return x * math.pi",
    "hash": "def f(x):\n    return x * (hash('a') % 2)",
    "a module of Python's": "import sys\ndef f(x):\n    return x * len(sys.version)",
    "the error state": "def f(x):\n    with np.errstate(all='ignore'):\n        return 1 / x",
    "a list that changes": "L = []\ndef f(x):\n    L.append(1.0)\n    return x",
    "a function as a value": "def g(x): return x\nT = {g: 2.0}\ndef f(x):\n    return x * T[g]",
}


@pytest.mark.parametrize("text", NOT_KEPT.values(), ids=NOT_KEPT)
def test_what_may_be_another_elsewhere_is_not_kept(tmp_path: Path, text: str) -> None:
    path = tmp_path / "of_the_user.py"
    path.write_text(f"import numpy as np\n{text}\n")
    space: dict[str, Any] = {"__name__": "of_the_user", "__file__": str(path)}
    exec(compile(path.read_text(), str(path), "exec"), space)
    traced = trace(space["f"], (X.copy(),), {})
    with pytest.raises(NotKept):
        written.guards_of(space["f"], traced.host)
        written.body_of(traced, "")
        raise AssertionError("it is kept")


def test_a_function_is_known_by_all_of_its_code(load: Any) -> None:
    plain = of_function(load().f)
    assert plain == of_function(load().f)
    for change in (("np.sin(x)", "np.cos(x)"), ("import math\n", "import math\n\n"), ("abs(y)", "abs(y + 0)")):
        assert of_function(load(change).f) != plain


@pytest.fixture
def key_for(load: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., str | None]:
    """Where variants of `g` are kept."""
    config = replace(CONFIG, check=False, backend="llvm", dump=frozenset(), tier="auto", cache_dir=str(tmp_path / "cache"))
    monkeypatch.setattr("jitml.program_cache.variants.CONFIG", config)
    monkeypatch.setattr("jitml.program_cache.variants.disk_cache", lambda: DiskCache(tmp_path / "cache", 1 << 20))
    function = load().g

    def key(*args: Any, **options: Any) -> str | None:
        args = args or (X, X)
        return KeptVariants(function, Options(**options), lambda traced: {})._key(CallArguments(len(args), args, {}, args))

    return key


def test_what_each_key_depends_on(key_for: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    options: list[dict[str, Any]] = [
        {},
        {"threads": 1},
        {"fastmath": frozenset({"nnan"})},
        {"host_calls": False},
        {"dynamic": False},
    ]
    others = (X.astype("f4"), np.ones(5), X[::-1], read_only(X.copy()), 1, 2)
    keys = [*(key_for(**option) for option in options), *(key_for(X, other) for other in others)]
    for home, name, value in (
        ("jitml.codegen.llvm.runtime.cached_programs", "made_for", lambda: "another processor"),
        ("jitml.program_cache.variants", "versions", lambda folders: "other files, or another NumPy"),
        ("jitml.program_cache.variants", "_settings", lambda: ["others"]),
        ("optree", "__version__", "0"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(f"{home}.{name}", value)
            keys.append(key_for())
    with monkeypatch.context() as patched:
        patched.setenv("NPY_DISABLE_CPU_FEATURES", "AVX2")
        keys.append(key_for())
    assert None not in keys and len({*keys}) == len(keys)
    assert key_for() == keys[0] and key_for(X.copy(), X) == keys[0] and key_for(X, 1.0) == key_for(X, 2.0)


@pytest.mark.parametrize("x", [[1.0], None, X.view(Own), np.float32(1.0), np.array([None]), np.zeros(2, "f8,i4"), print])
def test_calls_with_other_things_than_arrays_and_numbers_have_no_key(key_for: Any, x: Any) -> None:
    assert key_for(X, x) is None


def test_calls_with_options_that_no_bytes_stand_for_have_no_key(key_for: Any) -> None:
    assert key_for(static_argnums=(1,)) is None and key_for(device="gpu") is None


PROGRAM = """
import sys
import numpy as np
import jitml
from of_the_user import f, g

found = []
for jitted in (jitml.jit(f), jitml.jit(g), jitml.jit(f, fastmath=True), jitml.jit(g, threads=1)):
    for n in range(2):
        args = np.linspace(0.0, 1.0, 4), *([np.arange(4.0)] if jitted.function is g else [])
        result = jitted(*args)
        found += [np.asarray(r).tobytes().hex() for r in (result if isinstance(result, tuple) else (result,))]
        found += [args[0].tobytes().hex()]
    found += [len(jitted.variants), jitted.variants[0].reason, jitted.variants[0].checked]
print([name for name in ("trace.trace", "trace.hooks.convert", "pipeline") if f"jitml.{name}" in sys.modules])
print(found)
print("helper" in str(jitml.explain(jitml.jit(f), np.ones(4))) if len(sys.argv) > 1 else "")
"""
NONE, TRACED, ALL = "[]", "['trace.trace', 'trace.hooks.convert']", "['trace.trace', 'trace.hooks.convert', 'pipeline']"


LIMIT = "resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))"


def run(folder: Path, *arguments: str, text: str = PROGRAM, **variables: str) -> list[str]:
    """What is imported, and what is found."""
    usual = {"JITML_CACHE_DIR": str(folder / "cache"), "JITML_CHECK": "", "JITML_STRICT": "", "JITML_TRIAL": "0"}
    usual["PYTHONDONTWRITEBYTECODE"] = "1"  # a file that is changed twice within a second has the bytes of before
    script = folder / "program.py"
    if text != script.read_text():  # others may be reading it
        script.write_text(text)
    command = [sys.executable, str(script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | usual | variables)
    assert not done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "of_the_user.py").write_text(SOURCE)
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def variants(folder: Path) -> list[Path]:
    return sorted((folder / "cache").glob("variant-*"))


def test_a_second_process_traces_nothing(folder: Path) -> None:
    first = run(folder)
    assert first[0] == ALL and len(variants(folder)) == 4
    assert run(folder) == [NONE, *first[1:]]
    assert run(folder, JITML_VERIFY="always")[0] == NONE
    assert run(folder, JITML_MAX_UNROLL="7")[:2] == [TRACED, first[1]]  # the same programs
    assert run(folder, "explain")[1:] == [first[1], "True"]
    text = (folder / "of_the_user.py").read_text()
    (folder / "of_the_user.py").write_text(text.replace("power=2", "power=3"))
    assert run(folder)[0] == ALL
    (folder / "of_the_user.py").write_text(text)
    assert run(folder) == [NONE, *first[1:]]  # both are kept


def test_damaged_files_and_others_are_none(folder: Path) -> None:
    first = run(folder)
    files = variants(folder)
    contents = [path.read_bytes() for path in files]
    files[0].write_bytes(contents[0][:-4])
    files[1].write_bytes(contents[0])
    files[2].write_bytes(b"")
    files[3].write_bytes(contents[3][:40] + bytes([contents[3][40] ^ 1]) + contents[3][41:])
    again = run(folder)
    assert again[0] != NONE and again[1:] == first[1:]
    assert len(variants(folder)) == 4
    assert run(folder) == [NONE, *first[1:]]


def test_programs_that_are_gone_are_made_again(folder: Path) -> None:
    first = run(folder)
    for path in (folder / "cache").glob("program-*"):
        path.unlink()
    assert run(folder) == first
    assert run(folder) == [NONE, *first[1:]]


def test_processes_at_once_write_the_same(folder: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(3) as pool:
        found = [*pool.map(lambda _: run(folder)[1], range(3))]
    assert len({*found}) == 1 and len(variants(folder)) == 4
    assert run(folder)[0] == NONE


def test_a_disk_that_is_full(folder: Path) -> None:
    """No file may be longer than half a kilobyte: what cannot be written whole is not there."""
    limited = f"import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n{LIMIT}\n{PROGRAM}"
    first = run(folder, text=limited)
    assert not variants(folder) and run(folder, text=limited) == first
    assert run(folder)[1:] == first[1:]


def test_a_folder_that_nothing_can_be_written_to(folder: Path) -> None:
    (folder / "cache").write_text("no folder")
    first = run(folder)
    assert first[0] == ALL and run(folder) == first
