"""The text form of a graph, read back: `show(parse(show(g))) == show(g)`.

`;` may stand for a line break, so that a test can write a small graph on one line.
"""

from __future__ import annotations

import ast
import re
from typing import Any

import numpy as np

from jitml.errors import ParseError
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.op import OPS
from jitml.ir.types import DTYPES, parse_aval

_HEAD = re.compile(r"\s*graph\((.*?)\)\s*\{(.*)\}\s*", re.DOTALL)
_STATEMENT = re.compile(r"(.+?)\s=\s(\w+)((?:\s+\w+)*)\s*(\{.*\})?")
_COMMENT = re.compile(r"\s#.*$", re.MULTILINE)
_DEFINITION = re.compile(r"(\w+):\s*([a-z]+\d*\[[\d,]*\])")


def parse(text: str) -> Graph:
    """Read a graph's text form.

    Raises:
        ParseError: the text is not a graph; the message quotes the statement.

    >>> print(parse("graph(a: f32[4]) { b: f32[4] = exp a; return b }"))
    graph(a: f32[4]) {
      b: f32[4] = exp a
      return b
    }
    """
    match = _HEAD.fullmatch(_COMMENT.sub("", text))
    if match is None:
        raise ParseError(f"not a graph: {text[:60]!r}")
    env: dict[str, Value] = {}
    inputs = tuple(_define(env, match[1]))
    nodes: list[Node] = []
    outputs: tuple[Value, ...] | None = None
    for statement in filter(None, (s.strip() for s in re.split(r"[;\n]", match[2]))):
        if statement == "return" or statement.startswith("return "):
            outputs = tuple(_use(env, name, statement) for name in statement.split()[1:])
        else:
            nodes.append(_parse_node(env, statement))
    if outputs is None:
        raise ParseError("the graph has no return statement")
    return Graph(inputs, tuple(nodes), outputs)


def _parse_node(env: dict[str, Value], statement: str) -> Node:
    match = _STATEMENT.fullmatch(statement)
    if match is None or match[2] not in OPS:
        raise ParseError(f"not a statement: {statement!r}")
    op = OPS[match[2]]
    inputs = tuple(_use(env, name, statement) for name in match[3].split())
    params = parse_params(match[4] or "{}")
    return Node(op, inputs, params, tuple(_define(env, match[1])))


def _define(env: dict[str, Value], text: str) -> list[Value]:
    values = []
    for name, aval in _DEFINITION.findall(text):
        if name in env:
            raise ParseError(f"{name} is defined twice")
        env[name] = Value(parse_aval(aval))
        values.append(env[name])
    return values


def _use(env: dict[str, Value], name: str, statement: str) -> Value:
    if name not in env:
        raise ParseError(f"{name} is used before its definition in {statement!r}")
    return env[name]


def parse_params(text: str) -> dict[str, Any]:
    """`{axes=(0, 1), dtype=f32}` as a dict; a list beside a dtype is an array literal."""
    call = ast.parse(f"f({text.strip()[1:-1]})", mode="eval").body
    assert isinstance(call, ast.Call)
    params = {str(k.arg): _literal(k.value) for k in call.keywords}
    if isinstance(params.get("value"), list):
        params["value"] = np.array(params["value"], dtype=params["dtype"]).reshape(params["shape"])
    return params


_WORDS = {"nan": float("nan"), "inf": float("inf"), **DTYPES}


def _literal(node: ast.expr) -> Any:
    match node:
        case ast.Name(id=word) if word in _WORDS:
            return _WORDS[word]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_literal(operand)
        case ast.Tuple(elts=elts):
            return tuple(_literal(e) for e in elts)
        case ast.List(elts=elts):
            return [_literal(e) for e in elts]
    return ast.literal_eval(node)
