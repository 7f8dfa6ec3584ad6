"""Programs among whose statements stand such as cannot be compiled: what may be, runs as before and after it."""

from __future__ import annotations

from programs.drawn.choices import Choices
from programs.drawn.people import People
from programs.drawn.scope import ROUNDED, Scope
from programs.drawn.things.breaks import BREAKS
from programs.drawn.things.thing import filled


class Breaks(People):
    """Writes numeric statements, and about as many that break."""

    def __init__(self, choices: Choices, scope: Scope) -> None:
        super().__init__(choices, scope, [])

    def statement(self, room: int) -> None:
        roll = self.choices.number(0, 99)
        if roll < 50 or self.scope.depth > 3:
            self.numeric(room)
        elif roll < 97:
            self.stop()
        else:
            self.table()

    def stop(self) -> bool:
        """A statement or block of those that break; what it binds or writes is as exact as what it reads."""
        words = self.words()
        return self._as_exact(filled(self.choices.pick(BREAKS), **words).splitlines(), words, ROUNDED)
