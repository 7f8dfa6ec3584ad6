"""Imports point down the pipeline and never up (docs/architecture.md), and none hides in a function to escape a cycle."""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.every_row

TESTS = Path(__file__).parent
ROOT = TESTS.parent / "src" / "jitml"

# What each part of the package may import; a part may always import itself.
BASE = {
    "errors",
    "config",
    "diagnostics",
    "disk_cache",
    "forks",
    "functions",
    "headroom",
    "imports",
    "interrupts",
    "process",
    "records",
    "typing",
}
ALLOWED = {
    "errors": {"records"},
    "config": {"errors", "records"},
    "diagnostics": {"config", "errors"},
    "disk_cache": {"config", "diagnostics"},
    "forks": set(),
    "functions": {"diagnostics"},
    "headroom": {"errors", "interrupts"},
    "imports": {"forks", "interrupts"},
    "interrupts": {"forks", "records"},
    "process": {"forks", "interrupts"},
    "records": set(),
    "typing": {"dispatch", "outline", "pipeline"},  # classes, for type checkers alone
    "ir": BASE,
    "device": BASE | {"ir"},
    "trace": BASE | {"ir", "device"},
    "dispatch": BASE | {"ir", "device", "trace"},
    "numpy": BASE | {"ir", "device", "trace"},
    "autograd": BASE | {"ir", "device", "trace", "dispatch"},
    "kernels": BASE | {"ir"},
    "fusion": BASE | {"ir", "kernels"},
    "memory": BASE | {"ir", "kernels"},
    "codegen": BASE | {"ir", "device", "kernels", "fusion", "memory"},
    "pipeline": BASE | {"ir", "kernels", "fusion", "memory", "codegen"},
    "verification": BASE | {"ir", "device", "trace", "numpy", "autograd", "dispatch"},
    "sections": BASE | {"ir", "trace", "dispatch"},
    "options": BASE | {"kernels"},
    "outline": {"errors", "records"},
}
# These see all layers.
TOP = {
    "api",
    "jitted",
    "engine",
    "native_entry",
    "program_cache",
    "wiring",
    "control",
    "scalar_functions",
    "report",
    "notebook",
    "demo",
    "__main__",
    "__init__",
}

# The rooms of each package, from the lowest up: a file imports from its own room and from those before it.
ROOMS = {
    "ir": ("", "ops", "analysis", "text", "passes", "execute"),
    "trace": (
        *("rewrite", "record", "speculation", "symbolic", "storage", "values", "lists", "carried", "regions", "host_calls"),
        *("environment", "effects", "hooks/models", "hooks", ""),
    ),
    "numpy": (
        *("support", "ufuncs", "arrays", "reductions", "building", "selection", "linear_algebra", "numerics", "python", ""),
    ),
    "autograd": ("core", "rewrites", "reverse", "batching", "arguments", "rules/batching", "rules", "tape", "api", ""),
    "kernels": ("", "analysis", "text", "verify"),
    "fusion": (
        *(
            "cost",
            "lower",
            "lower/sort",
            "lower/linalg",
            "prepare",
            "complex",
            "grouping",
            "schedule",
            "schedule/primitives",
            "scalar_loops",
            "merge_steps",
            "",
        ),
    ),
    "codegen": (
        *("run", "llvm/schedule", "", "scalar_math", "llvm/ir", "llvm/loops"),
        *("llvm/sorts", "llvm/calls", "llvm", "llvm/runtime"),
        *("cuda", "cuda/schedule", "cuda/emit", "cuda/libraries", "cuda/calls", "cuda/runtime"),
    ),
    "device": ("",),
    "diagnostics": ("",),
    "dispatch": ("",),
    "sections": ("",),
    "memory": ("",),
    "verification": ("",),
    "notebook": ("",),
    "imports": ("",),
    "typing": ("",),
    "demo": ("",),
    "program_cache": ("",),
    "native_entry": ("",),
    "scalar_functions": ("",),
}
_ALONE = {"fusion/cost.py"}  # files that stand as rooms of their own


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def room_of(path: Path) -> str:
    """The room of a file, without the package's name; a room's `__init__` may import all that is in it, and below it."""
    place = path.relative_to(ROOT)
    alone = str(place) in _ALONE
    return "/".join((place.with_suffix("") if alone else place.parent).parts[1:])


@dataclass
class Contents:
    """What a file holds, in the order of its text.

    imports: (module, node, inside a function)
    fills: what a statement or a call puts something into, if it has a name.
    data: names that are bound at the top, but for functions and classes.
    """

    imports: list[tuple[str, ast.stmt, bool]] = field(default_factory=list)
    functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = field(default_factory=list)
    classes: list[ast.ClassDef] = field(default_factory=list)
    fills: list[ast.Name] = field(default_factory=list)
    data: set[str] = field(default_factory=set)


def contents_of(path: Path) -> Contents:
    return _contents()[path]


@cache
def _contents() -> dict[Path, Contents]:
    """Of all files at once: to look for cycles among so many trees takes three times as long as to make them."""
    gc.disable()
    try:
        return {path: _read(path) for path in FILES}
    finally:
        gc.freeze()
        gc.enable()


def _read(path: Path) -> Contents:
    tree, found = ast.parse(path.read_text()), Contents()
    _look_into(tree, found, False)
    found.classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            found.data |= {ast.unparse(x) for x in (node.targets if isinstance(node, ast.Assign) else [node.target])}
    return found


def _look_into(node: ast.AST, found: Contents, is_inside: bool) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            found.imports += [(module, child, is_inside) for module in _modules(child)]
        elif isinstance(child, _FUNCTIONS) and not isinstance(child, ast.Lambda):
            found.functions.append(child)
        if isinstance(child, (ast.Call, ast.stmt, ast.comprehension)):
            found.fills += [filled for filled in changed_in_place(child) if isinstance(filled, ast.Name)]
        _look_into(child, found, is_inside or isinstance(child, _FUNCTIONS))


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _modules(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif node.module and node.module.partition(".")[0] == "jitml":
        for alias in node.names:
            full = f"{node.module}.{alias.name}"
            yield full if file_of(full) else node.module
    elif node.module:
        yield node.module


@cache
def file_of(module: str) -> Path | None:
    """The file of a module of jitml, or of a package."""
    place = ROOT.joinpath(*module.split(".")[1:])
    return next((p for p in (place.with_suffix(".py"), place / "__init__.py") if p.is_file()), None)


FILES = sorted(ROOT.rglob("*.py"))
BENCH = TESTS.parent / "bench"
DATA = (TESTS / "programs" / "corpus", TESTS / "golden")  # tables whose rows are files
PARTS = {part: [path for path in FILES if part_of(path) == part] for part in sorted({part_of(path) for path in FILES})}


@pytest.mark.parametrize("part", sorted(PARTS.keys() - TOP))
def test_imports_point_down(part: str) -> None:
    for path in PARTS[part]:
        for module, node, _ in contents_of(path).imports:
            if not module.startswith("jitml."):
                continue
            target = module.split(".")[1]
            assert target == part or target in ALLOWED[part], f"{path}:{node.lineno}: {part} must not import {target}"


@pytest.mark.parametrize("part", ROOMS)
def test_imports_point_down_between_rooms(part: str) -> None:
    order = ROOMS[part]
    for path in PARTS[part]:
        if path == ROOT / part / "__init__.py":
            continue
        room = room_of(path)
        for module, node, _ in contents_of(path).imports:
            target = file_of(module) if module.startswith(f"jitml.{part}.") else None
            if target is None or (path.name == "__init__.py" and path.parent in target.parents):
                continue
            other = room_of(target)
            assert order.index(other) <= order.index(room), f"{path}:{node.lineno}: {part}/{room} must not import {part}/{other}"


def test_every_room_is_in_the_table() -> None:
    found = {(part_of(p), room_of(p)) for p in FILES if part_of(p) in ROOMS}
    assert found == {(part, room) for part, rooms in ROOMS.items() for room in rooms} | {("fusion", "")}
    assert {part_of(p) for p in FILES if len(p.relative_to(ROOT).parts) > 1} == ROOMS.keys()


def test_rooms_are_small_enough_to_be_looked_over() -> None:
    """In src and in tests alike."""
    for folder in {p.parent for p in FILES} | {p.parent for p in TESTS.rglob("*.py")} - {*DATA}:
        assert len([*folder.glob("*.py")]) <= 20, folder


@pytest.mark.parametrize("part", sorted(PARTS.keys() - TOP))
def test_no_import_hides_a_cycle(part: str) -> None:
    for path in PARTS[part]:
        for module, node, inside in contents_of(path).imports:
            assert not (inside and module.startswith("jitml")), f"{path}:{node.lineno}: {module} imported inside a function"


def test_a_class_name_stands_for_one_thing() -> None:
    names: dict[str, list[Path]] = {}
    for path in FILES:
        for node in contents_of(path).classes:
            names.setdefault(node.name.lstrip("_"), []).append(path)
    assert not {name: places for name, places in names.items() if len(places) > 1}


def test_files_are_short_enough_to_be_read() -> None:
    others = [path for folder in (TESTS, BENCH) for path in folder.rglob("*.py") if not {*DATA} & {*path.parents}]
    assert not [path for path in (*FILES, *others) if len(path.read_text().splitlines()) > 500]


def test_functions_are_short_enough_to_be_read() -> None:
    functions = [(path, node) for path in FILES for node in contents_of(path).functions]
    assert not [f"{path}:{node.lineno}" for path, node in functions if (node.end_lineno or 0) - node.lineno >= 70]


_CHANGES = {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update"}


def changed_in_place(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement or a call puts something into."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
        yield node.func.value
    targets = node.targets if isinstance(node, (ast.Assign, ast.Delete)) else [getattr(node, "target", None)]
    yield from (target.value for target in targets if isinstance(target, (ast.Subscript, ast.Attribute)))


@pytest.mark.parametrize("part", PARTS)
def test_no_file_fills_what_stands_in_another_room(part: str) -> None:
    """What a room needs of those above it they hand over by a call: a list of its own that they fill is an arrow that hides."""
    for path in PARTS[part]:
        found = contents_of(path)
        homes = {
            alias.asname or alias.name: node.module
            for _, node, _ in found.imports
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jitml.")
            for alias in node.names
        }
        for filled in found.fills:
            home = file_of(homes[filled.id]) if homes.get(filled.id) else None
            if home is not None and filled.id in contents_of(home).data:
                assert part_of(home) == part_of(path) and room_of(home) == room_of(path), f"{path}:{filled.lineno}: {home}"


# Who says how loops run: schedules, and the heuristics of back ends. What reads the text of kernels writes what stands there.
SCHEDULERS = ("fusion/schedule", "codegen/llvm/schedule", "codegen/cuda/schedule", "kernels/text")


def kinds_written(path: Path) -> Iterator[tuple[int, str]]:
    """Lines that make a loop of some kind, other than serial ones and those that are of another loop's kind."""
    text = path.read_text()
    if not re.search(r"Loop\(|\bkind=", text):  # to parse all files takes seconds
        return
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) not in ("Loop", "TreeLoop", "replace"):
            continue
        found = [word.value for word in node.keywords if word.arg == "kind"]
        found += node.args[4:5] if ast.unparse(node.func) == "Loop" else []
        for kind in found:
            is_copied = isinstance(kind, ast.Attribute) and kind.attr == "kind"
            if not is_copied and ast.unparse(kind) != "'serial'":
                yield node.lineno, ast.unparse(kind)


def test_schedules_alone_say_how_loops_run() -> None:
    writers = {path: [*kinds_written(path)] for path in FILES}
    in_rooms = {path for path in FILES if str(path.relative_to(ROOT)).startswith(SCHEDULERS)}
    assert any(writers[path] for path in in_rooms)
    assert not {path: lines for path, lines in writers.items() if lines and path not in in_rooms}


def parts_of_a_trace() -> Iterator[tuple[Path, ast.ClassDef]]:
    """`Trace`, what it shares, and what the rooms keep for it."""
    for path in (ROOT / "trace").rglob("*.py"):
        for node in contents_of(path).classes:
            bases = {ast.unparse(base) for base in node.bases}
            is_shared = path.name == "state.py" and "ABC" not in bases
            if bases & {"CallPart", "LocalPart"} or is_shared or node.name == "Trace":
                yield path, node


def test_parts_of_a_trace_have_types() -> None:
    parts = [*parts_of_a_trace()]
    assert len(parts) > 20
    for path, part in parts:
        for node in (*ast.walk(part), *part.bases):
            kind = node.annotation if isinstance(node, ast.AnnAssign) else node if node in part.bases else None
            text = ast.unparse(kind) if kind is not None else ""
            for known in ("np.ndarray[Any, Any]", "np.dtype[Any]", "Callable[..., Any]"):
                text = text.replace(known, "")
            assert not re.search(r"\bAny\b", text), f"{path}:{part.lineno}: a field of {part.name} may be anything"


def test_dataclasses_are_those_of_records() -> None:
    """The standard library writes and compiles all methods of a class at once, which `import jitml` would wait for."""
    wanted = re.compile(r"^from dataclasses import .*\bdataclass\b", re.MULTILINE)
    others = [path for path in FILES if part_of(path) != "records" and wanted.search(path.read_text())]
    assert not others, "take `dataclass` from jitml.records"


def test_late_modules_are_imported_for_type_checkers_and_asked_by_functions_alone() -> None:
    """What stands for a module has its types, and its import points down, too; asked at once it would not be late."""
    count = 0
    for path in FILES:
        text = path.read_text()
        if not re.search(r"\blate\(", text):
            continue
        tree = ast.parse(text)
        named = dict(_late_names(tree))
        count += len(named)
        checked = {
            alias.asname or alias.name: f"{node.module}.{alias.name}"
            for block in tree.body
            if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
            for node in block.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        assert named.items() <= checked.items(), path
        asked = [node.id for node in _at_once(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
        assert not named.keys() & set(asked), path
    assert count > 5


def _late_names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Names, and the modules that they stand for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            pairs = [(node.targets[0], node.value)]
            if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = [*zip(node.targets[0].elts, node.value.elts)]
            for target, value in pairs:
                if isinstance(value, ast.Call) and ast.unparse(value.func) == "late":
                    yield ast.unparse(target), ast.literal_eval(value.args[0])


def _at_once(node: ast.AST) -> Iterator[ast.AST]:
    """What runs while a module is imported; annotations do not."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _FUNCTIONS):
            parts = [*getattr(child, "decorator_list", []), *child.args.defaults, *filter(None, child.args.kw_defaults)]
        elif isinstance(child, (ast.AnnAssign, ast.If)) and getattr(child, "test", None) is None:
            parts = [child.value] if child.value is not None else []  # type: ignore[union-attr]  # an assignment
        else:
            parts = [child]
        for part in parts:
            yield part
            yield from _at_once(part)
