"""The text form of a graph, read back: `show(parse(show(g))) == show(g)`.

`;` may stand for a line break, so that a test can write a small graph on one line.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from jitml.errors import ParseError, bare_message
from jitml.ir.dims import Sym, parse_size
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.op import OPS
from jitml.ir.ops.host import HOST_FUNCTIONS
from jitml.ir.types import DTYPES, parse_aval

_SKIPPED = re.compile(r"(?:[\s;]|#[^\n]*)*")
_DEFINITION = re.compile(r"(\w+):\s*([a-z]+\d*\[[^\]]*\])\s*,?\s*")
_STATEMENT = re.compile(r"(?:=\s*)?(\w+)((?:[ \t]+\w+(?![\w(]))*)[ \t]*")
_RETURN = re.compile(r"return\b((?:[ \t]+\w+)*)")
_BODY = re.compile(r"[ \t]*(\w+)(?=\()")
_BIND = re.compile(r"\bsym=(\w+)\[(-?\d+):(-?\d+)\]")


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
    parser = _Parser(text)
    parser.take(re.compile(r"graph(?=\()"), "'graph('")
    graph = parser.graph()
    if parser.at != len(text):
        raise parser.fail("the end")
    return graph


class _Parser:
    """Recursive descent over the text; bodies are graphs with names of their own."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.syms: dict[str, Sym] = {}
        for name, low, high in _BIND.findall(text):  # a size may be mentioned before it is bound
            self.syms.setdefault(name, Sym(name, int(low), int(high)))
        self.skip()

    def fail(self, expected: str) -> ParseError:
        return ParseError(f"expected {expected}, found {self.text[self.at : self.at + 60]!r}")

    def skip(self) -> None:
        match = _SKIPPED.match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    def take(self, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise self.fail(expected)
        self.at = match.end()
        return match

    def accept(self, symbol: str) -> bool:
        self.skip()
        if not self.text.startswith(symbol, self.at):
            return False
        self.at += len(symbol)
        return True

    def expect(self, symbol: str) -> None:
        if not self.accept(symbol):
            raise self.fail(repr(symbol))

    def graph(self) -> Graph:
        """From the opening parenthesis to the closing brace."""
        env: dict[str, Value] = {}
        self.expect("(")
        inputs = self.definitions(env)
        self.expect(")")
        self.expect("{")
        nodes: list[Node] = []
        self.skip()
        while (match := _RETURN.match(self.text, self.at)) is None:
            if self.at == len(self.text) or self.text[self.at] == "}":
                raise ParseError("the graph has no return statement")
            nodes.append(self.node(env))
            self.skip()
        self.at = match.end()
        outputs = tuple(_use(env, name, match[0]) for name in match[1].split())
        self.expect("}")
        self.skip()
        return Graph(inputs, tuple(nodes), outputs)

    def node(self, env: dict[str, Value]) -> Node:
        start = self.at
        defined: dict[str, Value] = {}
        outputs = self.definitions(defined)
        match = self.take(_STATEMENT, "a statement")
        if match[1] not in OPS:
            raise ParseError(f"not a statement: {self.text[start : self.text.find(chr(10), start)].strip()!r}")
        inputs = tuple(_use(env, name, match[0]) for name in match[2].split())
        params = parse_params(self.braces(), self.syms) if self.text.startswith("{", self.at) else {}
        while (body := _BODY.match(self.text, self.at)) is not None:
            self.at = body.end()
            params[body[1]] = self.graph()
        for name, value in defined.items():
            if name in env:
                raise ParseError(f"{name} is defined twice")
            env[name] = value
        return Node(OPS[match[1]], inputs, params, outputs)

    def definitions(self, env: dict[str, Value]) -> tuple[Value, ...]:
        values = []
        self.skip()
        while (match := _DEFINITION.match(self.text, self.at)) is not None:
            if match[1] in env:
                raise ParseError(f"{match[1]} is defined twice")
            try:
                env[match[1]] = Value(parse_aval(match[2], self.syms))
            except ValueError as error:
                raise ParseError(bare_message(error)) from error
            values.append(env[match[1]])
            self.at = match.end()
        return tuple(values)

    def braces(self) -> str:
        """The text from an opening brace to the one that closes it; braces in strings do not count."""
        start, depth, quote = self.at, 0, ""
        while self.at < len(self.text):
            letter = self.text[self.at]
            if quote:
                self.at += letter == "\\"
                quote = "" if letter == quote else quote
            elif letter in "'\"":
                quote = letter
            else:
                depth += (letter == "{") - (letter == "}")
            self.at += 1
            if not depth and not quote:
                return self.text[start : self.at]
        raise ParseError("a brace is not closed")


def _use(env: dict[str, Value], name: str, statement: str) -> Value:
    if name not in env:
        raise ParseError(f"{name} is used before its definition in {statement.strip()!r}")
    return env[name]


def parse_params(text: str, syms: Mapping[str, Sym] | None = None) -> dict[str, Any]:
    """`{axes=(0, 1), dtype=f32}` as a dict; a list beside a dtype is an array literal.

    Args:
        syms: what names in sizes stand for.

    Raises:
        ParseError: the text is something else.
    """
    try:
        call = ast.parse(f"f({text.strip()[1:-1]})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError("each parameter has a name")
        params = {str(k.arg): _literal(k.value, syms or {}) for k in call.keywords}
        if isinstance(params.get("value"), list):
            params["value"] = np.array(params["value"], dtype=params["dtype"]).reshape(params["shape"])
    except (SyntaxError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise ParseError(f"not parameters: {text!r} ({error})") from error
    return params


_WORDS = {"nan": float("nan"), "inf": float("inf"), **DTYPES}


def _literal(node: ast.expr, syms: Mapping[str, Sym]) -> Any:
    match node:
        case ast.Subscript(value=ast.Name(id=name)):
            return syms[name]
        case ast.Name(id=word) if word in _WORDS:
            return _WORDS[word]
        case ast.Name() | ast.BinOp():
            return parse_size(ast.unparse(node), syms)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_literal(operand, syms)
        case ast.Tuple(elts=elts):
            return tuple(_literal(e, syms) for e in elts)
        case ast.List(elts=elts):
            return [_literal(e, syms) for e in elts]
        case ast.Call(func=ast.Name(id="complex"), args=[re, im]):
            return complex(_literal(re, syms), _literal(im, syms))
        case ast.Call(func=ast.Name(id="host"), args=[ast.Constant(value=int(serial)), _]):
            return HOST_FUNCTIONS[serial]
    return ast.literal_eval(node)
