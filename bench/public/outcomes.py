"""What did a call leave behind, and where do two outcomes differ?  Results, arguments, objects' attributes, printed text."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

Leaves = dict[str, Any]
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf)")
_MOST_LEAVES = 20_000
ROUNDING = 1e-9


def leaves_of(named: dict[str, Any]) -> Leaves:
    """Values by where they are; containers and objects are gone through, each once, and are named by type and length."""
    walk = _Walk()
    for name, value in named.items():
        walk.visit(value, name)
    return walk.found


class _Walk:
    """A function that refers to itself would keep all arrays until a garbage collection.

    In each call the side that runs second, beside the results of the first, would then be given new pages by the system: plain
    Python came out at 0.3 of itself.
    """

    def __init__(self) -> None:
        self.found: Leaves = {}
        self._seen: dict[int, str] = {}
        self._alive: list[Any] = []

    def visit(self, value: Any, where: str) -> None:
        found = self.found
        if len(found) >= _MOST_LEAVES:
            return
        if isinstance(value, (np.ndarray, np.generic)) and np.asarray(value).dtype != object:
            found[where] = value.copy() if isinstance(value, np.ndarray) else value
            if isinstance(value, np.ndarray) and (known := self._seen.setdefault(id(value), where)) != where:
                found[f"{where} is"] = known
            self._alive.append(value)
            return
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes, range)):
            found[where] = value
            return
        if isinstance(value, (type, types.ModuleType)) or (callable(value) and not hasattr(value, "__dict__")):
            return
        known = self._seen.setdefault(id(value), where)
        self._alive.append(value)
        if known != where:
            found[where] = known
            return
        for place, inner in _inside(value, where, found):
            self.visit(inner, place)


def _inside(value: Any, where: str, found: Leaves) -> Iterator[tuple[str, Any]]:
    found[where] = type(value).__name__
    if isinstance(value, dict):
        found[where] = f"{type(value).__name__} of {len(value)}"
        for n, (key, inner) in enumerate(list(value.items())):
            if not isinstance(key, (str, int, float, tuple, np.generic)):
                yield f"{where}.keys[{n}]", key
                key = n
            yield f"{where}[{key!r}]", inner
    elif isinstance(value, (list, tuple, np.ndarray)):
        items = value.ravel().tolist() if isinstance(value, np.ndarray) else list(value)
        found[where] = f"{type(value).__name__} of {len(items)}"
        for n, inner in enumerate(items):
            yield f"{where}[{n}]", inner
    elif isinstance(value, (set, frozenset)):
        yield f"{where}.items", sorted(map(repr, value))
    elif isinstance(value, np.random.RandomState):
        yield f"{where}.state", value.get_state()[1:4]
    elif isinstance(value, np.random.Generator):
        yield f"{where}.state", value.bit_generator.state
    elif not callable(value) or type(value).__module__ not in ("builtins", "functools", "jitml.api"):
        for name, inner in list(getattr(value, "__dict__", {}).items()):
            yield f"{where}.{name}", inner


def difference(got: Leaves, expected: Leaves, spread: dict[str, float] | None = None) -> str | None:
    """The first place where outcomes differ by more than rounding, or than `spread` allows, in words.

    Args:
        spread: how far the plain program's own results move when its arguments do by rounding.
    """
    for where in expected.keys() | got.keys():
        if where not in got or where not in expected:
            return f"{where}: only {'plain Python' if where in expected else 'the jitted program'} has it"
    for where, value in expected.items():
        if (why := _differs(got[where], value, (spread or {}).get(where, 0.0))) is not None:
            return f"{where}: {why}"
    return None


def _differs(got: Any, expected: Any, spread: float) -> str | None:
    if type(got) is not type(expected):
        return f"{type(got).__name__} {got!r}"[:150] + f", plain {type(expected).__name__} {expected!r}"[:150]
    if isinstance(expected, str):
        is_same = _NUMBER.split(got) == _NUMBER.split(expected) if spread else _same_text(got, expected)
        return None if is_same else _texts(got, expected)
    if not isinstance(expected, (np.ndarray, np.generic, float, complex)):
        return None if got == expected else f"{got!r}, plain {expected!r}"
    one, other = np.asarray(got), np.asarray(expected)
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return f"{one.dtype}{list(one.shape)}, plain {other.dtype}{list(other.shape)}"
    away = distance(one, other)
    single = other.dtype in (np.float32, np.complex64, np.float16)
    with np.errstate(all="ignore"):
        size = float(np.abs(np.where(np.isfinite(other), other, 0)).max()) if other.size and other.dtype.kind in "fc" else 0.0
    limit = max(size * (1e-4 if single else ROUNDING), 100 * spread, 1e-300)
    return None if away <= limit else f"{away:.3g} apart, plain at most {size:.3g}"


def distance(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    """The largest difference of two arrays of one shape and dtype; infinite where not both are finite, or no numbers."""
    if other.dtype.kind not in "fc":
        return 0.0 if np.array_equal(one, other) else np.inf
    with np.errstate(all="ignore"):
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        away = np.where(same, 0, np.abs(one - other))
    return float(np.nan_to_num(away, nan=np.inf, posinf=np.inf).max()) if away.size else 0.0


def _same_text(got: str, expected: str) -> bool:
    """Whether two texts are the same but for the last printed digit of numbers."""
    if got == expected:
        return True
    if _NUMBER.split(got) != _NUMBER.split(expected):
        return False
    return all(_same_number(g, e) for g, e in zip(_NUMBER.findall(got), _NUMBER.findall(expected)))


def _same_number(got: str, expected: str) -> bool:
    if got == expected:
        return True
    digits = len(expected.partition("e")[0].partition(".")[2])
    exponent = int(expected.partition("e")[2] or 0) if "e" in expected else 0
    value = float(expected)
    return "." in expected and abs(float(got) - value) <= max(1.5 * 10.0 ** (exponent - digits), ROUNDING * abs(value))


def _texts(got: str, expected: str) -> str:
    for mine, plain in zip(got.splitlines(), expected.splitlines()):
        if not _same_text(mine, plain):
            return f"{mine!r}, plain {plain!r}"[:300]
    return f"{len(got.splitlines())} lines, plain {len(expected.splitlines())}"


def spread_of(expected: Leaves, moved: list[Leaves]) -> dict[str, float] | None:
    """How far results move with the arguments' rounding, place by place; None if even their kinds or whole numbers do."""
    found: dict[str, float] = {}
    for other in moved:
        for where, value in expected.items():
            new = other.get(where)
            if type(new) is not type(value) or np.shape(new) != np.shape(value):
                return None
            if isinstance(value, (np.ndarray, np.generic, float, complex)):
                away = distance(np.asarray(new), np.asarray(value))
            elif isinstance(value, str):  # infinite: any number may stand in it
                found[where] = max(found.get(where, 0.0), 0.0 if _same_text(new, value) else np.inf)
                continue
            else:
                away = 0.0 if new == value else np.inf
            if away == np.inf:
                return None
            found[where] = max(found.get(where, 0.0), away)
    return found


def nudge(named: dict[str, Any], rng: np.random.Generator) -> None:
    """Move every floating-point number of the arguments by a unit in the last place, in place."""
    seen: set[int] = set()

    def moved(value: Any) -> Any:
        if isinstance(value, (float, np.floating)):
            return type(value)(np.nextafter(value, value + rng.choice([-1.0, 1.0])))
        if id(value) in seen:
            return value
        seen.add(id(value))
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.flags.writeable:
            value[...] = np.nextafter(value, value + rng.choice([-1.0, 1.0], value.shape).astype(value.dtype))
        elif isinstance(value, list):
            value[:] = [moved(inner) for inner in value]
        elif isinstance(value, dict):
            value.update({key: moved(inner) for key, inner in value.items()})
        elif isinstance(value, tuple) and type(value) is tuple:
            return tuple(moved(inner) for inner in value)
        elif hasattr(value, "__dict__") and not callable(value) and not isinstance(value, types.ModuleType):
            for inner in list(vars(value).values()):
                if isinstance(inner, (np.ndarray, list, dict)):
                    moved(inner)
        return value

    for name, value in list(named.items()):
        named[name] = moved(value)
