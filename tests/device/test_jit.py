"""Jitted functions on device arrays, and on a device: what they answer, where that is, what is copied, and what is refused."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import jitml
from device.device_cases import CASES, change, on_device, on_host, require_numpys, require_same, x
from jitml.device.memory import ArrayDevice
from support.host_device import host_device


@pytest.mark.parametrize("name", CASES)
def test_answers_and_changes_are_numpys(device: ArrayDevice, name: str) -> None:
    require_numpys(name, "always")


def test_results_are_on_the_device_and_nothing_is_copied(device: ArrayDevice) -> None:
    f = jitml.jit(lambda v, w: (v @ w, v.sum(), v), verify="never")
    a, b = on_device(x), on_device(x.T)
    before = device.copies.to_device, device.copies.to_host
    product, total, same = f(a, b)
    assert (product.device, total.device, total.shape) == ("cuda", "cuda", ()) and same is a
    assert (device.copies.to_device, device.copies.to_host) == before


def test_the_first_answer_is_checked_against_numpy(device: ArrayDevice) -> None:
    f = jitml.jit(change, verify="first")
    f(on_device(x))
    assert "as NumPy gives it" in f.variants[0].checked


@pytest.mark.loose
def test_views_and_the_arrays_that_they_show_stay_together(device: ArrayDevice) -> None:
    def shift(p: Any, q: Any) -> Any:
        p[:] = q * 2
        return q.sum()

    f, z, expected = jitml.jit(shift), on_device(np.arange(10.0)), np.arange(10.0)
    for parts in ((slice(5), slice(5, 10)), (slice(5), slice(2, 7)), (slice(10), slice(10))):
        got, wanted = f(*(z[part] for part in parts)), shift(*(expected[part] for part in parts))
        assert float(got) == wanted
        np.testing.assert_array_equal(np.asarray(z), expected)


def test_globals_cells_and_attributes_are_read_anew(device: ArrayDevice) -> None:
    weights = on_device(x.T)

    class Model:
        def __init__(self, w: Any) -> None:
            self.w = w

        @jitml.jit
        def __call__(self, v: Any) -> Any:
            return (v @ self.w).sum() + weights.sum()

    model, a = Model(weights), on_device(x)
    first = float(model(a))
    assert np.isclose(first, (x @ x.T).sum() + x.sum())
    weights *= 2
    assert np.isclose(float(model(a)), 2 * first)
    model.w = on_device(np.zeros((4, 6)).T)
    assert np.isclose(float(model(a)), 2 * x.sum())
    assert np.isclose(float(model(x)), 2 * x.sum())  # the host's array is copied: the others are on the device
    assert len(Model.__call__.variants) == 3  # at first both names hold one array


def test_numpys_arrays_are_copied_there_and_back(device: ArrayDevice) -> None:
    f = jitml.jit(change, device="cuda", verify="never")
    mine, expected = x.copy(), x.copy()
    result = f(mine)
    require_same(result, change(expected))
    np.testing.assert_allclose(mine, expected)
    assert [type(r) for r in result] == [np.ndarray, np.ndarray, np.float64]
    copies = device.copies
    assert (copies.to_device, copies.bytes_to_device) == (1, x.nbytes)
    assert copies.to_host >= 2 and copies.bytes_to_host >= x.nbytes + 8


def test_one_function_serves_both(device: ArrayDevice) -> None:
    f = jitml.jit(lambda v: v * 2)
    assert (type(f(x)), type(f(on_device(x))), type(f(x)), len(f.variants)) == (np.ndarray, jitml.Array, np.ndarray, 2)
    with host_device("spare"):
        there = f(jitml.asarray(x, device="spare"))
        assert there.device == "spare" and len(f.variants) == 3


def test_sizes_that_change_are_left_open(device: ArrayDevice) -> None:
    f = jitml.jit(lambda v: (v * 2).sum())
    for n in (3, 4, 5, 9):
        assert float(f(on_device(np.arange(float(n))))) == n * (n - 1)
    assert len(f.variants) == 2


def test_arrays_in_two_places_are_refused_with_the_users_line(device: ArrayDevice) -> None:
    with host_device("spare"):
        other = jitml.asarray(x, device="spare")
        with pytest.raises(jitml.UnsupportedError, match="w is on spare, and v on cuda") as said:
            jitml.jit(lambda v, w: v + w)(on_device(x), other)
        assert "to_device('cuda')" in str(said.value) and said.value.source is not None
    with pytest.raises(jitml.UnsupportedError, match="is to run on cpu, and its arrays are on cuda"):
        jitml.jit(lambda v: v, device="cpu")(on_device(x))


def test_devices_are_checked_at_once_and_looked_for_at_the_call() -> None:
    with pytest.raises(jitml.UnsupportedError, match="no device 'gpu'"):
        jitml.jit(lambda v: v, device="gpu")
    f = jitml.jit(lambda v: v + 1, device="cuda")
    if "cuda" not in jitml.devices():
        with pytest.raises(jitml.NoDeviceError):
            f(x)
    assert jitml.jit(lambda v: v + 1, device="cpu")(x)[0, 0] == x[0, 0] + 1


def test_exceptions_are_numpys(device: ArrayDevice) -> None:
    for wrong in (lambda v: v @ v, lambda v: v[10], lambda v: v.reshape(5, 5), lambda v: v + np.ones(5)):
        with pytest.raises((ValueError, IndexError)) as said:
            wrong(x)
        with pytest.raises(said.type):
            jitml.jit(wrong)(on_device(x))


def test_a_branch_that_raises_is_plain_pythons_on_the_device(device: ArrayDevice) -> None:
    def checked(v: Any) -> Any:
        if v[0, 0] > 5:
            raise KeyError("too large")
        return v + 1

    f = jitml.jit(checked)
    assert f(on_device(x)).device == "cuda"
    with pytest.raises(KeyError, match="too large"):
        f(on_device(x + 10))


def test_what_is_asked_of_an_array_while_it_is_traced(device: ArrayDevice) -> None:
    f = jitml.jit(lambda v: (v.device, isinstance(v, jitml.Array), v.to_device("cuda"), jitml.asarray(v, device="cuda") + 1))
    place, is_array, there, more = f(on_device(x))
    assert (place, is_array, there.device) == ("cuda", True, "cuda")
    np.testing.assert_allclose(np.asarray(more), x + 1)
    with pytest.raises(jitml.UnsupportedError, match="taken to cuda in a program that runs on cpu"):
        jitml.jit(lambda v: jitml.asarray(v, device="cuda"))(x)


class Foreign:
    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, *, stream: Any = None) -> Any:
        return self.array.__dlpack__(stream=stream)


def test_arrays_of_other_libraries_are_arguments_without_a_copy(device: ArrayDevice) -> None:
    a = on_device(x)
    f = jitml.jit(change)
    before = device.copies.to_device
    result, expected = f(Foreign(a)), x.copy()
    require_same(on_host(result), change(expected))
    np.testing.assert_allclose(np.asarray(a), expected)
    f(Foreign(a))
    assert len(f.variants) == 1
    g = jitml.jit(lambda v: v.sum(), verify="never")
    before = device.copies.to_device
    g(Foreign(a))
    assert device.copies.to_device == before
    with pytest.raises(jitml.UnsupportedError, match=r"Foreign on a device[\s\S]*jitml\.asarray"):
        jitml.jit(lambda p: p["a"].sum())({"a": Foreign(a)})


def test_transforms_outside_jit(device: ArrayDevice) -> None:
    a, v = on_device(x), on_device(np.arange(3.0))
    np.testing.assert_allclose(np.asarray(jitml.grad(lambda v: (v**3).sum())(a)), 3 * x**2)
    value, slope = jitml.value_and_grad(lambda p: (p["w"] ** 2).sum())({"w": a})
    assert value.device == slope["w"].device == "cuda"
    np.testing.assert_allclose(np.asarray(jitml.vmap(lambda row: row.sum())(a)), x.sum(axis=1))
    np.testing.assert_allclose(np.asarray(jitml.hessian(lambda v: (v**3).sum())(v)), np.diag(6 * np.arange(3.0)))
    y, pull = jitml.vjp(lambda v: v**2, v)
    (ct,) = pull(v)
    assert ct.device == "cuda" and ct.tolist() == [0.0, 2.0, 8.0]
    y, dy = jitml.jvp(lambda v: v**2, (v,), (v,))
    assert y.tolist() == [0.0, 1.0, 4.0] and dy.tolist() == [0.0, 2.0, 8.0]


def test_lower_and_explain_take_them(device: ArrayDevice) -> None:
    f = jitml.jit(lambda v, w: v * 2 + w)
    a = on_device(x)
    assert "mul" in str(f.lower(a, a).graph)
    text = f.explain(a, x)
    assert "copied to cuda: w, 192 B" in text and "v is of type Array" in text


def test_containers_with_arrays_pickle(device: ArrayDevice) -> None:
    again = pickle.loads(pickle.dumps({"w": on_device(x)}))
    np.testing.assert_array_equal(np.asarray(again["w"]), x)
