"""Expressions: which parts of a statement that runs as Python are sections of their own?

`self.losses.append(np.mean((p - y) ** 2))` is cut into

    .e0 = self.losses.append
    .e1 = np.mean((p - y) ** 2)    # a section
    .e0(.e1)
    .e0 = .e1 = None

in Python's own order: what is evaluated before a part gets a name too. What is evaluated only at times, as what follows an `and`,
is left where it is; nothing is cut that gives way to other code half-way, which would see what the names hold.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from jitml.records import dataclass, field
from jitml.sections.live_names import Names
from jitml.trace.rewrite.syntax import inside

# The fields of each kind of node that are evaluated whatever happens, in order.
_IN_ORDER: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Attribute: ("value",),
    ast.BinOp: ("left", "right"),
    ast.Call: ("func", "args", "keywords"),
    ast.FormattedValue: ("value",),
    ast.IfExp: ("test",),
    ast.JoinedStr: ("values",),
    ast.List: ("elts",),
    ast.Set: ("elts",),
    ast.Slice: ("lower", "upper", "step"),
    ast.Subscript: ("value", "slice"),
    ast.Tuple: ("elts",),
    ast.UnaryOp: ("operand",),
    ast.keyword: ("value",),
}
_FIRST_ONLY: dict[type[ast.AST], str] = {ast.BoolOp: "values", ast.Compare: "comparators"}
_TEXTS = (ast.JoinedStr, ast.FormattedValue)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LEAST_WORK = 2  # operations: one alone is NumPy's, and no slower there

Slot = tuple[Any, str, int | None]  # a field of a node, or an element of one


@dataclass(frozen=True, slots=True)
class CutStep:
    """What is evaluated before the rest of a statement; a part is tried as a section."""

    name: str
    value: ast.expr
    is_part: bool


@dataclass
class Cutter:
    """Cuts one statement.

    Args:
        may_be_part: whether an expression can be a section.
        is_break: whether the statement as it is has been refused.
        taken: names that there are: in what stands in for a section that is a part, that part's.
    """

    may_be_part: Callable[[ast.expr], bool]
    is_break: bool
    taken: Names
    steps: list[CutStep] = field(default_factory=list)

    def cut(self, statement: ast.stmt) -> ast.stmt | None:
        """What is left of the statement, which reads the names of `steps`; None if none of its parts can be a section."""
        match statement:
            case ast.Assign(targets=targets, value=value):
                names_only = all(isinstance(x, ast.Name) for x in targets)
                return self._with(statement, "value", value, not (names_only and self.is_break))
            case ast.AnnAssign(value=ast.expr() as value) | ast.Return(value=ast.expr() as value):
                return self._with(statement, "value", value, not self.is_break)
            case ast.AugAssign(target=ast.Name(id=name), value=value) if not _binds_names(value):
                return self._with(
                    statement, "value", value, True, ast.copy_location(ast.Name(name, ast.Load()), statement.target)
                )
            case ast.Expr(value=value):
                return self._with(statement, "value", value, False)
            case ast.If(test=test):
                return self._test(statement, test)
        return None

    def _with(
        self, statement: ast.stmt, name: str, value: ast.expr, itself: bool, first: ast.expr | None = None
    ) -> ast.stmt | None:
        """The statement with another value; `first` is evaluated before that."""
        if _gives_way(value) or not self._has_part(value, itself):
            return None
        if first is not None:
            self._named(first)
        made = copy.copy(statement)
        setattr(made, name, self._linear(value, itself))
        return made

    def _test(self, statement: ast.If, test: ast.expr) -> ast.stmt | None:
        if _gives_way(test) or not self._has_part(test, itself=True):
            return None
        made = copy.copy(statement)
        made.test = self._linear(test, itself=True)
        if not isinstance(made.test, ast.Name):  # what has names shall not be held as long as the blocks run
            truth = ast.UnaryOp(ast.Not(), ast.copy_location(ast.UnaryOp(ast.Not(), made.test), test))
            made.test = self._named(ast.copy_location(truth, test))
        return made

    def _is_part(self, node: ast.AST) -> bool:
        return isinstance(node, ast.expr) and not isinstance(node, _TEXTS) and _is_worth(node) and self.may_be_part(node)

    def _has_part(self, node: ast.AST, itself: bool) -> bool:
        """Whether there is a part in it."""
        return (itself and self._is_part(node)) or any(self._has_part(_held(slot), True) for slot in _slots(node))

    def _linear(self, node: Any, itself: bool) -> Any:
        """A node in which what has been evaluated is names."""
        if itself and self._is_part(node):
            return self._named(node, is_part=True)
        slots = [*_slots(node)]
        with_parts = [n for n, slot in enumerate(slots) if self._has_part(_held(slot), True)]
        if not with_parts:
            return node
        made = _own(node)
        slots = [*_slots(made)]
        for n, slot in enumerate(slots[: with_parts[-1] + 1]):
            found = self._linear(_held(slot), True)
            _put(slot, self._evaluated(found) if n < with_parts[-1] else found)
        return made

    def _evaluated(self, node: Any) -> Any:
        """A node that is evaluated before a part."""
        match node:
            case ast.Constant():
                return node
            case ast.Name(id=name) if name.startswith("."):
                return node
            case ast.keyword():
                return ast.copy_location(ast.keyword(node.arg, self._evaluated(node.value)), node)
            case ast.FormattedValue():
                text = self._named(ast.copy_location(ast.JoinedStr([node]), node))
                return ast.copy_location(ast.FormattedValue(text, -1), node)
            case ast.Slice():  # nothing is done with its bounds yet, which `_slots` would have named
                made = _own(node)
                for slot in _slots(made):
                    _put(slot, self._evaluated(_held(slot)))
                return made
        return self._named(node)

    def _named(self, value: ast.expr, is_part: bool = False) -> ast.Name:
        taken = self.taken.union(step.name for step in self.steps)
        name = next(name for n in count() if (name := f".e{n}") not in taken)
        self.steps.append(CutStep(name, value, is_part))
        return ast.copy_location(ast.Name(name, ast.Load()), value)


def _slots(node: Any) -> Iterator[Slot]:
    """Where a node holds what it evaluates, in order, as far as it surely does, and as far as it can be named."""
    if isinstance(node, _COMPREHENSIONS):
        yield node.generators[0], "iter", None
        return
    if isinstance(node, ast.Compare):
        yield node, "left", None
    if type(node) in _FIRST_ONLY:
        yield node, _FIRST_ONLY[type(node)], 0
    for name in _IN_ORDER.get(type(node), ()):
        value = getattr(node, name)
        if not isinstance(value, list):
            value = [] if value is None else [value]
            if value:
                yield node, name, None
            continue
        for n, x in enumerate(value):
            if isinstance(x, ast.Starred) or (isinstance(x, ast.keyword) and x.arg is None):
                return  # gone through before what follows is evaluated
            yield node, name, n


def _held(slot: Slot) -> Any:
    node, name, n = slot
    found = getattr(node, name)
    return found if n is None else found[n]


def _put(slot: Slot, value: Any) -> None:
    node, name, n = slot
    if n is None:
        setattr(node, name, value)
    else:
        getattr(node, name)[n] = value


def _own(node: Any) -> Any:
    """A copy of a node, whose lists are its own."""
    made = copy.copy(node)
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            setattr(made, name, [*value])
    if isinstance(node, _COMPREHENSIONS):
        made.generators[0] = copy.copy(node.generators[0])
    return made


def unwrapped(node: ast.expr) -> ast.expr:
    """What a section's `return (x,)` stands for: the tuple stands where x does."""
    while isinstance(node, ast.Tuple) and len(node.elts) == 1 and node.col_offset == node.elts[0].col_offset:
        node = node.elts[0]
    return node


def _binds_names(node: ast.expr) -> bool:
    return any(isinstance(x, ast.NamedExpr) for x in inside([node]))


def _gives_way(node: ast.expr) -> bool:
    return any(isinstance(x, (ast.Yield, ast.YieldFrom, ast.Await)) for x in inside([node]))


def _is_worth(node: ast.expr) -> bool:
    """Whether enough is computed to be worth the call of a section."""
    if unwrapped(node) is not node:
        return False
    if isinstance(node, ast.Slice) or any(isinstance(x, ast.Slice) for x in getattr(node, "elts", ())):
        return False  # no expression where it does not stand between brackets
    work = 0
    for x in inside([node]):
        match x:
            case ast.BinOp(left=left) if not isinstance(left, (ast.Constant, ast.JoinedStr)):
                work += 1
            case ast.Call(func=ast.Name(id=name)):
                work += not hasattr(builtins, name)
            case ast.Call():
                work += 1
    return work >= _LEAST_WORK


__all__ = ["CutStep", "Cutter", "unwrapped"]
