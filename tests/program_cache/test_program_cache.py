"""A later process takes compiled programs from the disk: no pass, no scheduling, no code generation; the answers are the same."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jitml.config import CONFIG, Config
from jitml.errors import Source
from jitml.ir import ops
from jitml.ir.dims import Sym, as_size
from jitml.ir.encode import NotWritten, encode
from jitml.ir.graph import Graph, GraphBuilder
from jitml.ir.op import recording
from jitml.ir.text.parser import parse
from jitml.ir.types import F64, Aval
from jitml.program_cache import keys
from jitml.trace.trace import trace

PROGRAM = """
import sys
import warnings
import numpy as np
import jitml

def elements(x, y): return np.exp(-x * x) * y + np.sqrt(np.abs(x))
def in_place(x, y): x[1:] += y[:-1]; return np.sort(x)[::-1], x @ y, x.sum()
def stepped(x, y):
    z = np.zeros_like(x)
    for i in range(50): z = z * 0.5 + np.sin(x) * i; z[1:] += y[:-1]
    return z
def picked(x, y): return x[np.int64(y[3])] + TABLE[:50]
def filtered(x, y): return x[x > 20.0].cumsum(), np.unique(y // 2)
def drawn(x, y): return x + RNG.standard_normal(50)
def divided(x, y): return y / x
def product(x, y): return np.outer(x, y) @ np.outer(y, x)
def complexes(x, y): return np.abs(x + 1j * y) * np.exp(1j * x)
def called(x, y): return np.interp(y, x, x) + np.vectorize(lambda a: a * 2)(x)

RNG, TABLE = np.random.default_rng(7), np.linspace(-1, 1, 64)
found = []
for f in (elements, in_place, stepped, picked, filtered, drawn, divided, product, complexes, called):
    jitted = jitml.jit(f)
    for n in (50, 50, 60) if f not in (drawn, picked) else (50, 50):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            results = jitted(np.arange(float(n)), np.linspace(0, 5, n))
        for r in results if isinstance(results, tuple) else (results,):
            found += [np.asarray(r).tobytes().hex(), r.dtype is np.dtype(r.dtype.str)]
        found += [str(w.message) for w in heard]
try:
    picked = jitml.jit(picked)
    picked(np.arange(50.0), np.full(50, 70.0))
except IndexError as error:
    found.append(str(error))
print(sorted({"jitml.pipeline", "jitml.fusion.fuse", "jitml.memory.plan", "jitml.codegen.llvm.module"} & set(sys.modules)))
print(found)
"""
COMPILED = "['jitml.codegen.llvm.module', 'jitml.fusion.fuse', 'jitml.memory.plan', 'jitml.pipeline']"


def run(script: Path, folder: Path, **variables: str) -> tuple[str, str]:
    """What of the compiler a process has imported, and what it has found."""
    usual = {"JITML_CACHE_DIR": str(folder), "JITML_CHECK": "", "JITML_STRICT": "", "JITML_TRIAL": "0", "JITML_VERIFY": "never"}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, env=os.environ | usual | variables
    )
    assert not done.stderr
    imported, found = done.stdout.splitlines()
    return imported, found


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.replace(", called)", ")"))
    return path


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fewer programs."""
    path = tmp_path_factory.mktemp("short") / "program.py"
    path.write_text(re.sub(r"for f in \(.*\):", "for f in (elements, in_place):", PROGRAM))
    return path


@pytest.fixture(scope="module")
def made(short: Path) -> tuple[Path, tuple[str, str]]:
    """The folder that a first process has filled, to be copied, and what it has told."""
    folder = short.with_name("cache")
    return folder, run(short, folder)


def programs(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name.startswith("program-"))


def test_a_second_process_compiles_nothing(script: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    imported, found = run(script, folder)
    assert imported == COMPILED and len(programs(folder)) >= 10
    os.utime(script)  # the file's time is nothing to it
    assert run(script, folder) == ("[]", found)
    assert run(script, folder, JITML_CACHE_BYTES="0") == (COMPILED, found)


def test_the_plain_answers_are_the_same(script: Path, tmp_path: Path) -> None:
    """With verification, which compares each with NumPy's, in the first process and in the second."""
    for _ in range(2):
        run(script, tmp_path / "cache", JITML_VERIFY="always")


@pytest.mark.parametrize("kind", ["program", "object"])
def test_what_is_damaged_or_gone_is_made_again(kind: str, short: Path, made: Any, tmp_path: Path) -> None:
    """A third of the files is cut, a third gone, and a third another's."""
    first, folder = made[1], Path(shutil.copytree(made[0], tmp_path / "cache"))
    files = sorted(path for path in folder.iterdir() if path.name.startswith(kind))
    assert len(files) >= 3
    contents = [path.read_bytes() for path in files]
    for n, path in enumerate(files):
        if n % 3 == 0:
            path.write_bytes(contents[n][:-8])
        elif n % 3 == 1:
            path.unlink()
        else:
            path.write_bytes(contents[n - 1])
    assert run(short, folder) == first
    assert run(short, folder) == ("[]", first[1])
    assert {path.name for path in files} <= {path.name for path in folder.iterdir()}


def test_what_calls_python_is_not_kept(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.replace("for f in (elements, ", "for f in (called,) or (elements, "))
    first = run(script, tmp_path / "cache")
    assert first[0] == COMPILED and run(script, tmp_path / "cache") == first


def test_two_processes_at_once(short: Path, made: Any, tmp_path: Path) -> None:
    environment = os.environ | {"JITML_CACHE_DIR": str(tmp_path / "cache"), "JITML_CHECK": "", "JITML_STRICT": ""}
    both = [subprocess.Popen([sys.executable, short], stdout=subprocess.PIPE, text=True, env=environment) for _ in range(2)]
    outputs = [process.communicate()[0].splitlines()[1] for process in both]
    assert outputs[0] == outputs[1] == made[1][1]
    assert run(short, tmp_path / "cache") == ("[]", made[1][1])


# ------------------------------------------------------------------------------------------------------------------- keys


def graph_of(function: Callable[..., Any], *args: Any) -> Graph:
    return trace(function, args, {}).graph


GIVEN: dict[str, Any] = {"aliases": {}, "strides": {}, "threads": None, "fastmath": frozenset(), "schedules": {}}


@pytest.fixture
def usual(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(keys, "CONFIG", Config())


@pytest.mark.usefixtures("usual")
def test_each_option_counts() -> None:
    graph = parse("graph(a: f64[3]) { b: f64[3] = exp a; return b }")
    options: list[dict[str, Any]] = [
        {},
        {"aliases": {0: 0}},
        {"strides": {0: (2,)}},
        {"threads": 1},
        {"fastmath": frozenset({"nnan"})},
        {"fastmath": frozenset({"nnan", "ninf"})},
    ]
    found = [keys.key_of(graph, **GIVEN | given) for given in options]
    assert None not in found and len(set(found)) == len(found)
    assert found == [keys.key_of(graph, **GIVEN | given) for given in options]
    assert keys.key_of(graph, **GIVEN | {"schedules": {"exp": ()}}) is None


@pytest.mark.parametrize("config", [Config(check=True), Config(dump=frozenset({"llvm"})), Config(backend="interpreter")])
def test_nothing_is_kept_that_is_checked_shown_or_interpreted(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "CONFIG", config)
    assert keys.key_of(parse("graph(a: f64[3]) { return a }"), **GIVEN) is None


@pytest.mark.usefixtures("usual")
def test_versions_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    graph = parse("graph(a: f64[3]) { b: f64[3] = exp a; return b }")
    first = keys.key_of(graph, **GIVEN)
    keys.versions.cache_clear()
    monkeypatch.setattr(np, "__version__", "99")
    second = keys.key_of(graph, **GIVEN)
    keys.versions.cache_clear()
    assert first != second


def test_nothing_is_kept_by_a_compiler_that_has_changed_since_it_was_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "CONFIG", Config())
    keys.versions.cache_clear()
    monkeypatch.setattr(keys, "IMPORTED", max(changed for *_, changed in keys.stamps(keys._HERE, keys.COMPILER)))
    assert keys.key_of(parse("graph(a: f64[3]) { return a }"), **GIVEN) is None
    keys.versions.cache_clear()


def test_each_file_of_the_compiler_counts(tmp_path: Path) -> None:
    """Files that change, come and go below the folders that count, and beside them."""
    for place in ("fusion/lower/a.py", "b.py", "numpy/c.py"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text("x = 1\n")

    def stamps() -> list[Any]:
        return list(keys.stamps(str(tmp_path), keys.COMPILER))

    first = stamps()
    assert len(first) == 2
    (tmp_path / "numpy" / "c.py").write_text("x = 2000\n")
    assert stamps() == first
    (tmp_path / "fusion" / "lower" / "a.py").write_text("x = 2000\n")
    assert stamps() != first
    (tmp_path / "b.py").unlink()
    assert len(stamps()) == 1


def test_the_compiler_is_where_its_files_are_looked_for() -> None:
    program = "import sys, jitml.pipeline, jitml.codegen.llvm.runtime.backend\n"
    program += "print(*{name.split('.')[1] for name, m in sys.modules.items() if name.startswith('jitml.')}, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    root = Path(keys._HERE)
    folders = {name for name in done.stdout.split() if (root / name).is_dir()}
    assert folders - {"diagnostics", "imports"} == set(keys.COMPILER)  # the log, and who imports late, make no program


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("b: f64[3] = exp a", "b: f64[3] = log a"),
        ("b: f64[3] = full {dtype=f64, shape=(3,), value=0.0}", "b: f64[3] = full {dtype=f64, shape=(3,), value=-0.0}"),
        ("b: f64[3] = mul a a", "b: f64[3] = mul a c"),
    ],
)
def test_other_graphs_are_other_bytes(one: str, other: str) -> None:
    texts = [f"graph(a: f64[3], c: f64[3]) {{ {line}; return b }}" for line in (one, other)]
    assert encode(parse(texts[0])) != encode(parse(texts[1]))
    assert [encode(parse(text)) for text in texts] == [encode(parse(text)) for text in texts]


def test_constants_count_bit_by_bit() -> None:
    nan, other = np.array([np.nan, 1.0]), np.array([np.nan, 1.0])
    other.view(np.int64)[0] ^= 1

    def plus(constant: np.ndarray[Any, Any]) -> bytes:
        builder = GraphBuilder()
        with recording(builder):
            x = builder.add_input(Aval(constant.shape, F64))
            return encode(builder.build([ops.add(x, builder.constant(constant))]))

    assert plus(nan) == plus(nan.copy()) != plus(other)
    with pytest.raises(NotWritten):
        plus(np.arange(float(1 << 20)))


def test_places_in_the_users_code_count() -> None:
    def placed(line: int) -> bytes:
        builder = GraphBuilder()
        with recording(builder), builder.at(Source("a.py", line, "f")):
            return encode(builder.build([ops.exp(builder.add_input(Aval((2,), F64)))]))

    assert placed(3) == placed(3) != placed(4)


def test_open_sizes_are_known_by_their_limits() -> None:
    def sized(low: int, high: int) -> bytes:
        builder = GraphBuilder()
        sym = Sym("n", low, high)
        with recording(builder):
            n = builder.add_input(Aval((), np.dtype(np.int64)))
            ops.bind(n, sym=sym)
            return encode(builder.build([ops.full(value=1.0, shape=(as_size(sym) + 1,), dtype=F64)]))

    assert sized(0, 5) == sized(0, 5) != sized(0, 6)


def test_the_same_function_is_the_same_graph() -> None:
    def f(x: Any, n: Any) -> Any:
        for _ in range(n):
            x = np.where(x > 0, x * 0.5, -x)
        return x.sum(), x[x > 0.1]

    assert encode(graph_of(f, np.ones(5), 40)) == encode(graph_of(f, np.ones(5), 40))
    assert encode(graph_of(f, np.ones(5), 40)) != encode(graph_of(f, np.ones(6), 40))


def test_what_is_of_this_process_has_no_bytes() -> None:
    with pytest.raises(NotWritten):
        encode(graph_of(lambda x: np.interp(x, x, x) + np.vectorize(lambda a: 2 * a)(x), np.ones(5)))


def test_this_suite_checks_each_stage() -> None:
    assert CONFIG.check  # so that none of the other tests is about programs of an earlier run
