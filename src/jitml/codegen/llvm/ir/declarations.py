"""Declarations, constants in memory and numbered metadata of a module: each is written once, however many functions use it."""

from __future__ import annotations

import re
from collections.abc import Container

from jitml.records import dataclass, field


def mentioned(text: str) -> list[str]:
    """The global names in some IR, in order.

    >>> mentioned("call void @f(ptr @x)")
    ['@f', '@x']
    """
    return re.findall(r"@[\w.]+", text)


@dataclass
class Declarations:
    """Those of a program, as it is written."""

    externals: dict[str, None] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)

    def declare(self, text: str) -> None:
        self.externals[f"declare {text}"] = None

    def declare_object(self, name: str) -> None:
        """Something that lies at an address which the runtime knows."""
        self.externals[f"@{name} = external global i8"] = None

    def constant(self, text: str) -> str:
        """The name of a constant in memory, for instance of `i32 5`."""
        return self.constants.setdefault(text, f"@constant.{len(self.constants)}")

    def function(self, head: str, body: str) -> str:
        """The name of a function for a cold path, which programs share: `double @f(double %x)`, and its blocks."""
        (name,) = mentioned(head)
        self.declare(f"hidden {head}")
        self.functions[name] = f"define hidden {head} #0 {{\n{body}\n}}"
        return name

    def module(self, head: str, text: str) -> None:
        """A function that a module of its own defines, `double @f(double)`, and the definitions in that module."""
        (name,) = mentioned(head)
        self.declare(f"hidden {head}")
        self.modules[name] = text

    def metadata(self, text: str) -> str:
        """The reference (`!3`) of a metadata node, for instance of `!{i32 1}`."""
        return f"!{self.nodes.setdefault(text, len(self.nodes))}"

    @property
    def symbols(self) -> tuple[str, ...]:
        """The declared functions that are not LLVM's own: somebody must supply them."""
        names = (re.search(r"@([\w.]+)\(", line) for line in self.externals)
        own = {name[1:] for name in (*self.functions, *self.modules)}
        return tuple(name[1] for name in names if name and not name[1].startswith("llvm.") and name[1] not in own)

    def text_for(self, names: Container[str]) -> str:
        """What a module needs that mentions these names, each with its `@`."""
        return "\n".join(
            [
                *self._of(names),
                *(f"{name} = private unnamed_addr constant {text}" for text, name in self.constants.items() if name in names),
                *(f"!{n} = {text}" for text, n in self.nodes.items()),
            ]
        )

    def shared(self, head: str, tail: str) -> list[str]:
        """The modules of the functions for cold paths, the same in all programs; `head` and `tail` are those of any module."""
        found = []
        for name, text in self.functions.items():
            found.append("\n\n".join([head, text, tail, "\n".join(sorted(self._of({*mentioned(text)} - {name}))), ""]))
        return found

    def _of(self, names: Container[str]) -> list[str]:
        return [line for line in self.externals if mentioned(line)[0] in names]
