"""Traced texts: what is a text with traced values in it?

`TracedText`: its parts, which become a `str` where the values are known.

    f"{step}: {error:.3e}"      __jm.text("", (step, "", ""), ": ", (error, "", ".3e"))

A function may print, log, raise or return such a text. Python cannot look into it while the function is traced.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import optree

from jitml.records import dataclass
from jitml.trace.record.pytree import NAMESPACE, children, flatten, unflatten
from jitml.trace.record.recording import current_trace, unsupported
from jitml.trace.values.boxing import TracedArray, TracedNumber, TracedScalar, is_traced
from jitml.trace.values.registry import implements

_CONVERSIONS: dict[str, Callable[[Any], Any]] = {"": lambda x: x, "s": str, "r": repr, "a": ascii}


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How a value is written into a text.

    Args:
        conversion: "s", "r", "a" or "", as behind `!` in an f-string; "%" if `spec` is a text with %-signs, "{}" if it has
            braces, ":" if the format is a value too and `spec` the conversion.
    """

    conversion: str
    spec: str

    def write(self, value: Any) -> str:
        """The value as text.

        >>> TextFormat("", ".2f").write(1.5), TextFormat("%", "%d of %d").write((1, 2)), TextFormat("r", "").write("x")
        ('1.50', '1 of 2', "'x'")
        """
        if self.conversion == "%":
            return str(self.spec % value)
        if self.conversion == "{}":
            args, kwargs = value
            return self.spec.format(*args, **kwargs)
        if self.conversion == ":":
            value, spec = value
            return format(_CONVERSIONS[self.spec](value), spec)
        return format(_CONVERSIONS[self.conversion](value), self.spec)


class TracedText:
    """A text: plain parts, and values with their formats."""

    __slots__ = ("formats", "values")

    def __init__(self, formats: tuple[str | TextFormat, ...], values: tuple[Any, ...]) -> None:
        self.formats = formats
        self.values = values

    def __add__(self, other: Any) -> Any:
        return text(self, other) if isinstance(other, (str, TracedText)) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return text(other, self) if isinstance(other, str) else NotImplemented

    def _refuse(self, *_: Any) -> NoReturn:
        unsupported(
            "a text that holds traced values is needed before they are computed",
            "Such a text can be printed, logged, raised in an exception or returned.",
        )

    __len__ = __iter__ = __contains__ = __getitem__ = __mod__ = __mul__ = __bool__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse

    def __str__(self) -> str:
        """The text itself, as of a dict's key, for which the integers in it have to be known.

        Outside any trace it is one of an exception that has ended its trace: there are no values any more.
        """
        if current_trace() is None:
            return "".join(part if isinstance(part, str) else "..." for part in self.formats)
        if any(is_traced(x) and (type(x) is TracedArray or x.dtype.kind not in "biu") for x in flatten(self.values)[0]):
            self._refuse()
        leaves, spec = flatten(self.values)
        return str(_join(self.formats, unflatten(spec, [_known(leaf) for leaf in leaves])))

    def __hash__(self) -> int:
        return hash(str(self))

    def __eq__(self, other: object) -> bool:
        return str(self) == (str(other) if isinstance(other, TracedText) else other)

    def __format__(self, spec: str) -> str:
        self._refuse()

    def __getattr__(self, name: str) -> Any:
        if hasattr(str, name):
            self._refuse()
        raise AttributeError(f"'str' object has no attribute '{name}'")


def _known(x: Any) -> Any:
    if type(x) is TracedNumber:
        return x.known()
    return x.dtype.type(int(x)) if is_traced(x) else x


def _join(formats: tuple[str | TextFormat, ...], values: Iterable[Any]) -> Any:
    """The text itself, unless a value is still traced."""
    given = tuple(values)
    if any(map(is_traced, flatten(given)[0])):
        return TracedText(formats, given)
    remaining = iter(given)
    return "".join(part if isinstance(part, str) else part.write(next(remaining)) for part in formats)


_REGISTER: Any = optree.register_pytree_node  # whose stubs ask for a collection
_REGISTER(TracedText, lambda whole: (whole.values, whole.formats), _join, namespace=NAMESPACE)


def text(*parts: Any) -> Any:
    """A text of parts: texts, and triples of a value, a conversion and a format.

    >>> text("a", (1.5, "", ".2f"), "b")
    'a1.50b'
    """
    formats: list[str | TextFormat] = []
    values: list[Any] = []
    for part in parts:
        if isinstance(part, str):
            formats.append(part)
            continue
        value, conversion, spec = (part, "", "") if isinstance(part, TracedText) else part
        if isinstance(value, TracedText) and not spec and conversion in ("", "s"):
            formats += value.formats
            values += value.values
        elif isinstance(spec, TracedText):
            formats.append(TextFormat(":", conversion))
            values.append((value, spec))
        else:
            formats.append(TextFormat(conversion, spec))
            values.append(value)
    return _join(tuple(formats), values)


def filled_in(template: str, /, *args: Any, **kwargs: Any) -> Any:
    """`template.format(*args, **kwargs)`"""
    return text(((args, kwargs), "{}", template))


def percent(template: Any, values: Any) -> Any:
    """`template % values`"""
    return text((values, "%", template)) if type(template) is str else template % values


def joined(separator: str, parts: Iterable[Any]) -> Any:
    """`separator.join(parts)`"""
    listed = list(parts)
    if not any(type(part) is TracedText for part in listed):
        return separator.join(listed)
    return text(*[piece for part in listed for piece in (separator, part)][1:])


@implements(builtins.str)
def _str(*args: Any, **kwargs: Any) -> Any:
    return str(*args, **kwargs) if len(args) != 1 or kwargs else text((args[0], "s", ""))


@implements(builtins.repr)
def _repr(x: Any, /) -> Any:
    return text((x, "r", ""))


@implements(builtins.format)
def _format(x: Any, spec: str = "", /) -> Any:
    return text((x, "", spec))


def plain_key(key: Any) -> Any:
    """A key, or a member of a set, with the numbers in it as they are: looking it up has guarded them."""
    if type(key) in (TracedNumber, TracedScalar):
        return key.known()
    if type(key) is TracedText:
        return str(key)
    if isinstance(key, frozenset):
        members = [*map(plain_key, key)]
        return key if all(a is b for a, b in zip(members, key)) else type(key)(members)
    parts, spec = children(key)
    plain = [*map(plain_key, parts)]
    return key if all(a is b for a, b in zip(plain, parts)) else unflatten(spec, plain)
