"""CuPy's arrays as arguments: the answers and the changes are NumPy's, results are on the device, and nothing is copied.

What is CuPy here has its protocol; the real one is asked on a GPU (`test_real_gpu.py`, `bench/gpu/correctness/arrays.py`).
"""

from __future__ import annotations

import gc
from typing import Any, NoReturn

import numpy as np
import pytest

import jitml
from device.device_cases import change, on_device, on_host, require_same, x
from jitml.device.memory import ArrayDevice

LEGACY_STREAM = 1  # CuPy never tells 0
CUDA, CUDA_MANAGED = 2, 13  # DLPack's numbers


class CupyArray:
    """Shows a device array of ours as `cupy.ndarray` of CuPy 13 and 14 shows its own.

    There is no copy to the host unless one is asked for.

    Args:
        is_managed: it is in memory that the processor sees, too (`cupy.cuda.malloc_managed`).
        is_old: of CuPy 13, whose `__dlpack__` takes a stream alone.
    """

    __array_priority__ = 100

    def __init__(self, array: Any, *, is_managed: bool = False, is_old: bool = False) -> None:
        self.array, self.is_managed, self.is_old = array, is_managed, is_old
        self.streams: list[int | None] = []

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        told = self.array.__cuda_array_interface__
        return {
            "shape": told["shape"],
            "typestr": told["typestr"],
            "descr": self.array.dtype.descr,
            "stream": LEGACY_STREAM,
            "version": 3,
            "strides": told["strides"],
            "data": (told["data"][0], False),
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return (CUDA_MANAGED if self.is_managed else CUDA), 0

    def __dlpack__(self, *, stream: int | None = None, **new: Any) -> Any:
        if self.is_old and new:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        assert stream is None or (isinstance(stream, int) and stream != 0)  # CuPy refuses them
        assert set(new) <= {"max_version", "dl_device", "copy"}
        self.streams.append(stream)
        return self.array.__dlpack__(stream=stream, **new)

    def __array__(self, dtype: Any = None) -> NoReturn:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array.")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return NotImplemented  # with arrays that are not CuPy's

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return NotImplemented


KINDS: list[dict[str, bool]] = [{}, {"is_old": True}, {"is_managed": True}]
HOST = {
    "one axis": np.linspace(-2.0, 3.0, 11),
    "two axes": x.astype(np.float64),
    "columns first": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "half": np.arange(6, dtype=np.float16),
    "bytes": np.arange(6, dtype=np.uint8),
    "truths": np.array([True, False, True]),
    "complex": np.array([1 + 2j, -3j], np.complex64),
    "special": np.array([np.nan, np.inf, -0.0, 0.0]),
    "a number": np.array(2.5),
    "nothing": np.zeros((0, 3)),
    "one": np.ones(1),
}
PARTS = {"whole": np.s_[...], "backwards": np.s_[::-1], "each other": np.s_[::2], "the end": np.s_[1:]}


def values(v: Any) -> Any:
    return v + v, np.sum(v), np.where(v == v, v, 1), v[...]


def replaced(v: Any) -> None:
    v[...] = v == 0


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("name", HOST)
def test_the_answer_is_numpys(clean_device: ArrayDevice, name: str, kind: dict[str, bool]) -> None:
    host, f = HOST[name], jitml.jit(values, verify="never")
    for part in PARTS.values() if host.ndim else (np.s_[...],):
        ours = on_device(host)
        before = clean_device.copies.to_device
        found = f(CupyArray(ours[part], **kind))
        assert clean_device.copies.to_device == before and {type(r) for r in found} == {jitml.Array}
        for result, wanted in zip(on_host(found), values(host[part])):
            np.testing.assert_allclose(result, wanted, rtol=1e-14)
            assert result.dtype == wanted.dtype
        jitml.jit(replaced, verify="never")(v=CupyArray(ours[part], **kind))
        expected = host.copy()
        replaced(expected[part])
        np.testing.assert_array_equal(np.asarray(ours), expected)
    del found, ours
    gc.collect()


def test_it_waits_for_their_stream_and_they_for_ours(clean_device: ArrayDevice) -> None:
    theirs = CupyArray(on_device(x))
    result = jitml.jit(change, verify="never")(theirs)
    assert theirs.streams == [clean_device.memory.stream]
    expected = x.copy()
    require_same(on_host(result), change(expected))
    np.testing.assert_array_equal(np.asarray(theirs.array), expected)


@pytest.mark.loose
def test_two_views_of_one_array_overlap_as_numpys(clean_device: ArrayDevice) -> None:
    def shift(p: Any, q: Any) -> None:
        p[:] = q + p

    a, expected = on_device(np.arange(9.0)), np.arange(9.0)
    jitml.jit(shift, verify="never")(CupyArray(a[1:]), CupyArray(a[:-1]))
    shift(expected[1:], expected[:-1])
    np.testing.assert_array_equal(np.asarray(a), expected)


def test_transforms_take_them(clean_device: ArrayDevice) -> None:
    def loss(v: Any) -> Any:
        return (v**3).sum()

    theirs = CupyArray(on_device(x))
    for grad in (jitml.grad(loss), jitml.jit(jitml.grad(loss))):
        np.testing.assert_allclose(np.asarray(grad(theirs)), 3 * x**2)
    np.testing.assert_allclose(np.asarray(jitml.vmap(lambda row: row.sum())(theirs)), x.sum(axis=1))


def test_a_container_of_them_says_what_to_do(device: ArrayDevice) -> None:
    for use in (lambda p: p["a"].sum(), lambda p: np.exp(p["a"])):
        with pytest.raises(jitml.UnsupportedError, match=r"CupyArray on a device[\s\S]*jitml\.asarray"):
            jitml.jit(use)({"a": CupyArray(on_device(x))})
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.exp(CupyArray(on_device(x)).__array__())
