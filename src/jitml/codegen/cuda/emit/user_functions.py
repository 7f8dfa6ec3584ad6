"""Users' functions: how does LLVM IR of a function of numbers become CUDA C++?  Line by line.

Names become variables, blocks labels, and what a block gets from those before it is assigned where they end. NVRTC puts the
functions into the kernels that call them. There is no memory in them but tables of constants.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from jitml.codegen.cuda.emit.spelling import type_of
from jitml.errors import UnsupportedError
from jitml.ir.op import ScalarCode
from jitml.ir.types import BOOL

_TYPES = {"i1": "bool", "i8": "u8", "i16": "u16", "i32": "u32", "i64": "u64", "float": "float", "double": "double"}
_TYPES["ptr"] = "u64"
_SIGNED = {"i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "i1": "bool"}
_FLAGS = re.compile(
    r"\b(?:nuw|nsw|exact|disjoint|nneg|samesign|fast|nnan|ninf|nsz|arcp|contract|afn|reassoc|noundef|tail|musttail|notail|"
    r"zeroext|signext|range\([^)]*\)|nofpclass\([^)]*\)) "
)
_BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "float": 4, "double": 8}
_INFIX = {
    **{"fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/", "add": "+", "sub": "-", "mul": "*", "udiv": "/", "urem": "%"},
    **{"and": "&", "or": "|", "xor": "^", "shl": "<<", "lshr": ">>", "sdiv": "/", "srem": "%", "ashr": ">>"},
}
_OF_SIGNED = ("sdiv", "srem", "ashr")
_INTEGER_ORDERS = {"eq": "==", "ne": "!=", "gt": ">", "ge": ">=", "lt": "<", "le": "<="}
_QUIET = {"oeq": "==", "ogt": ">", "oge": ">=", "olt": "<", "ole": "<=", "une": "!="}
_NEGATED = {"ueq": "one", "ugt": "ole", "uge": "olt", "ult": "oge", "ule": "ogt"}
_SAME_NAMES = frozenset(("fabs", "sqrt", "floor", "ceil", "trunc", "rint", "nearbyint", "round", "copysign", "fma", "pow", "exp"))
_SAME_NAMES |= {"exp2", "log", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh"}
_OTHER_NAMES = {"minnum": "fmin", "maxnum": "fmax"}
_CHOOSING = {"smax": (">", True), "smin": ("<", True), "umax": (">", False), "umin": ("<", False)}


def definition(code: ScalarCode, name: str) -> str:
    """A function of this name that computes so, and those that it calls.

    Raises:
        UnsupportedError: there is something in it that has no translation.
    """
    functions = re.findall(r"^define internal .*? @\S+?\((.*)\) #0 \{\n(.*?)^\}", code.text, flags=re.MULTILINE | re.DOTALL)
    if len(functions) != 1:
        raise _refused(name, "a call of a function that is not inlined")
    tables = [line for line in code.text.splitlines() if line.startswith("@")]
    return _Translation(name, code, tables, *functions[0]).text()


def _refused(name: str, what: str) -> UnsupportedError:
    return UnsupportedError(f"elementwise: {name.rpartition('_')[0]} cannot run on a GPU: it has {what}")


class _Translation:
    def __init__(self, name: str, code: ScalarCode, tables: list[str], parameters: str, body: str) -> None:
        self.name, self.code = name, code
        self.places: dict[str, str] = {}  # the addresses of tables, by their names
        self.tables = [*map(self.table, tables)]
        self.names: dict[str, str] = {}
        self.labels: dict[str, str] = {}
        self.variables: dict[str, str] = {}
        self.phis: dict[str, list[tuple[str, str, dict[str, str]]]] = {}
        self.parameters = [self.operand(part.split()[-1]) for part in parameters.split(", ")]
        self.blocks = [*self.read(body)]

    def text(self) -> str:
        lines = []
        for label, instructions in self.blocks:
            lines.append(f"{label}:;")
            lines += [line for instruction in instructions for line in self.instruction(label, instruction)]
        used = {name for line in lines for name in re.findall(r"goto (\w+);", line)}
        lines = [line for line in lines if not line.endswith(":;") or line[:-2] in used]
        head = ", ".join(f"{type_of(dtype)} {x}" for dtype, x in zip(self.code.operands, self.parameters, strict=True))
        variables = [f"  {kind} {name};" for name, kind in self.variables.items()]
        kind = type_of(self.code.result)
        whole = [*self.tables, f"JI_INLINE {kind} {self.name}({head}) {{", *variables, *(f"  {line}" for line in lines), "}"]
        return "\n".join(whole)

    def table(self, text: str) -> str:
        """Constants in memory."""
        found = re.fullmatch(r"(@\w+) = .*?constant \[(\d+) x (\w+)\] \[(.*)\](?:, align \d+)?", text)
        if found is None or found[3] not in _TYPES:
            raise _refused(self.name, "a table in memory")
        own, kind = f"{self.name}_{found[1][1:]}", found[3]
        values = [self.operand(value.split()[1], kind) for value in found[4].split(", ")]
        self.places[found[1]] = f"((u64){own})"
        return f"__device__ const {_TYPES[kind]} {own}[{found[2]}] = {{{', '.join(values)}}};"

    # -------------------------------------------------------------------------------------------------- blocks

    def read(self, body: str) -> Iterator[tuple[str, list[str]]]:
        """The blocks, with what each gets from which block before it."""
        label, instructions = self.label("entry"), list[str]()
        is_first = True
        body = re.sub(r"\[\n(.*?)\n\s*\]", lambda m: f"[{' '.join(m[1].split())}]", body, flags=re.DOTALL)  # of a switch
        for line in body.splitlines():
            line = line.partition(";")[0].rstrip()
            if not line:
                continue
            if not line.startswith(" "):
                own = line.rstrip(":")
                if is_first and not instructions:
                    self.labels[own] = label
                else:
                    yield label, instructions
                    label, instructions = self.label(own), []
                is_first = False
                continue
            is_first = False
            found = re.fullmatch(r"\s*(%\S+) = phi (?:[a-z]+ )*?(\w+) (\[.*)", line)
            if found is None:
                instructions.append(line.strip())
                continue
            name, kind = self.defined(found[1], found[2]), found[2]
            sources = re.findall(r"\[ (.+?), %(\S+?) \]", found[3])
            given = {self.label(source): self.operand(value, kind) for value, source in sources}
            self.phis.setdefault(label, []).append((name, self.type(kind), given))
        yield label, instructions

    def label(self, name: str) -> str:
        return self.labels.setdefault(name.strip('"'), f"block{len(self.labels)}")

    def jump(self, source: str, target: str) -> str:
        """To another block, with what that gets from here: all of it is read before any is changed."""
        moves = [(name, kind, given[source]) for name, kind, given in self.phis.get(target, ())]
        moves = [move for move in moves if move[0] != move[2]]
        if not moves:
            return f"goto {target};"
        if len(moves) == 1:
            return f"{{ {moves[0][0]} = {moves[0][2]}; goto {target}; }}"
        first = " ".join(f"{kind} n{k} = {value};" for k, (_, kind, value) in enumerate(moves))
        return f"{{ {first} {' '.join(f'{name} = n{k};' for k, (name, _, _) in enumerate(moves))} goto {target}; }}"

    # ------------------------------------------------------------------------------------------------ operands

    def type(self, kind: str) -> str:
        if kind not in _TYPES:
            raise _refused(self.name, f"a value of LLVM's type {kind}")
        return _TYPES[kind]

    def operand(self, text: str, kind: str = "") -> str:
        """A value by its name, or a number of this type."""
        if text.startswith("%"):
            return self.names.setdefault(text, f"x{len(self.names)}")
        if text in ("true", "false") or text in self.places:
            return self.places.get(text, text)
        if text in ("undef", "poison", "zeroinitializer"):
            return "0"
        if kind in ("float", "double"):
            value = struct.unpack(">d", bytes.fromhex(text[2:]))[0] if text.startswith("0x") else float(text)
            bits = int.from_bytes(struct.pack(">f" if kind == "float" else ">d", value))
            return f"ji_float((i32)0x{bits:08x}u)" if kind == "float" else f"ji_double((i64)0x{bits:016x}ULL)"
        if not re.fullmatch(r"-?\d+", text):
            raise _refused(self.name, f"the operand {text}")
        width = int(kind[1:] or 64)
        return f"({_TYPES[kind]}){int(text) & ((1 << width) - 1)}ULL"

    def defined(self, name: str, kind: str) -> str:
        variable = self.operand(name)
        self.variables[variable] = self.type(kind)
        return variable

    # -------------------------------------------------------------------------------------------- instructions

    def instruction(self, block: str, text: str) -> Iterator[str]:
        text = _FLAGS.sub("", text)
        name, _, what = text.partition(" = ") if text.startswith("%") else ("", "", text)
        word, _, rest = what.partition(" ")
        if not name:
            yield self.ending(block, word, rest)
            return
        kind, value = self.value(word, rest)
        yield f"{self.defined(name, kind)} = {value};"

    def ending(self, block: str, word: str, rest: str) -> str:
        if word == "ret":
            kind, value = rest.split()
            given = self.operand(value, kind)
            return f"return {given} != 0;" if self.code.result == BOOL else f"return {given};"
        if word == "unreachable":
            return "return 0;"
        targets = [self.label(target) for target in re.findall(r"label %([^\s,\]]+)", rest)]
        if word == "br":
            jumps = [self.jump(block, target) for target in targets]
            if len(jumps) == 1:
                return jumps[0]
            return f"if ({self.operand(rest.split()[1].rstrip(','))}) {jumps[0]} else {jumps[1]}"
        if word == "switch" and (found := re.match(r"(\w+) (\S+), ", rest)):
            values = re.findall(rf"{found[1]} (-?\d+), label", rest)
            tested = self.operand(found[2], found[1])
            cases = "".join(
                f"if ({tested} == {self.operand(value, found[1])}) {self.jump(block, target)} else "
                for value, target in zip(values, targets[1:], strict=True)
            )
            return f"{cases}{self.jump(block, targets[0])}"
        raise _refused(self.name, f"LLVM's instruction {word}")

    def value(self, word: str, rest: str) -> tuple[str, str]:
        """The type of a result, and its expression."""
        if word in _INFIX or word in ("frem", "fneg", "freeze"):
            kind, _, operands = rest.partition(" ")
            xs = [self.operand(x, kind) for x in operands.split(", ")]
            return kind, self.arithmetic(word, kind, xs)
        if word in ("icmp", "fcmp"):
            order, kind, operands = rest.split(" ", 2)
            xs = [self.operand(x, kind) for x in operands.split(", ")]
            return "i1", self.comparison(order, kind, xs)
        if word == "select":
            parts = [part.split() for part in rest.split(", ")]
            test, x, y = (self.operand(value, kind) for kind, value in parts)
            return parts[1][0], f"{test} ? {x} : {y}"
        if word == "call":
            return self.call(rest)
        if word == "getelementptr":
            return "ptr", self.address(rest)
        if word == "load" and (found := re.match(r"(\w+), ptr (\S+?)(?:,|$)", rest)):
            return found[1], f"*(const {self.type(found[1])}*)({self.operand(found[2], 'ptr')})"
        if found := re.fullmatch(r"(\w+) (\S+) to (\w+)", rest):
            return found[3], self.conversion(word, found[1], self.operand(found[2], found[1]), found[3])
        raise _refused(self.name, f"LLVM's instruction {word}")

    def address(self, rest: str) -> str:
        """A place in a table: so many elements, or arrays of elements, behind another one."""
        found = re.fullmatch(r"(?:inbounds )?(?:\[(\d+) x )?(\w+)\]?, ptr (\S+)((?:, i\d+ \S+)+)", rest)
        if found is None or found[2] not in _BYTES:
            raise _refused(self.name, "an address in memory")
        sizes = [_BYTES[found[2]] * int(found[1] or 1), _BYTES[found[2]]]
        steps = [step.split() for step in found[4].removeprefix(", ").split(", ")]
        terms = [f"(u64)({_SIGNED[kind]}){self.operand(x, kind)} * {size}" for size, (kind, x) in zip(sizes, steps)]
        return " + ".join([self.operand(found[3], "ptr"), *terms])

    def arithmetic(self, word: str, kind: str, xs: list[str]) -> str:
        own = self.type(kind)
        if word == "fneg":
            return f"-{xs[0]}"
        if word == "freeze":
            return xs[0]
        if word == "frem":
            return f"fmod{'f' if kind == 'float' else ''}({xs[0]}, {xs[1]})"
        x, y = (f"({_SIGNED[kind]}){x}" for x in xs) if word in _OF_SIGNED else xs
        if word in ("shl", "lshr", "ashr"):
            y = f"({y} & {8 * _BYTES[kind] - 1})"  # of others nobody reads the result; C++ would not know it
        if kind in ("i8", "i16") and word == "mul":
            x = f"(u32){x}"  # C++ would multiply signed ones, which may not overflow
        return f"({own})({x} {_INFIX[word]} {y})"

    def comparison(self, order: str, kind: str, xs: list[str]) -> str:
        x, y = xs
        self.type(kind)
        if kind not in ("float", "double"):
            if order[0] == "s":
                x, y = (f"({_SIGNED[kind]}){v}" for v in xs)
            return f"{x} {_INTEGER_ORDERS[order if order in ('eq', 'ne') else order[1:]]} {y}"
        if order in _QUIET:
            return f"{x} {_QUIET[order]} {y}"
        if order == "one":
            return f"({x} < {y} || {x} > {y})"
        if order in ("ord", "uno"):
            return f"({x} == {x} && {y} == {y})" if order == "ord" else f"({x} != {x} || {y} != {y})"
        return f"!({self.comparison(_NEGATED[order], kind, xs)})"

    def conversion(self, word: str, kind: str, x: str, target: str) -> str:
        to, given = self.type(target), self.type(kind)
        if word in ("zext", "fpext", "fptrunc", "uitofp", "fptoui"):
            return f"({to}){x}"
        if word == "trunc":
            return f"({x} & 1) != 0" if target == "i1" else f"({to}){x}"
        if word in ("sext", "sitofp"):
            if kind == "i1":
                return f"({to})(0 - ({_SIGNED.get(target, 'i32')}){x})"
            return f"({to})({_SIGNED[kind]}){x}"
        if word == "fptosi":
            return f"({to})({_SIGNED[target]}){x}"
        if word == "bitcast" and {given, to} <= {"float", "u32", "double", "u64"}:
            if to in ("float", "double"):
                return f"ji_{to}(({'i32' if to == 'float' else 'i64'}){x})"
            return f"({to})ji_bits({x})"
        raise _refused(self.name, f"LLVM's instruction {word}")

    def call(self, rest: str) -> tuple[str, str]:
        found = re.match(r"(\w+) @([\w.]+)\((.*?)\)$", rest.strip())
        if found is None:
            raise _refused(self.name, "a call that is not known")
        kind, function, given = found[1], found[2], found[3]
        own, parts = self.type(kind), [part.split() for part in given.split(", ")]
        xs = [self.operand(part[-1], part[0]) for part in parts]
        suffix = "f" if kind == "float" else ""
        if not function.startswith("llvm."):
            return kind, f"{function}({', '.join(xs)})"
        what = function.split(".")[1]
        if what in _SAME_NAMES or what in _OTHER_NAMES:
            return kind, f"{_OTHER_NAMES.get(what, what)}{suffix}({', '.join(xs)})"
        if what in _CHOOSING:
            order, is_signed = _CHOOSING[what]
            x, y = (f"({_SIGNED[kind]}){v}" for v in xs) if is_signed else xs
            return kind, f"{x} {order} {y} ? {xs[0]} : {xs[1]}"
        if what == "abs":
            return kind, f"({_SIGNED[kind]}){xs[0]} < 0 ? ({own})(0 - {xs[0]}) : {xs[0]}"
        if what in ("fshl", "fshr") and kind in ("i32", "i64"):
            width = int(kind[1:])
            count = f"({xs[2]} & {width - 1})"
            there, back = ("<<", ">>") if what == "fshl" else (">>", "<<")
            first, second = (xs[0], xs[1]) if what == "fshl" else (xs[1], xs[0])
            return kind, f"{count} ? ({own})({first} {there} {count} | {second} {back} ({width} - {count})) : {first}"
        raise _refused(self.name, f"LLVM's function {function}")


__all__ = ["definition"]
