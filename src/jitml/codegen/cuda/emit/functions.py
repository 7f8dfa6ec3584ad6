"""Functions of scalars: how does a kernel's text compute a pointwise op?  In place, or by a function of its own.

What is one operation of C++ stands where it is used. Everything else is a function of the module, written once through the rules
of `scalar_math/`: `ji_exp_f32(x)`. Where a rule asks what number a constant operand is, that is a part of the function.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from jitml.codegen.cuda.emit.builder import CudaBuilder, CudaValue
from jitml.codegen.cuda.emit.spelling import literal, type_of
from jitml.codegen.scalar_math import emit
from jitml.ir.types import BOOL, DType, dtype_name
from jitml.kernels.ir import Combine
from jitml.records import dataclass, field

COMBINES: dict[Combine, str] = {
    **{"add": "add", "mul": "mul", "max": "maximum", "min": "minimum", "or": "bit_or", "and": "bit_and"},
}
_PARAMETERS = "xyzuvw"
_OFTEN = (
    8  # times in one kernel, beyond which a function of some length is called: else the compiler has so many copies to work on
)
_LONG = 6  # lines


@dataclass(frozen=True, slots=True)
class _Written:
    """An op, written once: `template` has `{0}`, `{1}`... for the texts of the operands that are not constants."""

    template: str
    is_call: bool


@dataclass
class ScalarFunctions:
    """The functions that the kernels of a module call, in the order in which they are defined."""

    definitions: list[str] = field(default_factory=list)
    known: dict[tuple[object, ...], _Written] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    long: dict[str, str] = field(default_factory=dict)  # those of some length, and what one that calls them looks like

    def apply(self, fn: str, args: Sequence[CudaValue], dtype: DType) -> CudaValue:
        """The text of an op on operands, of which each stands in it once."""
        types = tuple(x.dtype for x in args)
        written, given = self._plain((fn, dtype, *types), fn, args, dtype), args
        if written is None:
            written = self.known.get((fn, dtype, "any", *types))
        if written is None:
            key = (fn, dtype, *types, *((x.number, str(x.number)) for x in args))
            given = [x for x in args if x.number is None]
            written = self.known.get(key)
            if written is None:
                written, is_special = self._write(fn, args, dtype)
                if not is_special:
                    key, given = (fn, dtype, "any", *types), list(args)
                self.known[key] = written
        text = written.template.format(*(x.text for x in given))
        return CudaValue(dtype, text if written.is_call else f"({text})")

    def called_if_often(self, lines: Sequence[str]) -> list[str]:
        """The lines of a kernel, where long functions that stand there many times are called."""
        counts = Counter(re.findall(r"\b(ji_\w+)\(", "\n".join(lines)))
        often = [name for name, count in counts.items() if count > _OFTEN and name in self.long]
        if not often:
            return [*lines]
        for name in often:
            self._define(f"{name}_called", self.long[name])
        pattern = re.compile(rf"\b({'|'.join(often)})\(")
        return [pattern.sub(r"\1_called(", line) for line in lines]

    def _plain(self, key: tuple[object, ...], fn: str, args: Sequence[CudaValue], dtype: DType) -> _Written | None:
        """An op that is one operation whatever its operands are."""
        if key not in self.known:
            self.known[key] = (
                self._as_one_expression(fn, [CudaValue(x.dtype, f"@{k}@") for k, x in enumerate(args)], dtype) or _NOT_PLAIN
            )
        found = self.known[key]
        return None if found is _NOT_PLAIN else found

    def _as_one_expression(self, fn: str, args: Sequence[CudaValue], dtype: DType) -> _Written | None:
        builder = CudaBuilder()
        result = emit(builder, fn, args, dtype)
        for name, definition in builder.needed.items():
            self._define(name, definition)
        text = result.text
        if len(builder.lines) == 1:
            _, _, text = builder.lines[0].partition(" = ")
            text = text.removesuffix(";")
        if len(builder.lines) > 1 or any(text.count(x.text) > 1 for x in args):
            return None
        template = re.sub(r"@(\d)@", r"{\1}", text.replace("{", "{{").replace("}", "}}"))
        return _Written(template, not builder.lines or re.fullmatch(r"\w+\((@\d@(, )?)*\)", text) is not None)

    def _write(self, fn: str, args: Sequence[CudaValue], dtype: DType) -> tuple[_Written, bool]:
        """A function for an op, and whether it depends on the numbers among the operands."""
        builder = CudaBuilder()
        given = [x if x.number is not None else CudaValue(x.dtype, name) for x, name in zip(args, _PARAMETERS)]
        result = emit(builder, fn, given, dtype)
        is_special = builder.asks_for_constants
        if not is_special:
            builder, given = CudaBuilder(), [CudaValue(x.dtype, name) for x, name in zip(args, _PARAMETERS)]
            result = emit(builder, fn, given, dtype)
        variables = [x for x in given if x.number is None]
        name = self._free_name(fn, [x.dtype for x in args], dtype)
        params = ", ".join(f"{type_of(x.dtype)} {x.text}" for x in variables)
        head = f"JI_INLINE {type_of(dtype)} {name}({params}) {{"
        self.definitions.append("\n".join([head, *builder.lines, f"  return {result.text};", "}"]))
        if len(builder.lines) > _LONG:
            handed_on = ", ".join(x.text for x in variables)
            called = f"__device__ __noinline__ {type_of(dtype)} {name}_called({params})"
            self.long[name] = f"{called} {{ return {name}({handed_on}); }}"
        call = ", ".join(f"{{{k}}}" for k in range(len(variables)))
        return _Written(f"{name}({call})", True), is_special

    def _free_name(self, fn: str, types: Sequence[DType], dtype: DType) -> str:
        words = list(dict.fromkeys(map(dtype_name, types)))
        if fn == "convert":
            words.append(dtype_name(dtype))
        stem = name = "_".join(["ji", fn, *words])
        number = 1
        while name in self.names:
            number += 1
            name = f"{stem}_{number}"
        self.names.add(name)
        return name

    # ----------------------------------------------------------------------------------------------- reductions

    def across_lanes(self, combine: Combine, dtype: DType) -> str:
        """The function that combines a value of each lane of a whole warp, in a tree; every lane gets the bits of lane 0."""
        name, kind = f"ji_warp_{combine}_{dtype_name(dtype)}", type_of(dtype)
        carried = kind if dtype.itemsize >= 4 else "i32"
        other = CudaValue(dtype, f"({kind})__shfl_xor_sync(0xffffffffu, ({carried})x, step)")
        both = self.apply(COMBINES[combine], (CudaValue(dtype, "x"), other), dtype).text
        return self._define(
            name,
            f"""JI_INLINE {kind} {name}({kind} x) {{
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x = {both};
  return ({kind})__shfl_sync(0xffffffffu, ({carried})x, 0);
}}""",
        )

    def across_warps(self, combine: Combine, dtype: DType) -> str:
        """The function that combines a value of each warp of a block, in order, from a row of shared memory."""
        name, kind = f"ji_block_{combine}_{dtype_name(dtype)}", type_of(dtype)
        both = self.apply(COMBINES[combine], (CudaValue(dtype, "x"), CudaValue(dtype, f"ji_get<{kind}>(row, k)")), dtype).text
        return self._define(
            name,
            f"""template <int warps> JI_INLINE {kind} {name}(const u64* row) {{
  {kind} x = ji_get<{kind}>(row, 0);
#pragma unroll
  for (int k = 1; k < warps; k += 1) x = {both};
  return x;
}}""",
        )

    def _define(self, name: str, text: str) -> str:
        if name not in self.names:
            self.names.add(name)
            self.definitions.append(text)
        return name


_NOT_PLAIN = _Written("", False)


def identity_of(combine: Combine, dtype: DType) -> str:
    """What a reduction starts from: combining it changes nothing, not even the sign of -0.0."""
    if combine in ("max", "min"):
        return literal(_extreme(dtype, is_low=combine == "max"), dtype)
    if combine == "and":
        return literal(True if dtype == BOOL else -1, dtype)
    return literal(1 if combine == "mul" else -0.0 if dtype.kind == "f" else 0, dtype)


def _extreme(dtype: DType, *, is_low: bool) -> float:
    if dtype == BOOL:
        return not is_low
    if dtype.kind == "f":
        return float("-inf" if is_low else "inf")
    bits = 8 * dtype.itemsize
    if dtype.kind == "u":
        return 0 if is_low else (1 << bits) - 1
    low: int = -(1 << bits - 1)
    return low if is_low else -low - 1
