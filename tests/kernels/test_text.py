"""The text form of kernels: canonical, and the same after a round trip."""

from __future__ import annotations

import pytest

from jitml.errors import ParseError
from jitml.ir.types import F32, F64, I32
from jitml.kernels.ir import Apply, Const, Kernel, Load, Var
from jitml.kernels.text.parser import parse
from jitml.kernels.text.printer import show, show_expr, show_program
from jitml.kernels.text.program_parser import parse_program
from support.kernel_texts import BLOCK_KERNELS, KERNELS, PROGRAM


@pytest.mark.parametrize("text", [*KERNELS.values(), *BLOCK_KERNELS.values()], ids=[*KERNELS, *BLOCK_KERNELS])
def test_canonical_text_survives_a_round_trip(text: str) -> None:
    kernel = parse(text)
    assert show(kernel) == text
    assert parse(show(kernel)) == kernel


def test_program_survives_a_round_trip() -> None:
    program = parse_program(PROGRAM)
    assert show_program(program) == PROGRAM
    assert isinstance(program.steps[0], Kernel)
    assert program.constants["c"].tolist() == [1.0, -2.5, 3.0]


def test_notes_are_comments_and_do_not_change_what_is_read() -> None:
    program = parse_program(PROGRAM)
    text = show_program(program, notes={"t": "arena 64"})
    assert "buffer t: f64[3]  # arena 64" in text
    assert show_program(parse_program(text)) == PROGRAM


def test_parentheses_only_where_the_order_needs_them() -> None:
    x, y, z = (Var(n, F64) for n in "xyz")
    add = Apply("add", (x, y), F64)
    assert show_expr(Apply("mul", (add, z), F64)) == "(x + y) * z"
    assert show_expr(Apply("add", (add, z), F64)) == "x + y + z"
    assert show_expr(Apply("add", (z, add), F64)) == "z + (x + y)"
    assert show_expr(Apply("sub", (z, Apply("neg", (Const(-0.0, F64),), F64)), F64)) == "z - neg(-0.0)"


def test_buffers_may_be_called_what_statements_are() -> None:
    """Values are named a, b, ... z, aa, ab, ...: the 239th is `if`."""
    text = "kernel k(if: f64[2], for: f64[2]) {\n  if[0] = for[1]\n  for[1] add= 2.0\n}"
    assert show(parse(text)) == text


def test_constants_carry_their_dtype() -> None:
    assert [show_expr(Const(v, t)) for v, t in ((1, F32), (float("-inf"), F32), (-3, I32), (0, F64))] == [
        "1.0_f32",
        "-inf_f32",
        "-3_i32",
        "0.0",
    ]
    assert show_expr(Load("s", (), F64)) == "s[]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kernel k(y: f64[2]) { y[0] = q }", "q is not defined"),
        ("kernel k(y: f64[2]) { y[0] = exp(1) }", "exp is not defined for i64"),
        ("kernel k(y: f64[2]) { z[0] = y[0] } }", "expected the end, found '}'"),
        ("kernel k(y: f64[2]) { y[0] = z[0] }", "no buffer is named z"),
        ("kernel k(y: f64[2]) { y[0] = 1.0 ? }", "not a token: '? }'"),
        ("kernel k(y: i32[2]) { y[0] = 1.5_i32 }", "expected a number, found '1.5_i32 }'"),
        ("kernel k(y: i32[2]) { y[0] = 1_i31 }", "expected a number, found '1_i31 }'"),
    ],
)
def test_errors_quote_the_place(text: str, message: str) -> None:
    with pytest.raises(ParseError) as error:
        parse(text)
    assert error.value.message == message
