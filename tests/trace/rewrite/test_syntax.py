"""Walks over syntax trees find what Python's own do."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from jitml.trace.record import user_code
from jitml.trace.rewrite.syntax import Transformer, inside, kinds_in, parts, placed, within

ROOT = Path(__file__).parents[3]
FILES = sorted([*(ROOT / "src/jitml/trace/rewrite").glob("*.py"), *(ROOT / "tests/programs/corpus").glob("*.py")])[::3]
TEXT = """
import a.b as c, d
from e import f as g, h
@decorated(1)
def outer(x, y=2, *z, k, m=3, **w) -> int:
    global G
    def inner():
        nonlocal x
        x = [i for i in z if i] + {**w, 1: 2}[None]
        yield x
    try:
        for i in range(3):
            i += 1
        else:
            pass
    except (ValueError, TypeError) as error:
        raise error from None
    finally:
        del y
    match x:
        case {"a": 1, **rest}: return rest
        case K(p, q=1) | [_, *others] if p: return others
        case None: return f"{x!r:>{k}}"
    class Local(Base, metaclass=Meta):
        a: int = 1
    with open(x) as file, lock:
        return (lambda s, t=1: s + t)(u := 1, *z, **w) if x < y < 3 and not k else x[1:2, ::3]
    assert x, "no"
    while True: break
async def co():
    async with a as b: await c
    return [x async for x in b]
"""


def ordered(nodes: object) -> list[int]:
    return sorted(map(id, nodes))  # type: ignore[call-overload]


def is_place(node: ast.AST) -> bool:
    return not isinstance(node, (ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop))


@pytest.mark.parametrize("text", [TEXT, *(path.read_text() for path in FILES)], ids=["all kinds", *(path.stem for path in FILES)])
def test_all_nodes_are_found_once(text: str) -> None:
    tree = ast.parse(text)
    every = [node for node in ast.walk(tree) if is_place(node)]
    assert ordered(inside([tree])) == ordered(every)
    assert kinds_in([tree]) == set(map(type, every))
    for node in every:
        assert ordered(parts(node)) == ordered(filter(is_place, ast.iter_child_nodes(node)))


def test_scopes_inside_are_left_out_but_for_what_runs_around_them() -> None:
    body = ast.parse("@d(e)\ndef f(x=a, *, y=b): c\nclass K(B): z = 1\nlambda v=g: h\n{**i}").body
    assert {node.id for node in within(body) if isinstance(node, ast.Name)} == {"d", "e", "a", "b", "g", "i"}


def test_places_are_those_that_python_would_give() -> None:
    def bare() -> ast.Module:
        tree = ast.parse(TEXT)
        for n, node in enumerate(ast.walk(tree)):
            if n % 3:
                for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")[: n % 5]:
                    if hasattr(node, name):
                        delattr(node, name)
        return tree

    ours, pythons = placed(bare()), ast.fix_missing_locations(bare())
    assert ast.dump(ours, include_attributes=True) == ast.dump(pythons, include_attributes=True)


def test_a_transformer_puts_in_takes_out_and_replaces() -> None:
    class Twice(Transformer):
        def visit_Expr(self, node: ast.Expr) -> list[ast.Expr]:
            return [node, node]

        def visit_Pass(self, node: ast.Pass) -> None:
            return None

        def visit_Name(self, node: ast.Name) -> ast.Name:
            return ast.Name(f"{node.id}_", node.ctx)

    tree = Twice().visit(ast.parse("if x:\n    pass\n    f(y, **{**z, 'a': x})\n    return_ = x.y[z]"))
    assert ast.unparse(tree) == "if x_:\n    f(y, **{**z, 'a': x})\n    f(y, **{**z, 'a': x})\n    return_ = x_.y[z_]".replace(
        "return_", "return__"
    )


def test_positions_are_those_of_each_instruction() -> None:
    code = test_places_are_those_that_python_would_give.__code__
    for n, (line, _, column, _) in enumerate(code.co_positions()):
        frame = user_code.frame_of(code, 2 * n)
        assert (frame.line, frame.column) == (line or code.co_firstlineno, -1 if column is None else column)
    assert user_code.frame_of(code, -1).line == user_code.frame_of(code, 0).line
    lines = len(inspect.getsource(test_places_are_those_that_python_would_give).splitlines())
    assert user_code.frame_of(code, 10**6).line < code.co_firstlineno + lines
