"""Arguments: dtypes, shapes, layouts, overlap, special values; as source text of a function `arguments(call)`.

Call 0 is what the program was written on, call 1 has other values, call 2 other sizes as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from programs.drawn.choices import Choices

DTYPES = ("float64", "int64", "float32", "bool", "int32", "uint8", "int8", "uint32", "int16", "uint64", "uint16")
SHAPES = ((5,), (3, 4), (4, 4), (7,), (1,), (0,), (), (2, 3, 4), (17,), (1, 4), (6, 2), (33,), (2, 0), (130,), (9, 15))
# How the argument is taken out of an array that is made for it: expression, and what that array's shape must be.
LAYOUTS = ("{}", "{}.T", "{}[::-1]", "{}[::2]", "np.asfortranarray({})", "{}[..., ::-1]", "{}[1:]", "{}[..., 1:]")
CALLS = 3


@dataclass(frozen=True)
class Argument:
    """One array argument: `special` puts nan, inf or extreme values into it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    layout: str
    special: bool
    read_only: bool

    def lines(self, seed: int) -> list[str]:
        made = self._made(seed)
        lines = [f"{self.name} = {made}"]
        if self.special and self.dtype.startswith("float"):
            values = "np.nan, np.inf, -np.inf, -0.0"
            lines.append(f"{self.name}.reshape(-1)[::4] = np.resize(np.array([{values}]), {self.name}.reshape(-1)[::4].shape)")
        elif self.special and self.dtype != "bool":
            ends = f"np.iinfo(np.{self.dtype}).min, np.iinfo(np.{self.dtype}).max"
            whole = f"np.random.default_rng({seed}).integers({ends}, {self.name}.shape, np.{self.dtype}, endpoint=True)"
            lines.append(f"{self.name}[...] = {whole}")
            lines.append(f"{self.name}.reshape(-1)[::3] = np.iinfo({self.name}.dtype).min")
        if self.layout != "{}":
            lines.append(f"{self.name} = {self.layout.format(self.name)}")
        if self.read_only:
            lines.append(f"{self.name}.flags.writeable = False")
        return lines

    def _made(self, seed: int) -> str:
        shape = self._base()
        if self.dtype == "bool":
            return f"np.random.default_rng({seed}).integers(0, 2, {shape}).astype(bool)"
        low = 0 if self.dtype.startswith("u") else -16
        drawn = f"np.asarray(np.random.default_rng({seed}).integers({low}, 17, {shape}))"
        return (
            f"np.asarray({drawn} / 4, np.{self.dtype})" if self.dtype.startswith("float") else f"{drawn}.astype(np.{self.dtype})"
        )

    def _base(self) -> tuple[int, ...]:
        """The shape of the array out of which the layout takes one of our shape."""
        s = self.shape
        match self.layout:
            case "{}.T":
                return s[::-1]
            case "{}[::2]":
                return (2 * s[0] - 1 if s[0] else 0, *s[1:])
            case "{}[1:]":
                return (s[0] + 1, *s[1:])
            case "{}[..., 1:]":
                return (*s[:-1], s[-1] + 1)
        return s


def draw_argument(choices: Choices, name: str, shapes: list[tuple[int, ...]]) -> Argument:
    """An argument of one of the shapes already met, or of another."""
    shape = choices.pick([*shapes, *SHAPES]) if not shapes or choices.chance(50) else shapes[0]
    layout = choices.pick(LAYOUTS) if shape and choices.chance(40) else "{}"
    return Argument(name, choices.pick(DTYPES), shape, layout, special=choices.chance(15), read_only=choices.chance(4))


def resized(argument: Argument, size: dict[int, int]) -> Argument:
    return replace(argument, shape=tuple(size[n] for n in argument.shape))


def argument_lines(
    choices: Choices,
    arrays: list[Argument],
    numbers: dict[str, list[str]],
    parameters: list[str],
    draws: bool,
    before: list[list[str]] | None = None,
) -> list[str]:
    """The function `arguments`. Arrays may be the same one twice, or overlap. `before`: other statements of each call."""
    lines = ["def arguments(call):"]
    changed = {n: choices.pick((n, n + 1, n + 3, max(n - 1, 0), 1)) for n in sorted({n for a in arrays for n in a.shape})}
    shared = _sharing(choices, arrays)
    for call in range(CALLS):
        here = [resized(a, changed) for a in arrays] if call == CALLS - 1 else arrays
        lines.append(f"    if call == {call}:")
        for position, argument in enumerate(here):
            own = shared[position] or argument.lines(10 * call + position)
            lines += [f"        {line}" for line in own]
        if draws:
            lines.append(f"        rng = np.random.default_rng({call})")
        lines += [f"        {line}" for line in (before or [[]] * CALLS)[call]]
        items = [numbers[p][call] if p in numbers else p for p in parameters]
        lines.append(f"        return ({', '.join(items)},)")
    return lines


def _sharing(choices: Choices, arrays: list[Argument]) -> list[list[str]]:
    """For each array how it is taken out of the one before, or nothing."""
    shared: list[list[str]] = []
    for before, argument in zip([None, *arrays], arrays):
        if before is not None and before.shape and choices.chance(12):
            part = choices.pick(("", "[::-1]", "[1:]", "[..., :-1]", ".T", "[:2]"))
            shared.append([f"{argument.name} = {before.name}{part}"])
        else:
            shared.append([])
    return shared
