"""Random generators: how does a function draw random numbers?  From the very generator, each time the program comes by.

The program draws natively (`native_draws.py`), or through NumPy.

`TracedGenerator` stands for a generator: an argument, a global, the one behind `np.random.rand`, or one that the function makes.
Its storage holds the generator's address, and every draw (`ops.draw`) replaces that by its own result: so draws keep their order,
and loops carry the generator as they carry arrays that they write.
"""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from jitml.imports.late import late, late_class
from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.run_state import MADE, generator_at
from jitml.ir.types import I64
from jitml.records import dataclass
from jitml.trace.record.guards import Slot
from jitml.trace.record.parts import CallPart
from jitml.trace.record.recording import Trace, active_trace, unsupported
from jitml.trace.storage.storage import Storage
from jitml.trace.values.array_writes import assign
from jitml.trace.values.boxing import TracedArray, read
from jitml.trace.values.numbers import TracedNumber

if TYPE_CHECKING:
    from jitml.trace.host_calls import call as host_call
    from jitml.trace.host_calls import native_draws
else:
    native_draws = late("jitml.trace.host_calls.native_draws")
    host_call = late("jitml.trace.host_calls.call")


_GENERATORS = tuple(late_class("numpy.random", name) for name in ("Generator", "RandomState"))
_MAKERS = {"default_rng": "Generator", "RandomState": "RandomState"}
_OTHER_NAMES = {"ranf": "random_sample", "sample": "random_sample"}  # functions around methods of the global generator
# What hands out the generator's inside, or new generators.
_NOT_DRAWS = {"bit_generator", "get_state", "set_state", "spawn", "bytes", "__getstate__", "__setstate__"}


class TracedGenerator:
    """A generator in a trace: `isinstance(rng, np.random.Generator)` holds."""

    __slots__ = ("kind", "slot", "storage")

    def __init__(self, kind: type, storage: Storage, slot: Slot | None = None) -> None:
        self.kind = kind
        self.storage = storage
        self.slot = slot  # where it comes from, if it is not made here

    @property  # type: ignore[misc]  # see TracedNumber.__class__
    def __class__(self) -> type:
        return self.kind

    def __getattr__(self, name: str) -> Any:
        if not hasattr(self.kind, name):
            raise AttributeError(f"{self.kind.__name__!r} object has no attribute {name!r}")
        if name in _NOT_DRAWS:
            unsupported(f"{self.kind.__name__}.{name} is not supported in jitted code", "Use it outside the jitted function.")
        return MethodDraw(self, name)

    def __copy__(self) -> NoReturn:
        unsupported(f"a copy of a {self.kind.__name__} is not supported in jitted code", "Make it outside the jitted function.")

    def __deepcopy__(self, memo: Any) -> NoReturn:
        self.__copy__()

    def __repr__(self) -> str:
        return unsupported(f"a {self.kind.__name__} is shown, which is not supported in jitted code", "Show it outside.")


def is_generator(x: object) -> bool:
    """Whether x is a generator, and none that stands for one already."""
    kind: type = type(x)
    return kind is not TracedGenerator and isinstance(x, _GENERATORS)


@dataclass(frozen=True, eq=False)
class MethodDraw:
    """A generator's method, to be called."""

    generator: TracedGenerator
    name: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.name == "shuffle":
            return self._shuffle(*args, **kwargs)
        target = kwargs.pop("out", None)
        if target is not None:
            if type(target) is not TracedArray:
                unsupported(f"{self.name}(out=...) fills arrays only")
            kwargs |= {"size": target.shape, "dtype": target.dtype.type} if self.name != "permuted" else {}
        result = native_draws.native_draw(self.generator.storage, self.generator.kind, self.name, args, kwargs)
        if result is None:
            result = self._draw(getattr(self.generator.kind, self.name), args, kwargs)
        if target is None:
            return result
        assign(target, read(result))
        return target

    def _shuffle(self, x: Any, axis: int = 0) -> None:
        if type(x) is not TracedArray:
            unsupported(f"shuffle of a {type(x).__name__} is not supported in jitted code", "Shuffle an array.")
        options = {"axis": axis} if self.generator.kind is np.random.Generator else {}
        shuffle = functools.partial(_shuffled, self.generator.kind)
        assign(x, read(self._draw(shuffle, (x,), options)))

    def _draw(self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        storage = self.generator.storage
        name = f"{self.generator.kind.__name__}.{self.name}"
        given = (TracedNumber.of_value(active_trace(), storage.load()), *map(_settled, args))
        named = {word: _settled(x) for word, x in kwargs.items()}
        address, result = host_call.record(ops.draw, name, functools.partial(_draw_from, method), given, named, draws=True)
        storage.store(read(address))
        return result


def _draw_from(method: Callable[..., Any], address: int, *args: Any, **kwargs: Any) -> tuple[int, Any]:
    return address, method(generator_at(address), *args, **kwargs)


def _shuffled(kind: Any, generator: Any, x: np.ndarray[Any, Any], **options: Any) -> np.ndarray[Any, Any]:
    y = x.copy()
    kind.shuffle(generator, y, **options)
    return y


def _settled(x: Any) -> Any:
    """Python ints decide how much is drawn: those that are known are guarded."""
    if type(x) in (tuple, list):
        return type(x)(map(_settled, x))
    return x.known() if type(x) is TracedNumber and x.kind is int and x.slot is not None else x


class _KnownGenerators(dict[Slot, tuple[object, TracedGenerator]], CallPart):
    """Generators from outside, and what stands for them."""


def from_outside(trace: Trace, generator: Any, slot: Slot) -> TracedGenerator:
    """The stand-in of a generator that the host program finds at `slot`; each generator has one."""
    host, known = trace.host, trace.call[_KnownGenerators]
    host.require_type(slot, type(generator))
    for other, (first, stand_in) in known.items():
        if other != slot:
            host.require_identity(slot, other, first is generator)
        if first is generator:
            return stand_in
    # Tracing draws from a copy, to see what comes out.
    trace.outside.kept.append(stand_by := copy.deepcopy(generator))
    address = trace.number_input(host.compute(id, (slot,)), id(stand_by), I64)
    made = TracedGenerator(type(generator), Storage(trace, address), slot)
    made.storage.draws = True
    known[slot] = (generator, made)
    return made


def maker(function: Any) -> Callable[..., TracedGenerator] | None:
    """How a generator is made in traced code, if that is what the function does."""
    name = getattr(function, "__name__", None)
    if name not in _MAKERS or function is not _of_numpy(name):
        return None
    kind = _of_numpy(_MAKERS[name])

    def make(*args: Any, **kwargs: Any) -> TracedGenerator:
        address: Value = read(
            host_call.record(ops.draw, f"np.random.{name}", functools.partial(_make, function), args, kwargs, makes=True)
        )
        return TracedGenerator(kind, Storage(active_trace(), address))

    return make


def _of_numpy(name: str) -> Any:
    """What `np.random` has by a name; None before it is imported, when nobody has anything of it."""
    return getattr(sys.modules.get("numpy.random"), name, None)


def _make(function: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
    MADE.generators.append(function(*args, **kwargs))
    return id(MADE.generators[-1])


def method_of(trace: Trace, function: Any) -> Callable[..., Any] | None:
    """A function that is a generator's method (`np.random.rand` is one, of the global generator), as traced code calls it."""
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if name in ("seed", *_OTHER_NAMES) and _of_numpy(name) is function:
        owner, name = np.random.mtrand._rand, _OTHER_NAMES.get(name, name)
    if not is_generator(owner):
        return None
    slot = trace.outside.places.get(id(owner))
    if slot is None:
        held = "np.random" if owner is np.random.mtrand._rand else "a generator"
        slot = trace.outside.places[id(owner)] = trace.host.hold(owner, held)
    method: Callable[..., Any] = getattr(from_outside(trace, owner, slot), name)
    return method
