"""Programs among whose statements stand such as cannot be compiled: what may be, runs as before and after it."""

from __future__ import annotations

import re

from programs.drawn.choices import Choices
from programs.drawn.people import People
from programs.drawn.scope import INEXACT, ROUNDED, Scope
from programs.drawn.things import recipes
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
        lines = filled(self.choices.pick(BREAKS), **words).splitlines()
        around = any(line.strip() == recipes.BODY for line in lines)
        read = [self.scope.level_of(name) for name in re.findall(r"\w+", "\n".join(lines))]
        level = max([ROUNDED, *read])
        bound = INEXACT if ROUNDED in read and any(".sum()" in line for line in lines) else level  # a sum in any order
        if not (self._around(lines) if around else self.scope.attempt(*lines)):
            return False
        for name, of in ((words["v"], bound), (words["w"], bound), (words["l"], level), (words["x"], level)):
            if name in self.scope.values:
                self.scope.taint(name, of)
        return True
