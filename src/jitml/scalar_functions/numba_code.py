"""Numba's code: a function of numbers, compiled by Numba, as LLVM IR that kernels hold, and as a ufunc for plain calls.

Numba writes a function that returns a status and puts the result into memory, between others for Python's callers. What is kept
of it are two functions: of the result, and of whether it raises. LLVM drops all else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np

from jitml.codegen.llvm.ir.operand import c_type
from jitml.errors import Source, UnsupportedError
from jitml.ir.op import ScalarCode
from jitml.ir.types import BOOL, DType
from jitml.records import dataclass

# What compiled code may call: it is in every process, and depends on its arguments alone.
_MATHEMATICS = frozenset((
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh", "erf", "erfc"),
    *("exp", "exp2", "expm1", "fabs", "floor", "fma", "fmax", "fmin", "fmod", "hypot", "ldexp", "lgamma", "log", "log10"),
    *("log1p", "log2", "logb", "nearbyint", "nextafter", "pow", "remainder", "rint", "round", "sin", "sinh", "sqrt"),
    *("tan", "tanh", "tgamma", "trunc"),
))  # fmt: skip
_MEMORY = frozenset(("memcpy", "memmove", "memset"))
_VALUE, _RAISES = "value", "raises"


@dataclass(frozen=True)
class KernelCode:
    """A function for arguments of some dtypes, as kernels hold it.

    Args:
        value: its result. raises: whether it raises; None: it never does.
        is_total: whether both end, whatever they are given.
    """

    value: ScalarCode
    raises: ScalarCode | None
    is_total: bool


def loop_of(function: Any, dtypes: tuple[DType, ...]) -> Any:
    """A ufunc of these dtypes; it raises what the function raises.

    Args:
        function: from `called_by_numba`.

    Raises:
        UnsupportedError: Numba cannot compile the function for these dtypes, or it does not return one number.
    """
    import numba

    with _told(function, dtypes):
        types = _types(dtypes)
        return numba.vectorize([types])(_forwarding(_checked(function, types), len(types)))


def code_of(function: Any, dtypes: tuple[DType, ...]) -> KernelCode | str:
    """What kernels hold, or why they cannot.

    Raises:
        UnsupportedError: as `loop_of`.
    """
    import numba

    with _told(function, dtypes):
        types = _types(dtypes)
        inner = numba.njit(error_model="numpy")(_forwarding(_checked(function, types), len(types)))
        inner.compile(types)
        made = inner.overloads[types]
        result = _dtype_of(made.signature.return_type, function)
    if unknown := [str(dtype) for dtype in (*dtypes, result) if not _is_held(dtype)]:
        return f"it computes with numbers of dtype {unknown[0]}"
    return _without_python(made, dtypes, result)


def _is_held(dtype: DType) -> bool:
    return dtype.kind in "iub" or (dtype.kind == "f" and dtype.itemsize in (4, 8))


def _types(dtypes: tuple[DType, ...]) -> tuple[Any, ...]:
    import numba

    return tuple(numba.from_dtype(dtype.newbyteorder("=")) for dtype in dtypes)


def _checked(function: Any, types: tuple[Any, ...]) -> Any:
    """The function; compiled by itself first, so that what is wrong has a place in the user's text."""
    if getattr(function, "_can_compile", False):
        function.compile(types)
        _dtype_of(function.overloads[types].signature.return_type, function)
    return function


def called_by_numba(function: Callable[..., Any]) -> Any:
    """A function as Numba calls it: `x / 0.0` is infinite, as in NumPy, unless it says otherwise itself."""
    import numba

    return numba.njit(error_model="numpy")(function) if type(function) is FunctionType else function


def _forwarding(dispatcher: Any, count: int) -> FunctionType:
    """A function that calls it: so Numba converts arguments to what it has been compiled for, if that is not for all."""
    names = ", ".join(f"x{k}" for k in range(count))
    namespace: dict[str, Any] = {"function": dispatcher}
    exec(f"def forward({names}):\n    return function({names})\n", namespace)  # names of our own
    made: FunctionType = namespace["forward"]
    return made


def _dtype_of(result: Any, function: Callable[..., Any]) -> DType:
    """The dtype of a number's type."""
    from numba.np.numpy_support import as_dtype

    types: Any = import_module("numba.core.types")
    if isinstance(result, (types.Number, types.Boolean)):
        return np.dtype(as_dtype(types.unliteral(result)))
    raise UnsupportedError(
        f"elementwise: {_name(function)} returns {result}, which is no number",
        source=_definition(function),
        remedy="It has to return one number, whichever way it takes.",
    )


# ------------------------------------------------------------------------------------------------------------ LLVM IR


def _without_python(overload: Any, dtypes: tuple[DType, ...], result: DType) -> KernelCode | str:
    import llvmlite.binding as llvm

    context, modules = llvm.create_context(), {}
    for what, back in _ENDS.items():
        entry = c_type(result if what == _VALUE else BOOL)
        given = ", ".join(f"{c_type(dtype)} %x{k}" for k, dtype in enumerate(dtypes))
        own = _ENTRY.format(
            what=what, entry=entry, called=overload.fndesc.llvm_func_name, result=c_type(result), given=given,
            back=back.format(result=c_type(result)),
        )  # fmt: skip
        modules[what] = llvm.parse_assembly(f"{overload.library.get_llvm_str()}\n{own}", context)
        _optimize(modules[what], what)
    calls = sorted(set().union(*map(_externals, modules.values())))
    if foreign := [name for name in calls if name not in _MEMORY and name.removesuffix("f") not in _MATHEMATICS]:
        return f"it needs Numba's runtime ({foreign[0]})"
    value = ScalarCode(_VALUE, _functions(str(modules[_VALUE]), _VALUE), dtypes, result)
    raises = ScalarCode(_RAISES, _functions(str(modules[_RAISES]), _RAISES), dtypes, BOOL)
    is_total = all(b"willreturn" in b" ".join(m.get_function(what).attributes) for what, m in modules.items())
    return KernelCode(value, None if _is_never(raises.text) else raises, is_total)


_ENTRY = """
define {entry} @{what}({given}) {{
  %result = alloca {result}
  %raised = alloca ptr
  %status = call i32 @{called}(ptr %result, ptr %raised, {given})
{back}
}}
"""
_ENDS = {
    _VALUE: "  %value = load {result}, ptr %result\n  ret {result} %value",
    _RAISES: "  %is = icmp ne i32 %status, 0\n  %value = zext i1 %is to i8\n  ret i8 %value",
}


def _optimize(module: Any, entry: str) -> None:
    """Put all that it calls into a function, and drop the rest."""
    import llvmlite.binding as llvm

    for each in (*module.functions, *module.global_variables):
        if not each.is_declaration and each.name != entry:
            each.linkage = "internal"
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    builder = llvm.create_pass_builder(llvm.Target.from_default_triple().create_target_machine(), options)
    builder.getModulePassManager().run(module, builder)


def _externals(module: Any) -> set[str]:
    names = {x.name for x in (*module.functions, *module.global_variables) if x.is_declaration}
    return {name for name in names if not name.startswith("llvm.")}


def _is_never(text: str) -> bool:
    """Whether what says whether something holds returns 0 at once."""
    return text.partition("{")[2].partition("}")[0].split()[-3:] == ["ret", "i8", "0"] and text.count("\n") <= 3


_AROUND = re.compile(r"^(?:;.*|source_filename.*|target .*|attributes #.*|!.*)\n?", re.MULTILINE)
_METADATA, _GROUP, _COMMENT = re.compile(r", ![\w.]+ !\w+"), re.compile(r" #\d+(?=$|[ ,)])"), re.compile(r"\s*; preds = .*")
_NAME = re.compile(r'[%@](?:"[^"]*"|[\w.$-]+)')
_LABEL = re.compile(r'^(?:"[^"]*"|[\w.$-]+):')


def _functions(text: str, entry: str) -> str:
    """A module without target, attributes and metadata: to be part of another, whose functions have the attributes #0.

    Names are numbers: Numba counts what a process has compiled.
    """
    names, lines = {f"@{entry}": f"@{entry}"}, list[str]()
    for line in _AROUND.sub("", text).splitlines():
        if not line.startswith("@"):
            line = _GROUP.sub("", _COMMENT.sub("", _METADATA.sub("", line)))
        if line.startswith("define "):
            names = {old: new for old, new in names.items() if old[0] == "@"}
            head = line.rstrip("{ ").rpartition(")")[0]
            lines += [f"{head.replace('define ', 'define internal ').replace('internal internal', 'internal')}) #0 {{", "%0:"]
        elif _LABEL.match(line):
            if lines[-1] == "%0:":
                lines.pop()
            lines.append(f"%{line}")
        elif line.strip():
            lines.append(line)
    foreign = {f"@{name}" for name in re.findall(r"^declare .*?@([\w.]+)\(", text, flags=re.MULTILINE)}

    def named(found: re.Match[str]) -> str:
        name = found[0]
        return name if name in foreign else names.setdefault(name, f"{name[0]}n{len(names)}")

    renamed = [line if line.startswith("declare ") else _NAME.sub(named, line) for line in lines]
    return "\n".join(line[1:] if line.startswith("%") and line.endswith(":") else line for line in renamed)


# -------------------------------------------------------------------------------------------------------------- errors

_STYLE = re.compile(r"\x1b\[[\d;]*m")
_PREAMBLES = ("Failed in", "- Resolution failure", "Invalid use")
_PLACE = re.compile(r'File "([^"]+)", line (\d+)')


@contextmanager
def _told(function: Callable[..., Any], dtypes: tuple[DType, ...]) -> Iterator[None]:
    """Numba's errors in our words: what it says first, and the line of the user's that it means."""
    from numba.core.errors import NumbaError

    try:
        yield
    except (NumbaError, NotImplementedError) as error:
        if isinstance(error, UnsupportedError):
            raise
        text = _STYLE.sub("", str(error))
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        said = next((line for line in lines if not line.startswith(_PREAMBLES)), type(error).__name__)
        called = f"{_name(function)}({', '.join(map(str, dtypes))})"
        raise UnsupportedError(f"elementwise: Numba cannot compile {called}: {said}", source=_place(text, function)) from error


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", None) or getattr(function, "__name__", function))


def _place(text: str, function: Callable[..., Any]) -> Source | None:
    whole = _definition(function)
    if whole is None:
        return None
    lines = [int(line) for file, line in _PLACE.findall(text) if whole.file.endswith(file.lstrip("."))]
    return Source(whole.file, lines[-1] if lines else whole.line, whole.function)


def _definition(function: Any) -> Source | None:
    code = getattr(getattr(function, "py_func", function), "__code__", None)
    return None if code is None else Source(code.co_filename, code.co_firstlineno, code.co_name)


__all__ = ["KernelCode", "called_by_numba", "code_of", "loop_of"]
