"""The text form of kernels, read back: `show(parse(show(k))) == show(k)`.

Line breaks mean nothing, and `;` is the same as one, so that a test can write a small kernel on one line.
"""

from __future__ import annotations

import ast
from typing import get_args

import jitml.ir.ops  # noqa: F401  # fills OPS
from jitml.errors import JitmlError, ParseError, bare_message
from jitml.ir.op import OPS
from jitml.ir.types import BOOL, DTYPES, F64, I64, Aval, DType, is_integer
from jitml.kernels.ir import (
    INFIX,
    Alloc,
    Apply,
    Buffer,
    Cell,
    Check,
    Combine,
    Const,
    Draw,
    Expr,
    If,
    Kernel,
    Kind,
    Let,
    Load,
    Loop,
    Observe,
    Stmt,
    Store,
    Update,
    Var,
    While,
)
from jitml.kernels.text.tokens import Tokens

_SYMBOLS = {symbol: (fn, strength) for fn, (symbol, strength) in INFIX.items()}
_COMBINES, _KINDS = get_args(Combine), get_args(Kind)


def parse(text: str) -> Kernel:
    """Read one kernel.

    Raises:
        ParseError: the text is not a kernel; the message quotes the place.

    >>> parse("kernel k(y: f32[4]) { for i in 0:4 { y[i] = 1.5_f32 } }").params[0].shape
    (4,)
    """
    parser = KernelParser(text)
    kernel = parser.kernel()
    parser.end()
    return kernel


class KernelParser(Tokens):
    """Recursive descent, with the dtypes of the names in scope."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.dtypes: dict[str, DType] = {}
        self.buffers: dict[str, Buffer] = {}

    # --------------------------------------------------------------------------------------------- expressions

    def expression(self, strength: int = 1) -> Expr:
        left = self.operand()
        while self.kind == "symbol" and self.token in _SYMBOLS and _SYMBOLS[self.token][1] >= strength:
            fn, own = _SYMBOLS[self.next()]
            left = self.apply(fn, (left, self.expression(own + 1)))
        return left

    def operand(self) -> Expr:
        if self.accept("("):
            inner = self.expression()
            self.expect(")")
            return inner
        negative = self.accept("-")
        if self.kind == "number":
            return self.number(negative)
        if negative:
            raise self.fail("a number after '-'")
        name = self.name()
        if name in ("true", "false"):
            return Const(name == "true", BOOL)
        if self.accept("["):
            return Load(name, self.sequence(self.expression, "]"), self.buffer_named(name).dtype)
        if self.accept("("):
            return self.apply(name, self.sequence(self.expression, ")"))
        if name not in self.dtypes:
            raise ParseError(f"{name} is not defined")
        return Var(name, self.dtypes[name])

    def number(self, negative: bool) -> Const:
        digits, _, suffix = self.token.partition("_")
        dtype = DTYPES.get(suffix) if suffix else I64 if digits.isdigit() else F64
        if self.kind != "number" or dtype is None or (is_integer(dtype) and not digits.isdigit()):
            raise self.fail("a number")
        self.next()
        value = int(digits) if is_integer(dtype) else float(digits)
        return Const(-value if negative else value, dtype)

    def apply(self, fn: str, args: tuple[Expr, ...]) -> Apply:
        if fn in DTYPES:
            return Apply("convert", args, DTYPES[fn])
        op = OPS.get(fn)
        if op is None:
            raise ParseError(f"no function is named {fn}")
        try:
            result = op.aval(*(Aval((), arg.dtype) for arg in args))
        except (JitmlError, TypeError) as error:
            raise ParseError(bare_message(error)) from error
        assert isinstance(result, Aval)
        return Apply(fn, args, result.dtype)

    # ---------------------------------------------------------------------------------------------- statements

    def buffer(self) -> Buffer:
        name = self.name()
        self.expect(":")
        dtype = self.dtype()
        self.expect("[")
        shape = self.sequence(self.integer, "]")
        strides = None
        if self.accept("strides"):
            self.expect("(")
            strides = self.sequence(self.integer, ")")
        return Buffer(name, dtype, shape, strides)

    def dtype(self) -> DType:
        if self.token not in DTYPES:
            raise self.fail("a dtype")
        return DTYPES[self.next()]

    def buffer_named(self, name: str) -> Buffer:
        if name not in self.buffers:
            raise ParseError(f"no buffer is named {name}")
        return self.buffers[name]

    def body(self) -> tuple[Stmt, ...]:
        """Statements up to the closing brace; names end there."""
        self.expect("{")
        dtypes = dict(self.dtypes)
        statements: list[Stmt] = []
        while not self.accept("}"):
            statements.append(self.statement())
        self.dtypes = dtypes
        return tuple(statements)

    def statement(self) -> Stmt:
        word = self.name()
        if self.accept("["):  # whatever the buffer is called: no other statement goes on like this
            at = self.sequence(self.expression, "]")
            combine = self.combine()
            return Store(word, at, self.expression(), combine)
        match word:
            case "for":
                return self.loop()
            case "if":
                condition, then = self.expression(), self.body()
                return If(condition, then, self.body() if self.accept("else") else ())
            case "while":
                return self.while_loop()
            case "alloc":
                buffer = self.buffer()
                self.buffers[buffer.name] = buffer
                return Alloc(buffer, self.body())
            case "let":
                return Let(*self.definition())
            case "cell":
                return Cell(*self.definition())
            case "draw":
                return self.draw()
            case "check":
                return self.check()
            case "observe":
                return Observe(self.expression())
        combine = self.combine()
        return Update(word, self.expression(), combine)

    def loop(self) -> Loop:
        index = self.name()
        self.expect("in")
        start = self.expression()
        self.expect(":")
        stop = self.expression()
        step = self.integer() if self.accept(":") else 1
        kind = self.next() if self.token in _KINDS else "serial"
        grain = self.integer() if self.accept("grain") else 1
        before = dict(self.dtypes)
        self.dtypes[index] = I64
        body = self.body()
        self.dtypes = before
        return Loop(index, start, stop, step, kind, body, grain)  # type: ignore[arg-type]  # kind is one of Kind

    def while_loop(self) -> While:
        """`while condition {...}`, or `while {test} condition {...}`: the body knows what the test names."""
        before = dict(self.dtypes)
        test: list[Stmt] = []
        if self.accept("{"):
            while not self.accept("}"):
                test.append(self.statement())
        condition = self.expression()
        body = self.body()
        self.dtypes = before
        return While(tuple(test), condition, body)

    def definition(self) -> tuple[str, Expr]:
        name = self.name()
        self.expect(":")
        dtype = self.dtype()
        self.expect("=")
        value = self.expression()
        if value.dtype != dtype:
            raise ParseError(f"{name} is {dtype}, its value {value.dtype}")
        self.dtypes[name] = dtype
        return name, value

    def draw(self) -> Draw:
        name = self.name()
        self.expect(":")
        dtype = self.dtype()
        self.expect("=")
        routine = self.name()
        self.expect("(")
        self.dtypes[name] = dtype
        return Draw(name, routine, self.sequence(self.expression, ")"), dtype)

    def combine(self) -> Combine | None:
        combine = self.next() if self.token in _COMBINES else None
        self.expect("=")
        return combine  # type: ignore[return-value]  # one of Combine

    def check(self) -> Check:
        condition = self.expression()
        self.expect(",")
        error = self.name()
        self.expect(",")
        if self.kind != "string":
            raise self.fail("a message")
        message = ast.literal_eval(self.next())
        values: list[Expr] = []
        while self.accept(","):
            values.append(self.expression())
        return Check(condition, error, message, tuple(values))

    # --------------------------------------------------------------------------------------- kernels

    def kernel(self) -> Kernel:
        self.expect("kernel")
        name = self.name()
        self.expect("(")
        params = self.sequence(self.buffer, ")")
        updates = self.updates()
        self.buffers = {b.name: b for b in params}
        optimize = self.accept("optimize")
        return Kernel(name, params, self.body(), updates, optimize=optimize)

    def updates(self) -> dict[str, str]:
        if not self.accept("updates"):
            return {}
        self.expect("(")
        return dict(self.sequence(self.pair, ")"))

    def pair(self) -> tuple[str, str]:
        left = self.name()
        self.expect("=")
        return left, self.name()
