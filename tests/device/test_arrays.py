"""Device arrays: metadata, views, copies and conversions, compared with NumPy's."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.device.memory import ArrayDevice
from jitml.device.view import DeviceView
from jitml.errors import CompilerError
from support.host_device import host_device

x = np.arange(24, dtype=np.float32).reshape(4, 6)


def on_device(host: Any = x) -> Any:
    return jitml.asarray(host, device="cuda")


def test_has_the_metadata_of_numpys_array(clean_device: ArrayDevice) -> None:
    a = on_device()
    assert all(
        getattr(a, name) == getattr(x, name) for name in ("dtype", "shape", "strides", "ndim", "size", "nbytes", "itemsize")
    )
    assert (a.device, len(a), a.__dlpack_device__()) == ("cuda", 4, (2, 0))


VIEWS: list[Callable[[Any], Any]] = [
    lambda a: a[1],
    lambda a: a[1, 2, ...],
    lambda a: a[..., 0],
    lambda a: a[::-2, 1:5:2],
    lambda a: a[None, 1:, np.int64(3)],
    lambda a: a[-1:0:-1],
    lambda a: a[2:2],
    lambda a: a.T,
    lambda a: a.mT[1:3],
    lambda a: a.reshape(2, 2, 6),
    lambda a: a.reshape((-1,)),
    lambda a: a.T.reshape(24, order="F"),
    lambda a: a.ravel(),
    lambda a: a.transpose(1, 0),
    lambda a: a.swapaxes(0, 1),
    lambda a: a[:, :1].squeeze(1),
    lambda a: a.view(np.int32),
]


@pytest.mark.parametrize("view", VIEWS)
def test_basic_views_show_what_numpys_show_and_copy_nothing(clean_device: ArrayDevice, view: Callable[[Any], Any]) -> None:
    a, expected = on_device(), view(x)
    before = len(clean_device.memory.used)  # type: ignore[attr-defined]
    shown = view(a)
    assert len(clean_device.memory.used) == before and shown.shape == np.shape(expected)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(np.asarray(shown), expected)
    if expected.size and isinstance(expected, np.ndarray):
        assert shown.strides == expected.strides


def test_an_element_is_a_copy_as_in_numpy(clean_device: ArrayDevice) -> None:
    a = on_device()
    element, shown = a[1, 2], a[1, 2, ...]
    a[1] = 0
    assert (element.shape, float(element), float(shown)) == ((), x[1, 2], 0.0)


def test_memory_lives_as_long_as_its_last_view(clean_device: ArrayDevice) -> None:
    a = on_device()
    row = a[2]
    del a
    gc.collect()
    assert row.tolist() == x[2].tolist()


@pytest.mark.parametrize(
    "host", [np.asfortranarray(x), x[::2, ::-1], np.zeros((0, 3)), np.float64(2.5), [[1, 2]], x.astype(">f4")]
)
def test_comes_in_and_goes_out_with_the_same_elements(clean_device: ArrayDevice, host: Any) -> None:
    a = on_device(host)
    back = np.asarray(a)
    assert back.dtype == np.asarray(host).dtype.newbyteorder("=")
    np.testing.assert_array_equal(back, host)
    assert type(a.to_device("cpu")) is np.ndarray and a.to_device("cuda") is a
    if np.asarray(host).flags.f_contiguous and back.size:
        assert a.strides == np.asarray(host).strides


def test_numpy_gets_a_copy_which_is_counted(clean_device: ArrayDevice) -> None:
    a = on_device()
    copies = clean_device.copies
    assert (copies.to_device, copies.bytes_to_device, copies.to_host) == (1, x.nbytes, 0)
    np.asarray(a)[0] = 7
    assert a[0].tolist() == x[0].tolist()
    assert jitml.copies("cuda") == copies is not jitml.copies("cuda")
    assert (copies.to_host, copies.bytes_to_host) == (2, x.nbytes + x[0].nbytes)
    assert np.asarray(a, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="on cuda cannot be a NumPy array without a copy"):
        np.asarray(a, copy=False)


def test_numbers_wait_for_the_device_and_say_what_numpy_says(clean_device: ArrayDevice) -> None:
    a = on_device()
    assert (float(a[1, 2]), int(a[1, 2]), complex(a[0, 1]), bool(a[0, 0]), a.item(7), a.item(1, 1)) == (
        8.0,
        8,
        1 + 0j,
        False,
        7.0,
        7.0,
    )
    assert [1, 2, 3][on_device(np.int64(1))] == 2 and f"{a[0, 3]:.2f}" == "3.00"
    assert [row.tolist() for row in a] == x.tolist()
    for wrong in (bool, float, lambda y: [0][y], lambda y: iter(y[0, 0])):
        with pytest.raises((TypeError, ValueError)) as said:
            wrong(x)
        with pytest.raises(said.type):
            wrong(a)


def test_pickles_and_is_copied_by_value(clean_device: ArrayDevice) -> None:
    a = on_device()[::2]
    again = pickle.loads(pickle.dumps(a))
    assert again.device == "cuda" and again.tolist() == a.tolist()
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)


def test_prints_its_place_and_small_ones_their_values(clean_device: ArrayDevice) -> None:
    assert repr(on_device(x[0, :3])) == "Array([0., 1., 2.], dtype=float32, device='cuda')"
    assert repr(on_device(np.zeros((20, 30)))) == "Array(shape=(20, 30), dtype=float64, device='cuda')"
    assert str(on_device(x[0, :3])) == "[0. 1. 2.]"


def test_unknown_devices_and_dtypes_are_refused() -> None:
    with pytest.raises(jitml.UnsupportedError, match="there is no device 'gpu'"):
        jitml.asarray(x, device="gpu")
    with host_device("spare"):
        assert "spare" in jitml.devices()
        with pytest.raises(jitml.DTypeError, match="cannot be on a device"):
            jitml.asarray(np.array(["a"]), device="spare")
    with pytest.raises(TypeError, match="an Array is made by"):
        jitml.Array()


def test_a_device_that_is_not_here_says_what_it_needs() -> None:
    if "cuda" in jitml.devices():
        pytest.skip("this machine has one")
    with pytest.raises(jitml.NoDeviceError) as said:
        on_device()
    assert said.value.remedy


def test_on_the_cpu_arrays_are_numpys() -> None:
    assert jitml.asarray(x) is x and jitml.asarray(x, device="cpu", copy=False) is x
    assert jitml.asarray([1, 2], np.float32).dtype == np.float32
    assert not np.may_share_memory(jitml.asarray(x, copy=True), x)
    with pytest.raises(ValueError, match="copy=False"):
        jitml.asarray([1, 2], copy=False)


TOUCHING: list[Callable[[Any], Any]] = [
    lambda v: v.sum(), lambda v: v + 1, lambda v: v.tolist(), lambda v: v.copy(), np.sum, lambda v: v.argmax(),
    lambda v: list(v.flat), lambda v: v == v, bool, lambda v: v.fill(0), lambda v: v[[0, 1]], lambda v: v.take(0),
    lambda v: 3 in v, lambda v: v.tobytes(), lambda v: v.astype(int), lambda v: v.item(0), pickle.dumps,
]  # fmt: skip


@pytest.mark.parametrize("touch", TOUCHING)
def test_no_method_of_a_view_of_device_memory_reads_it(clean_device: ArrayDevice, touch: Callable[[Any], Any]) -> None:
    view = on_device()._view
    assert type(view) is DeviceView and type(view[1:].T[0]) is DeviceView
    with pytest.raises(CompilerError, match="read device memory"):
        touch(view)
