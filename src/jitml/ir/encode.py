"""The content of a graph as bytes: equal for graphs that compile to the same program, in any process; else different.

Unlike the text form it holds constants bit by bit, each node's place in the user's code, and knows values and sizes by when
they appear: `%3` is the fourth value.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from jitml.errors import Source
from jitml.ir.dims import Dim, Sym
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.types import Aval

_MOST_CONSTANTS = 4 << 20  # bytes in all: more than that are not written down for each program that has them


class NotWritten(Exception):
    """There is something in the graph that no bytes stand for: a function of Python's, an object, a very large constant."""


def encode(graph: Graph) -> bytes:
    """
    Raises:
        NotWritten: the graph holds what other processes do not have.

    >>> from jitml.ir.text.parser import parse
    >>> one, same = (parse("graph(a: f64[3]) { b: f64[3] = exp a; return b }") for _ in range(2))
    >>> encode(one) == encode(same)
    True
    """
    encoder = _Encoder()
    encoder.graph(graph)
    return b"".join(encoder.parts)


class _Encoder:
    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._values: dict[Value, int] = {}
        self._syms: dict[Sym, int] = {}
        self._texts: dict[str, bytes] = {}
        self._avals: dict[tuple[object, ...], bytes] = {}  # of those without names for sizes
        self._room = _MOST_CONSTANTS

    def graph(self, graph: Graph) -> None:
        self._head("graph", len(graph.inputs), len(graph.nodes))
        self._define(graph.inputs)
        self.put(graph.names)
        for node in graph.nodes:
            self._node(node)
        self._use(graph.outputs)

    def _node(self, node: Node) -> None:
        self._text(node.op.name)
        self._use(node.inputs)
        self._define(node.outputs)
        self._map(node.params)
        source = node.source
        self.put(None if source is None else _place(source))

    def _define(self, values: tuple[Value, ...]) -> None:
        self._head("new", len(values))
        for value in values:
            self._values[value] = len(self._values)
            self._aval(value.aval)

    def _use(self, values: tuple[Value, ...]) -> None:
        self._head("old", *(self._values[value] for value in values))

    def _head(self, kind: str, *numbers: int) -> None:
        self.parts.append(f"{kind}{numbers};".encode())

    def _text(self, text: str) -> None:
        known = self._texts.get(text)
        if known is None:
            data = text.encode(errors="surrogatepass")
            known = self._texts[text] = b"s(%d,);" % len(data) + data
        self.parts.append(known)

    def _aval(self, aval: Aval) -> None:
        key = (aval.shape, aval.dtype)
        if (known := self._avals.get(key)) is not None:
            self.parts.append(known)
            return
        begin = len(self.parts)
        self.put(key)
        if aval.is_static:
            self._avals[key] = b"".join(self.parts[begin:])

    def _map(self, x: Mapping[str, Any]) -> None:
        self._head("map", len(x))
        for name in sorted(x):
            self._text(name)
            self.put(x[name])

    def _raw(self, kind: str, data: bytes) -> None:
        self._head(kind, len(data))
        self.parts.append(data)

    def put(self, x: Any) -> None:
        """Anything that a parameter may be."""
        kind = type(x)
        if x is None or x is Ellipsis or kind is bool or kind is int:
            self.parts.append(f"{x};".encode())
        elif kind is str:
            self._text(x)
        elif kind is float:
            self.parts.append(b"f" + struct.pack("<d", x))
        elif kind is complex:
            self.parts.append(b"c" + struct.pack("<dd", x.real, x.imag))
        elif kind is tuple or kind is list:
            self._head(kind.__name__, len(x))
            for each in x:
                self.put(each)
        elif kind is Aval:
            self._aval(x)
        elif kind is Sym:
            self._sym(x)
        elif kind is Dim:
            self._head("dim", len(x.terms))
            self.put(x.terms)
        elif kind is Graph:
            self.graph(x)
        elif isinstance(x, np.dtype):
            self._text(str(x.descr if x.names else x.str))
        else:
            self._put_rare(kind, x)

    def _put_rare(self, kind: type, x: Any) -> None:
        if isinstance(x, Mapping) and all(type(name) is str for name in x):
            self._map(x)
        elif kind is np.ndarray or isinstance(x, np.generic):
            self._array(kind, np.asarray(x))
        elif kind is frozenset and all(type(each) is str for each in x):
            self.put(("set", *sorted(x)))
        elif kind is slice:
            self.put(("slice", x.start, x.stop, x.step))
        elif kind is range:
            self.put(("range", x.start, x.stop, x.step))
        elif kind is bytes:
            self._raw("b", x)
        elif kind is Source:
            self.put(_place(x))
        else:
            raise NotWritten(f"{kind.__module__}.{kind.__qualname__}")

    def _array(self, kind: type, x: np.ndarray[Any, Any]) -> None:
        self._room -= x.nbytes
        if x.dtype.hasobject or self._room < 0:
            raise NotWritten(f"{x.nbytes} bytes of {x.dtype}")
        self.put((kind.__name__, x.dtype, x.shape, x.strides))
        self._raw("a", x.tobytes())

    def _sym(self, sym: Sym) -> None:
        number = self._syms.setdefault(sym, len(self._syms))
        self._head("sym", number, sym.low, sym.high)


def _place(source: Source) -> tuple[str | int, ...]:
    return (source.file, source.line, source.function, source.ignored, source.demanded, source.role, source.operation)


__all__ = ["NotWritten", "encode"]
