"""Avals, graphs and their companions: show, parse, verify, interpret."""

from __future__ import annotations

import numpy as np
import pytest

from jitml.errors import DTypeError, ParseError, ShapeError, Source, TraceError, UnsupportedError, VerificationError
from jitml.ir import ops
from jitml.ir.analysis.verify import verify
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.interpret import interpret
from jitml.ir.op import recording
from jitml.ir.printer import show
from jitml.ir.text.parser import parse
from jitml.ir.types import DTYPES, F32, F64, Aval, dtype_name, parse_aval

TEXT = """\
graph(a: f32[3,4], b: f32[4]) {
  c: f32[3,4] = broadcast b {axes=(1,), shape=(3, 4)}
  d: f32[3,4] = mul a c
  e: f32[3] = reduce_sum d {axes=(1,)}
  f: f32[] = full {dtype=f32, shape=(), value=nan}
  g: i64[2,2] = array {dtype=i64, shape=(2, 2), value=[[1, 2], [3, 4]]}
  h: f32[] = full {dtype=f32, shape=(), value=-inf}
  i: c128[] = full {dtype=c128, shape=(), value=complex(-0.0, -nan)}
  j: c64[2] = array {dtype=c64, shape=(2,), value=[complex(1.0, -0.0), complex(-inf, 2.0)]}
  return e f g a h i j
}"""


def test_text_round_trip() -> None:
    graph = verify(parse(TEXT))
    assert show(graph) == TEXT
    assert show(parse(show(graph))) == TEXT


def test_a_builder_records_what_is_called_on_its_values() -> None:
    builder = GraphBuilder()
    x = builder.add_input(Aval((2,), F32), "x")
    with recording(builder):
        y = 1 - x * x
    graph = verify(builder.build([y]))
    assert [n.op for n in graph.nodes] == [ops.mul, ops.full, ops.sub]
    (result,) = interpret(graph, [np.array([2, 3], np.float32)])
    np.testing.assert_array_equal(result, np.array([-3, -8], np.float32))


def test_an_inner_builder_captures_outer_values_and_inlines() -> None:
    outer = GraphBuilder()
    x, y = outer.add_input(Aval((2,), F64)), outer.add_input(Aval((2,), F64))
    inner = GraphBuilder(parent=outer)
    z = inner.add_input(Aval((2,), F64))
    with recording(inner):
        w = z * y
    body = inner.build([w])
    assert list(inner.captured) == [y]
    (out,) = outer.inline(body, [x, *inner.captured])
    (result,) = interpret(verify(outer.build([out])), [np.array([1.0, 2]), np.array([3.0, 4])])
    np.testing.assert_array_equal(result, [3, 8])


def test_a_foreign_value_is_a_leak() -> None:
    builder = GraphBuilder()
    with recording(builder), pytest.raises(TraceError, match="after its trace has ended"):
        ops.neg(Value(Aval((), F32)))


BRANCHES = """
graph(c: bool[], x: f64[4]) {
  y: f64[4] = neg x
  z: f64[4] = cond c y c then(a: f64[4], p: bool[]) {
    b: f64[4] = cond p a then(d: f64[4]) {
      e: f64[4] = exp d
      return e
    } orelse(d: f64[4]) {
      e: f64[4] = tanh d
      return e
    }
    f: f64[4] = sqrt b
    return f
  } orelse(a: f64[4], p: bool[]) {
    return a
  }
  w: f64[4] = sin z
  return w
}
"""


def test_a_walk_meets_each_node_before_those_of_its_bodies() -> None:
    graph = parse(BRANCHES)
    names = [node.op.name for node in graph.walk()]
    assert names == ["neg", "cond", "cond", "exp", "tanh", "sqrt", "sin"]
    assert [node.op.name for node in graph.nodes[1].walk()] == names[1:-1]


def test_ops_evaluate_outside_any_recording() -> None:
    np.testing.assert_array_equal(ops.add(np.arange(3), np.arange(3)), [0, 2, 4])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph(a: f32[2], b: f32[3]) { c: f32[2] = add a b; return c }", "differ in shape"),
        ("graph(a: f32[2]) { b: f32[3] = neg a; return b }", "yields"),
        ("graph(a: i32[2]) { b: i32[2] = exp a; return b }", "not defined for i32"),
        ("graph(a: f32[2]) { b: f64[2] = convert a; return b }", "missing 1 required keyword-only argument: 'dtype'"),
        ("graph(a: i64[]) { bind a; return a }", "missing 1 required keyword-only argument: 'sym'"),
        ("graph(a: f32[2]) { b: f32[2] = flip a {axes=(0, 0)}; return b }", "axes"),
        ("graph(a: f32[2]) { b: f32[2,2] = dot_general a a {batch=((), ()), contract=((-1,), (0,))}; return b }", "axes"),
        ("graph() { a: i64[2] = array {value=5, shape=(2,), dtype=i64}; return a }", "a value of the shape"),
        ("graph() { a: u8[] = full {value=300, shape=(), dtype=u8}; return a }", "uint8 has no 300"),
        ("graph() { a: i64[] = full {value=1.5, shape=(), dtype=i64}; return a }", "int64 has no 1.5"),
        ("graph() { a: f64[-3] = full {value=1.5, shape=(-3,), dtype=f64}; return a }", "size is negative"),
        ("graph(a: f64[n], b: i64[]) { c: i64[] = neg b; bind c {sym=n[0:4]}; return a }", "is not that of another input"),
        ("graph(a: f64[], b: bool[]) { c: f64[] = check a b {error='Foo', message=''}; return c }", "no exception is named Foo"),
    ],
)
def test_verify_refuses(text: str, message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        verify(parse(text))


def test_verify_refuses_use_before_definition() -> None:
    a, b, c = (Value(Aval((2,), F32)) for _ in range(3))
    nodes = (Node(ops.neg, (b,), {}, (c,), Source("model.py", 41, "layer")),)
    with pytest.raises(VerificationError, match=r"not defined before it\n  model.py:41 in layer"):
        verify(Graph((a,), nodes, (c,)))


@pytest.mark.parametrize(
    "text",
    [
        "grap(a) {}",
        "graph() { a: f32[] = nosuch; return a }",
        "graph() { return b }",
        "graph() { }",
        "graph(a: f31[]) { return a }",
        "graph(a: f32[2 2]) { return a }",
        "graph(a: f32[n]) { return a }",
        "graph() { a: f32[] = full {value=1.0 shape=(), dtype=f32}; return a }",
        "graph() { a: f32[] = full {1.0, value=1.0, shape=(), dtype=f32}; return a }",
        "graph() { a: i64[2] = array {value=[1, 2, 3], shape=(2,), dtype=i64}; return a }",
        "graph(a: f32[]) { host_call a {function=host(-1, 'gone')}; return a }",
    ],
)
def test_parse_refuses(text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)


@pytest.mark.parametrize("name", DTYPES)
def test_dtype_names_round_trip(name: str) -> None:
    aval = Aval((2, 3), DTYPES[name])
    assert dtype_name(aval.dtype) == name
    assert parse_aval(str(aval)) == aval


def test_an_unsupported_dtype_says_what_to_do() -> None:
    with pytest.raises(UnsupportedError, match=r"object is not supported.*\n.*astype"):
        dtype_name(np.dtype(object))


def test_ops_refuse_bad_operands() -> None:
    with pytest.raises(ShapeError, match="cannot reshape array of size 6"):
        ops.reshape.aval(Aval((2, 3), F32), shape=(4,))
    with pytest.raises(DTypeError, match="differ in dtype"):
        ops.add.aval(Aval((2,), F32), Aval((2,), F64))


NESTED = """graph(a: i64[], b: f64[n0]) {
  bind a {sym=n0[0:9]}
  c: f64[n0] = loop a b b {carried=1} body(a: i64[], b: f64[n0], c: f64[n0]) {
    d: f64[n0] = add b c
    e: i64[] = full {dtype=i64, shape=(), value=9}
    bind e {sym=n0[0:9]}
    return d
  }
  d: bool[] = full {dtype=bool, shape=(), value=True}
  e: f64[n0] = check c d a {error='ValueError', message='{} is a brace }'}
  f: f64[2*n0 + 1] = cond d e {} then(a: f64[n0]) {
    b: f64[2*n0 + 1] = full {dtype=f64, shape=(2*n0 + 1,), value=1.0}
    return b
  } orelse(a: f64[n0]) {
    b: f64[2*n0 + 1] = full {dtype=f64, shape=(2*n0 + 1,), value=0.0}
    return b
  }
  return f
}"""


def test_bodies_and_sizes_read_back() -> None:
    graph = parse(NESTED)
    assert show(graph) == NESTED.replace(" {} then", " then")
    sym = graph.nodes[0].params["sym"]
    assert (sym.low, sym.high) == (0, 9)
    assert graph.nodes[1].params["body"].in_avals[1].syms == {sym}


def test_names_of_sizes_are_canonical() -> None:
    text = NESTED.replace("n0", "width")
    assert show(parse(text)) == show(parse(NESTED))
