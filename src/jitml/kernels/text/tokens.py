"""The tokens of a kernel's text form, and taking them one by one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from jitml.errors import ParseError

_TOKEN = re.compile(
    r"(?P<skip>[\s;]+|\#.*)"
    r"|(?P<number>\d+(?:\.\d*)?(?:e[+-]?\d+)?(?:_[a-z]\d+)?|(?:inf|nan)(?:_f\d+)?(?!\w))"
    r"|(?P<string>'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\")"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<symbol>->|==|!=|<=|>=|//|[-+*/%<>=()\[\]{},:])"
)
T = TypeVar("T")


class Tokens:
    """A text's tokens with a place among them, for parsers by recursive descent.

    Raises:
        ParseError: a part of the text is no token.
    """

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
