"""The table of what is understood holds, cell by cell, and the page that prints it is up to date."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
import scipy.stats
from tests.trace.environment.understood_page import PLACES, page

import jitml
from jitml.errors import UnsupportedError
from jitml.trace.environment import value_classification
from jitml.trace.environment.value_classification import TABLE, UnderstoodRow, Way

X = np.ones(2)
ROOT = Path(__file__).parents[3]


class Point:
    def __init__(self, v: float) -> None:
        self.v = v


class Example(SimpleNamespace):
    """A value of a row, and functions of it for each cell that says something of its own.

    Args:
        make: of a number.
        changed: changes it; `state` is what there is to compare afterwards.
    """

    make: Callable[[float], Any]
    read: Callable[[Any, Any], Any]
    changed: Callable[[Any, Any], Any]
    state: Callable[[Any], Any]
    copied: Callable[[Any, Any], Any]
    handed: Callable[[Any, Any], Any]


def times(k: float) -> Callable[[Any], Any]:
    return lambda v: v * k


def sparse(k: float) -> Any:
    return scipy.sparse.csr_array(np.diag([k, 2 * k]))


EXAMPLES: dict[Way, Example] = {
    Way.ARRAY: Example(
        make=lambda k: np.array([k, k]), read=lambda v, x: v.sum() * x, changed=lambda v, x: v.fill(x[0] * 5), state=np.copy,
        copied=lambda v, x: copy.copy(v)[0] * x, handed=lambda v, x: scipy.linalg.det(np.diag(v)) * x,
    ),
    Way.GENERATOR: Example(
        make=lambda k: np.random.default_rng(int(k)), read=lambda v, x: v.normal() * x, changed=lambda v, x: v.normal(),
        state=lambda v: v.bit_generator.state, copied=lambda v, x: copy.copy(v).normal() * x,
        handed=lambda v, x: scipy.stats.norm.rvs(size=2, random_state=v) + x,
    ),
    Way.VALUE: Example(
        make=float, read=lambda v, x: v * x, changed=None, state=float, copied=lambda v, x: copy.deepcopy(v) * x,
        handed=lambda v, x: scipy.linalg.expm(v * np.eye(2)) @ x,
    ),
    Way.ITEMS: Example(
        make=lambda k: [k, {"a": np.full(2, k)}], read=lambda v, x: v[0] * v[1]["a"] * x, changed=lambda v, x: v.append(x[0]),
        state=len, copied=lambda v, x: copy.deepcopy(v)[1]["a"] * x, handed=lambda v, x: scipy.linalg.det(np.diag(v[:1])) * x,
    ),
    Way.PARTS: Example(
        make=lambda k: {"a": k}.get, read=lambda v, x: v("a") * x, changed=None, state=lambda v: v("a"),
        copied=lambda v, x: copy.copy(v)("a") * x, handed=lambda v, x: sum(map(v, ["a"])) * x,
    ),
    Way.ITSELF: Example(
        make=times, read=lambda v, x: v(x), changed=lambda v, x: setattr(v, "note", 1), state=lambda v: len(vars(v)),
        copied=lambda v, x: copy.copy(v)(x), handed=lambda v, x: sum(map(v, [x])),
    ),
    Way.ATTRIBUTES: Example(
        make=Point, read=lambda v, x: v.v * x, changed=lambda v, x: setattr(v, "v", x[0] * 5), state=lambda v: v.v,
        copied=lambda v, x: copy.copy(v).v * x, handed=lambda v, x: len(pickle.dumps(v)) * x,
    ),
    Way.COMPARED: Example(
        make=lambda k: np.polynomial.Polynomial([1.0, k]), read=lambda v, x: v(x), changed=lambda v, x: v.coef.fill(x[0] * 5),
        state=lambda v: v.coef.tolist(), copied=lambda v, x: copy.copy(v)(x), handed=lambda v, x: (v * 2)(x),
    ),
    Way.OPAQUE: Example(
        make=sparse, read=lambda v, x: v.data * x, changed=lambda v, x: v.setdiag(x[0]), state=lambda v: v.data.tolist(),
        copied=lambda v, x: copy.copy(v).data * x, handed=lambda v, x: scipy.sparse.linalg.norm(v) * x,
    ),
}  # fmt: skip


def passed(function: Callable[..., Any], make: Callable[[float], Any]) -> Callable[[Any], Any]:
    compiled = jitml.jit(function)
    return lambda v: compiled(v, X)


def found(function: Callable[..., Any], make: Callable[[float], Any]) -> Callable[[Any], Any]:
    space = SimpleNamespace(v=None)
    compiled = jitml.jit(lambda x: function(space.v, x))

    def call(v: Any) -> Any:
        space.v = v
        return compiled(X)

    return call


def in_a_list(function: Callable[..., Any], make: Callable[[float], Any]) -> Callable[[Any], Any]:
    compiled = jitml.jit(lambda vs, x: function(vs[0], x))
    return lambda v: compiled([v], X)


def closed_over(function: Callable[..., Any], make: Callable[[float], Any]) -> Callable[[Any], Any]:
    v: Any = None
    compiled = jitml.jit(lambda x: function(v, x))

    def call(given: Any) -> Any:
        nonlocal v
        v = given
        return compiled(X)

    return call


ROLES = (passed, found, in_a_list, closed_over)
CELLS = ("read", "copied", "handed")


@pytest.mark.parametrize("role", ROLES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.way.name)
def test_each_value_has_its_own_answer(row: UnderstoodRow, cell: str, role: Callable[..., Any]) -> None:
    example = EXAMPLES[row.way]
    function = getattr(example, cell)
    if getattr(row, cell).startswith("refused"):
        with pytest.raises(UnsupportedError):
            role(function, example.make)(example.make(1.0))
        return
    call = role(function, example.make)
    for k in (1.0, 2.0, 3.0, 1.0):
        want = np.asarray(function(example.make(k), X))
        np.testing.assert_allclose(call(example.make(k)), want, rtol=1e-12)


@pytest.mark.parametrize("role", ROLES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("row", [row for row in TABLE if EXAMPLES[row.way].changed is not None], ids=lambda row: row.way.name)
def test_what_changes_it(row: UnderstoodRow, role: Callable[..., Any]) -> None:
    example = EXAMPLES[row.way]
    call = role(lambda v, x: (example.changed(v, x), x)[1], example.make)
    changed, expected = example.make(1.0), example.make(1.0)
    if "refused" in row.changed:
        with pytest.raises(UnsupportedError):
            call(changed)
    else:
        call(changed)
        example.changed(expected, X)
    assert np.array_equal(example.state(changed), example.state(expected))


@pytest.mark.parametrize("role", ROLES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.way.name)
def test_what_comes_back(row: UnderstoodRow, role: Callable[..., Any]) -> None:
    example = EXAMPLES[row.way]
    call = role(lambda v, x: (v, x), example.make)
    for k in (1.0, 2.0):
        v = example.make(k)
        if row.returned.startswith("refused"):
            with pytest.raises(UnsupportedError):
                call(v)
        elif row.way is Way.VALUE:
            assert call(v)[0] == v
        else:
            assert call(v)[0] is v


def test_every_row_has_an_example_that_it_covers() -> None:
    assert [row.way for row in TABLE] == [*Way] == [*EXAMPLES]
    for way, example in EXAMPLES.items():
        assert value_classification.way_of(example.make(1.0)) is way


def test_the_page_is_what_make_docs_writes() -> None:
    assert (ROOT / "docs" / "understood.md").read_text() == page(), "run make docs"


def test_every_file_in_which_a_value_becomes_a_constant_is_on_the_page() -> None:
    pattern = re.compile(
        r"\bHostConst\(|\.hold\(|host\.require(_same|_held|_equal)?[()]|\bcall_now\(|(?<![.\w])(observe|observe_changing|outside_trace)\("
    )
    files = [
        path for name in ("trace", "dispatch", "autograd", "numpy") for path in (ROOT / "src" / "jitml" / name).rglob("*.py")
    ]
    using = {path.relative_to(ROOT / "src" / "jitml").as_posix() for path in files if pattern.search(path.read_text())}
    assert using == {place.file for place in PLACES}
