"""When is a compiled variant used again, and when is another one made?"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.dispatch.variants import MOST_VARIANTS
from jitml.trace.record.guards import ArrayContents, GuardCheck, Host

Array = np.ndarray[Any, Any]


def scaled(x: Array, n: float = 2.0) -> Array:
    return x * n


def test_same_kind_of_arguments_compiles_once() -> None:
    f = jitml.jit(scaled)
    for value in (1.0, 2.5, -3.0, float("nan")):
        f(np.ones(3), value)
    assert len(f.variants) == 1


@pytest.mark.parametrize(
    "other, reason",
    [
        (np.ones(4), "x has the shape (3,)"),
        (np.ones(3, np.float32), "x is float64[3]"),
        (np.ones(6)[::2], "x has the strides (8,)"),
        (1.5, "type of x is ndarray"),
    ],
)
def test_another_kind_compiles_again_and_says_why(other: Any, reason: str) -> None:
    f = jitml.jit(scaled)
    f(np.ones(3))
    np.testing.assert_array_equal(f(other), scaled(other))
    assert len(f.variants) == 2
    assert reason in f.variants[0].reason


def test_strides_and_alignment_are_guarded_however_they_are_told() -> None:
    f = jitml.jit(scaled, dynamic=False)
    flat = np.frombuffer(bytearray(9 * 8 + 1), np.uint8)
    crooked = flat[1:].view(np.float64).reshape(3, 3)
    for x in (np.ones((3, 3)), np.ones((3, 3)).T, np.ones((3, 3), order="F"), crooked, np.ones((6, 3))[::2], np.ones((3, 3))):
        np.testing.assert_array_equal(f(x), scaled(x))
    assert len(f.variants) == 4
    rows = np.ones((6, 3))[::6]
    for x in (np.ones((1, 3)), rows, np.ones((1, 3))):  # both in C order, with other strides
        np.testing.assert_array_equal(f(x), scaled(x))
    assert len(f.variants) == 6


def test_attributes_whose_names_are_no_words_of_python() -> None:
    class Some:
        pass

    some = Some()
    names = ("class", "µ", "μ", "a b", "plain")  # Python's parser makes the second the third
    for n, name in enumerate(names):
        setattr(some, name, float(n))
    for name in names:
        f = jitml.jit(lambda x, name=name: x * getattr(some, name))
        for value in (getattr(some, name), 7.0):
            setattr(some, name, value)
            np.testing.assert_array_equal(f(np.ones(3)), np.ones(3) * value)


def test_int_used_as_shape_is_guarded_by_value() -> None:
    f = jitml.jit(lambda x, n: x[:n] * n, dynamic=False)
    for n in (1, 2, 2, 1, 3):
        np.testing.assert_array_equal(f(np.arange(4.0), n), np.arange(4.0)[:n] * n)
    assert len(f.variants) == 3


def test_branch_on_a_number_is_guarded_by_its_outcome() -> None:
    f = jitml.jit(lambda x, n: x + n if n > 0 else x - n)
    for n in (1.0, 2.0, 3.5, -1.0, -2.0):
        np.testing.assert_array_equal(f(np.ones(2), n), np.ones(2) + abs(n))
    assert len(f.variants) == 2


def test_derived_numbers_are_guarded_not_their_sources() -> None:
    f = jitml.jit(lambda x, n: x * (n // 10) if n % 2 == 0 else x)
    for n in (10, 24, 36):
        np.testing.assert_array_equal(f(np.ones(2), n), np.full(2, n // 10))
    assert len(f.variants) == 1


def test_numbers_out_of_range_raise_as_in_numpy() -> None:
    f = jitml.jit(lambda x, n: x + n)
    x = np.zeros(2, np.int8)
    np.testing.assert_array_equal(f(x, 100), x + 100)
    with pytest.raises(OverflowError, match="Python integer 300 out of bounds for int8"):
        f(x, 300)


def test_division_by_zero_after_a_good_call() -> None:
    f = jitml.jit(lambda x, n: x * (1 / n))
    f(np.ones(2), 4)
    with pytest.raises(ZeroDivisionError):
        f(np.ones(2), 0)


def test_the_type_that_a_value_decides_is_guarded() -> None:
    f = jitml.jit(lambda n: 2**n)
    for n in (3, -1, 70):
        assert f(n) == 2**n and type(f(n)) is type(2**n)


def test_same_array_twice() -> None:
    def f(x: Array, y: Array) -> Array:
        x += 1
        return x * y

    compiled = jitml.jit(f)
    for make in (lambda: (np.ones(3), np.ones(3)), lambda: (x := np.ones(3), x), lambda: (x := np.ones(3), x[:])):
        a, b = make()
        c, d = np.array(a), np.array(b)
        if a is b or np.shares_memory(a, b):
            d = c
        np.testing.assert_array_equal(compiled(a, b), f(c, d))
        np.testing.assert_array_equal(a, c)
    assert len(compiled.variants) == 2


@pytest.mark.loose
def test_overlap_of_a_written_array_is_seen_at_every_call() -> None:
    def f(x: Array, y: Array) -> None:
        x += y

    compiled = jitml.jit(f)
    compiled(np.ones(3), np.ones(3))
    for first, second in (((0, 3, 1), (1, 4, 1)), ((0, 4, 2), (1, 4, 2)), ((1, 4, 1), (0, 3, 1))):
        eager, jitted = np.arange(4.0), np.arange(4.0)
        f(eager[slice(*first)], eager[slice(*second)])
        compiled(jitted[slice(*first)], jitted[slice(*second)])
        np.testing.assert_array_equal(eager, jitted)
    assert len(compiled.variants) == 1  # of what overlaps there is none


def test_a_written_argument_must_be_writeable_at_every_call() -> None:
    def f(x: Array) -> None:
        x += 1

    compiled = jitml.jit(f)
    compiled(np.ones(3))
    locked = np.ones(3)
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        compiled(locked)
    assert (locked == 1).all()


@pytest.mark.parametrize("order", [">f8", "<f8"])
def test_foreign_layouts_are_copied_in_and_back(order: str) -> None:
    def f(x: Array) -> Array:
        x += 1
        return x

    compiled = jitml.jit(f)
    raw = np.zeros(33, np.uint8)
    for x in (np.arange(4.0).astype(order), raw[1:].view(order)):
        got = compiled(x)
        assert got is x
    np.testing.assert_array_equal(raw[1:].view(order), np.ones(4))


def test_keywords_defaults_and_structure() -> None:
    f = jitml.jit(lambda x, *rest, scale=2.0, **more: [x * scale, *rest, more])
    x = np.ones(2)
    for args, kwargs in (((x,), {}), ((x, 1.5), {"scale": 3.0}), ((x, (x, None)), {"b": x, "a": 1})):
        got, want = f(*args, **kwargs), f.function(*args, **kwargs)
        assert repr(got) == repr(want)
        assert repr(f(*args, **kwargs)) == repr(want)
    assert len(f.variants) == 3


def test_static_arguments_are_plain_values() -> None:
    f = jitml.jit(lambda x, mode: {"a": x + 1, "b": x - 1}[mode], static_argnames="mode")
    np.testing.assert_array_equal(f(np.ones(2), "a"), [2, 2])
    np.testing.assert_array_equal(f(np.ones(2), mode="b"), [0, 0])
    assert len(f.variants) == 2
    with pytest.raises(ValueError, match="no parameter 'other'"):
        jitml.jit(scaled, static_argnames="other")


def test_static_arguments_may_be_containers() -> None:
    shaped = jitml.jit(lambda x, shape, w: x.reshape(shape) * w[0], static_argnums=1)
    scaled = jitml.jit(lambda x, *, factors: x * factors[0], static_argnames="factors")
    x = np.arange(6.0)
    for shape in ((2, 3), (3, 2), (2, 3)):
        np.testing.assert_array_equal(shaped(x, shape, [2.0]), x.reshape(shape) * 2)
        np.testing.assert_array_equal(scaled(x, factors=shape), x * shape[0])
    assert len(shaped.variants) == len(scaled.variants) == 2


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, np.ones(2), ([1], 2)], ids=["list", "dict", "array", "tuple"])
def test_static_arguments_without_a_hash_are_refused(value: Any) -> None:
    """A list that had changed since was still equal to itself."""

    def function(x: Any, setting: Any) -> Any:
        return x * len(setting)

    with pytest.raises(TypeError, match=r"setting of .*function is a static argument"):
        jitml.jit(function, static_argnums=-1)(1.0, value)
    with pytest.raises(TypeError, match=r"setting of .*function is a static argument"):
        jitml.jit(function, static_argnames="setting")(1.0, setting=value)


def test_variants_are_bounded_and_can_be_cleared() -> None:
    f = jitml.jit(lambda x, n: x * n, static_argnames="n")
    for n in range(MOST_VARIANTS + 5):
        assert f(1.0, n) == n
    assert len(f.variants) == MOST_VARIANTS
    f.clear_cache()
    assert f.variants == ()


def test_many_threads_share_variants() -> None:
    f = jitml.jit(lambda x, n: (x * n).sum() + n, static_argnames="n")
    wrong: list[Any] = []

    def work(seed: int) -> None:
        for n in range(seed, seed + 6):
            if f(np.arange(5.0), n % 4) != 10.0 * (n % 4) + n % 4:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert len(f.variants) == 4


def test_signature_and_docstring_stay() -> None:
    @jitml.jit
    def documented(x: Array, k: float = 1.0) -> Array:
        """Says something."""
        return x * k

    import inspect

    assert documented.__doc__ == "Says something."
    assert documented.__name__ == "documented"
    assert list(inspect.signature(documented).parameters) == ["x", "k"]


def test_an_option_without_effect_is_refused() -> None:
    with pytest.raises(jitml.errors.UnsupportedError, match="cache"):
        jitml.jit(cache=False)


@pytest.mark.parametrize(
    "values", [(np.float32, int, np.dtype("i2")), ("a", "b"), (slice(1, None), slice(None, None, -1)), (True, False)]
)
def test_what_is_no_number_is_guarded_by_value(values: tuple[Any, ...]) -> None:
    def chosen(x: Array, how: Any) -> Any:
        if isinstance(how, str):
            return x + (how == "a")
        if isinstance(how, slice):
            return x[how] * 2
        return -x if how is True else x if how is False else x.astype(how)

    f, x = jitml.jit(chosen), np.arange(4.0)
    for _ in range(2):
        for value in values:
            got, expected = f(x, value), chosen(x, value)
            np.testing.assert_array_equal(got, expected)
            assert got.dtype == expected.dtype
    assert len(f.variants) == len(values)


def test_the_names_of_numbers_do_not_double_with_each_operation() -> None:
    def least(x: Array, n: float) -> Array:
        for _ in "x" * 20:
            n = min(n, n * 0.5)
        return x * n

    f, x = jitml.jit(least), np.arange(4.0)
    np.testing.assert_array_equal(f(x, 1.5), least(x, 1.5))
    assert max(map(len, f.variants[0].traced.host.names)) < 1000


@pytest.mark.loose
def test_truth_is_compared_by_identity() -> None:
    def told(x: Any, flag: Any) -> Any:
        found = [flag is True, flag is not False, bool(x.sum() > 3) is True, (x.sum() > 3) is True]
        return found + [i for i in range(3) if (i > 1) is True]

    jitted = jitml.jit(told)
    for flag in (True, False, 1, None, np.True_):
        for x in (np.ones(3), np.ones(5)):
            assert jitted(x, flag) == told(x, flag)


def test_contents_of_an_array_of_objects_are_these_very_ones() -> None:
    array = np.array([None, "a"], object)
    for n in range(10):
        array[0] = float(f"{n}.5")
        contents = ArrayContents(array)
        assert contents.are_in(array)
        array[0] = None
        array[0] = float(f"{n}.25")  # where the other number was, if nobody holds that
        assert not contents.are_in(array)


def test_asking_why_a_program_does_not_answer_gives_no_warning() -> None:
    host = Host()
    square = host.compute(np.square, (host.argument(0, "x"),), "x * x")
    host.steps.append(GuardCheck((square,), "{0} == {k}", 1, "x * x is 1"))
    with np.errstate(all="raise"):
        assert host.first_failure([np.float16(6e4)]) == "not so any more: x * x is 1"
