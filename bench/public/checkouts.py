"""How is a file of a checkout imported, twice in one process: once as it stands, and once with its functions decorated?"""

from __future__ import annotations

import ast
import collections
import collections.abc
import importlib
import importlib.util
import inspect
import json
import linecache
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

STAND_INS = Path(__file__).parent / "stand_ins"
# What programs import to draw, to load data or to be tested: nothing is asked of it.
LEFT_OUT = {
    "matplotlib", "seaborn", "mpl_toolkits", "cvxopt", "terminaltables", "gym", "cv2", "httpx", "imageio", "xgboost", "requests",
    "IPython", "plotly", "skimage", "statsmodels", "cvxpy", "pandas", "sklearn", "PIL", "pytest", "numba", "moviepy", "yfinance",
    "torch", "tensorflow", "keras", "theano", "networkx", "autograd", "sympy", "h5py", "nltk", "patsy", "bokeh", "mnist", "nose",
    "typing_extensions", "nnfs", "numdifftools", "librosa", "soundfile", "six",
}  # fmt: skip


class Anything(types.ModuleType):
    """A module, function, class or object that takes everything and does nothing."""

    __path__: list[str] = []  # noqa: RUF012  # a package, to the import system

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(f"{self.__name__}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter((self, self))

    def __getitem__(self, key: Any) -> Any:
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        """It is forgotten."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing was entered."""

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return ()


class _LeftOut(MetaPathFinder, Loader):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in LEFT_OUT else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return Anything(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """It has all that it needs."""


def prepare(root: Path, *directories: str) -> None:
    """Let programs below a root import each other, stand-ins, and names from where older Pythons had them."""
    for name in ("Hashable", "Iterable", "Mapping", "Sequence", "Callable"):
        setattr(collections, name, getattr(collections.abc, name))
    sys.meta_path.insert(0, _LeftOut())
    sys.path[:0] = [str(STAND_INS), str(root), *(str(root / directory) for directory in directories)]


def load(path: Path, root: Path, *, only_definitions: bool = False) -> types.ModuleType:
    """A file or notebook as a new module; those of its package are imported anew too."""
    for name in [n for n, module in sys.modules.items() if _is_below(module, root)]:
        del sys.modules[name]
    importlib.invalidate_caches()
    if path.suffix == ".ipynb" or only_definitions:
        return _from_text(path, definitions(text_of(path)))
    package = path.parent
    while (package / "__init__.py").exists():
        package = package.parent
    if str(package) not in sys.path:
        sys.path.insert(0, str(package))
    if package != path.parent:
        return importlib.import_module(".".join(path.relative_to(package).with_suffix("").parts))
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    return importlib.import_module(path.stem)


def _is_below(module: Any, root: Path) -> bool:
    file = getattr(module, "__file__", None)
    if file is None and isinstance(module, types.ModuleType):  # a folder that is a package without a file
        file = next(iter(getattr(module, "__path__", ())), None)
    return isinstance(file, str) and file.startswith(f"{root}/")


def text_of(path: Path) -> str:
    """The text of a script, or of a notebook's cells of code without the commands to the notebook."""
    if path.suffix != ".ipynb":
        return path.read_text()
    book = json.loads(path.read_text())
    cells = book["cells"] if "cells" in book else [cell for sheet in book["worksheets"] for cell in sheet["cells"]]
    texts = ["".join(cell.get("source") or cell.get("input") or ()) for cell in cells if cell["cell_type"] == "code"]
    kept = []
    for text in texts:
        text = "\n".join("" if line.lstrip().startswith(("%", "!", "?")) else line for line in text.splitlines())
        try:
            ast.parse(text)
        except SyntaxError:  # Python 2, or a sketch
            continue
        if "IPython.core.display" in text:  # the looks of the page
            continue
        kept.append(text)
    return "\n".join(kept) + "\n"


def definitions(text: str) -> str:
    """What a text imports and defines, without what it does; the lines stay where they are."""
    lines = text.splitlines()
    kept = [""] * len(lines)
    for statement in ast.parse(text).body:
        is_constant = isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
        is_constant = is_constant and all(isinstance(target, ast.Name) for target in statement.targets)
        if is_constant or isinstance(statement, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)):
            first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
            kept[first - 1 : statement.end_lineno] = lines[first - 1 : statement.end_lineno]
    return "\n".join(kept) + "\n"


def _from_text(path: Path, text: str) -> types.ModuleType:
    module = types.ModuleType(path.stem)
    module.__file__ = str(path.with_suffix(".py"))
    linecache.cache[module.__file__] = (len(text), None, text.splitlines(keepends=True), module.__file__)
    sys.modules[path.stem] = module
    exec(compile(text, module.__file__, "exec"), vars(module))
    return module


Names = Iterable[str]


def decorate(module: types.ModuleType, names: Names, skip: Names, jit: Callable[..., Any]) -> tuple[list[Any], list[str]]:
    """Put jitted functions and methods in the place of those that are named: them, and why others were refused."""
    jitted, refusals = [], []
    for name in names:
        for owner, attribute in list(_everything(module) if name == "*" else [_named(module, name)]):
            if f"{owner.__name__}.{attribute}" in skip or attribute in skip:
                continue
            value = inspect.getattr_static(owner, attribute)
            wrap = type(value) if isinstance(value, (staticmethod, classmethod)) else None
            try:
                new = jit(value.__func__ if wrap else value)
            except Exception as error:  # what is refused when it is decorated stays plain
                refusals.append(f"{attribute}: {error}")
                continue
            jitted.append(new)
            setattr(owner, attribute, wrap(new) if wrap else new)
            _rebind(module, value, new)
    return jitted, refusals


def _rebind(module: types.ModuleType, old: Any, new: Any) -> None:
    """What other modules of the checkout have imported by name is decorated there too, as it would be in the source."""
    root = Path(module.__file__ or "").parent
    for other in list(sys.modules.values()):
        if isinstance(other, types.ModuleType) and not isinstance(other, Anything) and _is_below(other, root):
            for name, value in list(vars(other).items()):
                if value is old:
                    setattr(other, name, new)


def _named(module: types.ModuleType, name: str) -> tuple[Any, str]:
    owner: Any = module
    *path, attribute = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    for base in getattr(owner, "__mro__", ()):  # where it is defined
        if attribute in vars(base):
            return base, attribute
    return owner, attribute


def _everything(module: types.ModuleType) -> Iterator[tuple[Any, str]]:
    """All functions of a module, and the methods of its classes but for the special ones."""
    for name, value in list(vars(module).items()):
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if isinstance(value, types.FunctionType):
            yield module, name
        elif isinstance(value, type):
            for attribute, method in list(vars(value).items()):
                is_method = isinstance(method, (types.FunctionType, staticmethod, classmethod))
                if is_method and (not attribute.startswith("__") or not attribute.endswith("__") or attribute == "__call__"):
                    yield value, attribute
