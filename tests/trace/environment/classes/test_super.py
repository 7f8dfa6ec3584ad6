"""What `super()` finds: attributes, properties and descriptors of classes behind this one, as they are at each call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml

X = np.arange(4.0)
FACTOR = {"it": 2.0}


class Tripled:
    def __get__(self, obj: Any, kind: Any) -> Any:
        return FACTOR["it"] * (3 if obj is None else obj.scale)


class Base:
    rate: Any = 2.0
    rates: Any = [1.0, 2.0]  # noqa: RUF012
    weights: Any = np.ones(4)
    scale: Any = 3.0
    described = Tripled()
    _level: Any = 1.0

    @property
    def level(self) -> Any:
        return self._level * FACTOR["it"]

    @classmethod
    def made(cls, x: Any) -> Any:
        return x * cls.rate

    @staticmethod
    def plain(x: Any) -> Any:
        return x * FACTOR["it"]


class Middle(Base):
    pass


class Model(Middle):
    rate = 1.0
    rates = ()
    weights = None
    described = None  # type: ignore[assignment]

    @property
    def level(self) -> Any:
        return super().level + 1

    @classmethod
    def made(cls, x: Any) -> Any:
        return super().made(x) + super().rate

    @staticmethod
    def plain(x: Any) -> Any:
        return x

    def all(self, x: Any) -> Any:
        found = super().rate, super().rates[-1], super().weights, super().described, super().level
        return x * sum(found) + super().made(x) + super().plain(x) + super().scale

    def explicit(self, x: Any) -> Any:
        return x * super(Middle, self).rate + super(Model, Model).rate

    def change(self, x: Any) -> Any:
        self._level = x[1] + 4.0
        return x * self.level


@pytest.mark.parametrize("name", [pytest.param("all", marks=pytest.mark.loose), "explicit", "made"])
def test_it_is_what_it_is_at_each_call(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    fast = jitml.jit(getattr(model, name), verify="never")
    np.testing.assert_array_equal(fast(X), getattr(model, name)(X))
    changes = [
        (Base, "rate", 5.0), (Base, "weights", X), (Base, "rates", [7.0]), (Base, "_level", 9.0), (Base, "scale", 4.0),
        (Base, "level", property(lambda self: 8.0)), (Base, "plain", staticmethod(lambda x: x - 1)),
        (Base, "made", classmethod(lambda cls, x: x + 3)), (Middle, "rate", 6.0),
    ]  # fmt: skip
    monkeypatch.setitem(FACTOR, "it", 3.0)
    np.testing.assert_array_equal(fast(X), getattr(model, name)(X))
    for owner, attribute, value in changes:
        monkeypatch.setattr(owner, attribute, value, raising=False)
        np.testing.assert_array_equal(fast(X), getattr(model, name)(X), err_msg=attribute)


def test_a_property_sees_what_the_function_has_set() -> None:
    plain, compiled = Model(), Model()
    fast = jitml.jit(compiled.change, verify="never")
    for n in (1, 2):
        np.testing.assert_array_equal(fast(X * n), plain.change(X * n))
        assert compiled._level == plain._level
