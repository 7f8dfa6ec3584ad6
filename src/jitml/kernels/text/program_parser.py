"""The text form of kernel programs, read back; decisions are not part of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitml.errors import ParseError, bare_message
from jitml.ir.text.parser import parse, parse_params
from jitml.ir.types import I64
from jitml.kernels.ir import Buffer, Expr
from jitml.kernels.program import Call, KernelProgram, Region, Step
from jitml.kernels.sizes import SizeSource
from jitml.kernels.text.parser import KernelParser


def parse_program(text: str) -> KernelProgram:
    """Read a kernel program.

    Raises:
        ParseError: the text is not a program; the message quotes the place.
    """
    parser = _ProgramParser(text)
    program = parser.program()
    parser.end()
    return program


class _ProgramParser(KernelParser):
    """Kernels, calls and regions, and what is said about their buffers."""

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
        joined: set[str] = set()
        packed: set[str] = set()
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
            elif self.token in ("joined", "packed"):
                (joined if self.next() == "joined" else packed).add(self.name())
            elif self.token in ("buffer", "constant"):
                is_constant = self.next() == "constant"
                buffer = self.buffer()
                buffers[buffer.name] = buffer
                if is_constant:
                    self.expect("=")
                    constants[buffer.name] = self.constant(buffer)
            else:
                steps.append(self.call())
        return KernelProgram(
            buffers,
            inputs,
            outputs,
            constants,
            aliases,
            tuple(steps),
            sizes,
            extents,
            exact,
            measured,
            frozenset(joined),
            frozenset(packed),
        )

    def constant(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        literal = self.literal()
        try:
            return np.array(literal, buffer.dtype).reshape(buffer.shape)
        except (ValueError, OverflowError) as error:
            raise ParseError(f"{buffer.name}: {bare_message(error)}") from error

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
        updates = self.updates()
        params: dict[str, Any] = {}
        if self.token == "{":
            params = parse_params(self.braces())
        while self.kind == "name" and self.tokens[self.position + 1][1] == "=":
            which = self.name()
            self.expect("=")
            params[which] = parse(self.braces())
        return Call(name, reads, writes, params, updates=updates)

    def braces(self) -> str:
        """The text from here to the closing brace of the first one that opens."""
        start, depth = self.tokens[self.position][2], 0
        while True:
            if self.kind == "end":
                raise self.fail("'}'")
            depth += (self.token == "{") - (self.token == "}")
            if self.next() == "}" and not depth:
                return self.text[start : self.tokens[self.position][2]]
