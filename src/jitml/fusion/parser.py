"""The text form of kernels and kernel programs, read back: `show(parse(show(k))) == show(k)`.

Line breaks mean nothing, and `;` is the same as one, so that a test can write a small kernel on one line.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any, TypeVar, get_args

import numpy as np

import jitml.ir.ops  # noqa: F401  # fills OPS
from jitml.errors import JitmlError, ParseError
from jitml.fusion.loops import (
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
from jitml.fusion.printer import INFIX
from jitml.fusion.program import Call, KernelProgram, Region, Step
from jitml.fusion.sizes import SizeSource
from jitml.ir.op import OPS
from jitml.ir.parser import parse_params
from jitml.ir.types import BOOL, DTYPES, F64, I64, Aval, DType

_TOKEN = re.compile(
    r"(?P<skip>[\s;]+|\#.*)"
    r"|(?P<number>\d+(?:\.\d*)?(?:e[+-]?\d+)?(?:_[a-z]\d+)?|(?:inf|nan)(?:_f\d+)?(?!\w))"
    r"|(?P<string>'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\")"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<symbol>->|==|!=|<=|>=|//|[-+*/%<>=()\[\]{},:])"
)
_SYMBOLS = {symbol: (fn, strength) for fn, (symbol, strength) in INFIX.items()}
_COMBINES, _KINDS = get_args(Combine), get_args(Kind)
T = TypeVar("T")


def parse(text: str) -> Kernel:
    """Read one kernel.

    Raises:
        ParseError: the text is not a kernel; the message quotes the place.

    >>> parse("kernel k(y: f32[4]) { for i in 0:4 { y[i] = 1.5_f32 } }").params[0].shape
    (4,)
    """
    parser = _Parser(text)
    kernel = parser.kernel()
    parser.end()
    return kernel


def parse_program(text: str) -> KernelProgram:
    """Read a kernel program; decisions are not part of its text."""
    parser = _Parser(text)
    program = parser.program()
    parser.end()
    return program


class _Parser:
    """Recursive descent over tokens, with the dtypes of the names in scope."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str, int]] = []
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise ParseError(f"not a token: {text[at : at + 40]!r}")
            if match.lastgroup != "skip":
                self.tokens.append((str(match.lastgroup), match[0], at))
            at = match.end()
        self.tokens.append(("end", "", len(text)))
        self.position = 0
        self.dtypes: dict[str, DType] = {}
        self.buffers: dict[str, Buffer] = {}

    # -------------------------------------------------------------------------------------------------- tokens

    @property
    def kind(self) -> str:
        return self.tokens[self.position][0]

    @property
    def token(self) -> str:
        return self.tokens[self.position][1]

    def fail(self, expected: str) -> ParseError:
        at = self.tokens[self.position][2]
        return ParseError(f"expected {expected}, found {self.text[at : at + 40]!r}")

    def next(self) -> str:
        token = self.token
        self.position += 1
        return token

    def accept(self, token: str) -> bool:
        if self.token != token or self.kind == "string":
            return False
        self.position += 1
        return True

    def expect(self, *tokens: str) -> None:
        for token in tokens:
            if not self.accept(token):
                raise self.fail(repr(token))

    def name(self) -> str:
        if self.kind != "name":
            raise self.fail("a name")
        return self.next()

    def integer(self) -> int:
        sign = -1 if self.accept("-") else 1
        if not self.token.isdigit():
            raise self.fail("an integer")
        return sign * int(self.next())

    def end(self) -> None:
        if self.kind != "end":
            raise self.fail("the end")

    def sequence(self, item: Callable[[], T], close: str) -> tuple[T, ...]:
        """Items with commas between them, and the closing bracket."""
        items: list[T] = []
        while not self.accept(close):
            if items:
                self.expect(",")
            items.append(item())
        return tuple(items)

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
        digits, _, suffix = self.next().partition("_")
        is_integer = digits.isdigit() and DTYPES.get(suffix, I64).kind in "iu"
        dtype = DTYPES[suffix] if suffix else I64 if is_integer else F64
        value = int(digits) if is_integer else float(digits)
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
            raise ParseError(str(error)) from error
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
        if self.accept("["):
            at = self.sequence(self.expression, "]")
            combine = self.combine()
            return Store(word, at, self.expression(), combine)
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

    # --------------------------------------------------------------------------------------- kernels, programs

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

    def region(self) -> Region:
        self.expect("region")
        name, kind = self.name(), self.name()
        if kind not in ("loop", "while", "cond"):
            raise self.fail("loop, while or cond")
        control = self.integer() if self.kind == "number" else self.name()
        index = self.name() if self.accept("index") else None
        updates = self.updates()
        scratch = self.name() if self.accept("scratch") else None
        self.expect("{")
        runs: list[tuple[tuple[str, ...], tuple[str, ...], KernelProgram]] = []
        while self.accept("run"):
            self.expect("(")
            arguments = self.sequence(self.name, ")")
            self.expect("->", "(")
            runs.append((arguments, self.sequence(self.name, ")"), self.program()))
        self.expect("}")
        arguments_of, results_of, bodies = (tuple(run[k] for run in runs) for k in range(3))
        return Region(name, kind, bodies, arguments_of, results_of, control, index, updates, scratch)  # type: ignore[arg-type]  # kind was looked at

    def pair(self) -> tuple[str, str]:
        left = self.name()
        self.expect("=")
        return left, self.name()

    def program(self) -> KernelProgram:
        self.expect("program", "(")
        inputs = self.sequence(self.name, ")")
        self.expect("->", "(")
        outputs = self.sequence(self.name, ")")
        self.expect("{")
        buffers: dict[str, Buffer] = {}
        constants: dict[str, np.ndarray[Any, Any]] = {}
        aliases: dict[str, str] = {}
        sizes: dict[str, SizeSource] = {}
        extents: dict[str, tuple[Expr, ...]] = {}
        exact: dict[str, tuple[Expr, ...]] = {}
        measured: dict[str, tuple[int | None, ...]] = {}
        steps: list[Step] = []
        while not self.accept("}"):
            if self.token == "kernel":
                steps.append(self.kernel())
            elif self.token == "region":
                steps.append(self.region())
            elif self.accept("alias"):
                output, source = self.pair()
                aliases[output] = source
            elif self.accept("size"):
                name, source = self.pair()
                self.expect("in")
                low = self.integer()
                self.expect(":")
                sizes[name] = SizeSource(source, low, self.integer())
                self.dtypes[name] = I64
            elif self.token in ("extent", "exact"):
                table = extents if self.next() == "extent" else exact
                name = self.name()
                self.expect("=", "[")
                table[name] = self.sequence(self.expression, "]")
            elif self.accept("measured"):
                name = self.name()
                self.expect("=", "[")
                measured[name] = self.sequence(lambda: None if self.accept("_") else self.integer(), "]")
            elif self.token in ("buffer", "constant"):
                is_constant = self.next() == "constant"
                buffer = self.buffer()
                buffers[buffer.name] = buffer
                if is_constant:
                    self.expect("=")
                    constants[buffer.name] = np.array(self.literal(), buffer.dtype).reshape(buffer.shape)
            else:
                steps.append(self.call())
        return KernelProgram(buffers, inputs, outputs, constants, aliases, tuple(steps), sizes, extents, exact, measured)

    def literal(self) -> Any:
        """A number or nested list of them."""
        if self.accept("["):
            return list(self.sequence(self.literal, "]"))
        if self.token in ("True", "False"):
            return self.next() == "True"
        negative = self.accept("-")
        return self.number(negative).value

    def call(self) -> Call:
        name = self.name()
        self.expect("(")
        reads = self.sequence(self.name, ")")
        self.expect("->", "(")
        writes = self.sequence(self.name, ")")
        params: dict[str, Any] = {}
        if self.token == "{":
            start = self.tokens[self.position][2]
            while self.next() != "}":
                pass
            params = parse_params(self.text[start : self.tokens[self.position][2]])
        return Call(name, reads, writes, params)
