"""Parts of a trace: what does each room keep for a recording?

A room declares a dataclass of its own and finds it as `trace.call[ItsPart]` or `trace.local[ItsPart]`, empty at first. So
`record/` need not name what it does not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from jitml.ir.graph import Node


class CallPart:
    """What a room keeps for a call as a whole: the outermost trace and those inside it have one."""

    __slots__ = ()

    def refused(self, error: Exception) -> None:
        """A refusal is about to be raised: raise something else if there is something else to try."""

    def contradicted(self) -> None:
        """Something that the program claims does not hold in the call that is traced."""

    def cut(self, nodes: Sequence[Node]) -> None:
        """Nodes were recorded in vain: forget what is known of their results."""


class LocalPart:
    """What a room keeps for one trace: the call, a function that is transformed in it, or a body of a region."""

    __slots__ = ()


C = TypeVar("C", bound=CallPart)
L = TypeVar("L", bound=LocalPart)


class _PartsByType(dict[type[Any], Any]):
    def __missing__(self, part: type[Any]) -> Any:
        made = self[part] = part()
        return made


class CallParts(_PartsByType):
    """One of each kind, made when it is first asked for."""

    if TYPE_CHECKING:

        def __getitem__(self, part: type[C]) -> C: ...


class LocalParts(_PartsByType):
    """The same of one trace."""

    if TYPE_CHECKING:

        def __getitem__(self, part: type[L]) -> L: ...
