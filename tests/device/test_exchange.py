"""Arrays of other libraries, by DLPack and `__cuda_array_interface__`: the same memory, streams that wait, and nothing kept."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.device import dlpack
from jitml.device.memory import ArrayDevice
from jitml.device.view import address

x = np.arange(24, dtype=np.int32).reshape(4, 6)


class Torch:
    """Another library's array, of before or after DLPack 1.0."""

    def __init__(self, array: Any, is_old: bool = False) -> None:
        self.array, self.is_old = array, is_old
        self.streams: list[Any] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()  # type: ignore[no-any-return]

    def __dlpack__(self, *, stream: Any = None, **new: Any) -> Any:
        self.streams.append(stream)
        if self.is_old and new:
            raise TypeError("unexpected keyword")
        return self.array.__dlpack__(stream=stream, **new)


class Numba:
    def __init__(self, array: Any, **changed: Any) -> None:
        self.array, self.changed = array, changed

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.array.__cuda_array_interface__ | self.changed


PARTS = [np.s_[:], np.s_[1:, ::2], np.s_[::-1, ::-2], np.s_[2, 3, ...], np.s_[0:0], np.s_[:, None]]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("way", [Torch, lambda a: Torch(a, is_old=True), Numba])
def test_comes_in_without_a_copy(clean_device: ArrayDevice, way: Any, part: Any) -> None:
    a = jitml.asarray(x, device="cuda")
    theirs = way(a[part])
    before = len(clean_device.memory.used)  # type: ignore[attr-defined]
    ours = jitml.asarray(theirs)
    assert len(clean_device.memory.used) == before and ours.device == "cuda"  # type: ignore[attr-defined]
    assert ours.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(ours), x[part])
    if ours.size:
        assert address(ours._view) == address(a[part]._view)


def test_the_owner_waits_for_our_stream_and_is_told_when_we_are_done(clean_device: ArrayDevice) -> None:
    theirs = Torch(jitml.asarray(x, device="cuda"))
    ours = jitml.from_dlpack(theirs)
    assert theirs.streams == [1234] and len(dlpack._lent) == 1
    del ours
    gc.collect()
    assert not dlpack._lent and ("hold_back", 1) in clean_device.memory.waits  # type: ignore[attr-defined]


def test_others_wait_for_our_stream_and_we_free_after_them(clean_device: ArrayDevice) -> None:
    waits = clean_device.memory.waits  # type: ignore[attr-defined]
    a = jitml.asarray(x, device="cuda")
    capsule = a.__dlpack__(stream=77)
    assert waits == [("hold_back", 77)]
    del a
    gc.collect()
    assert len(clean_device.memory.used) == 1  # type: ignore[attr-defined]  # the capsule holds it
    del capsule
    gc.collect()
    assert waits == [("hold_back", 77), ("wait_for", 77)] and not clean_device.memory.used  # type: ignore[attr-defined]


def test_the_interface_names_our_stream_and_theirs_is_waited_for(clean_device: ArrayDevice) -> None:
    a = jitml.asarray(x, device="cuda")
    told = a.__cuda_array_interface__
    assert told["stream"] == 1234 and told["version"] == 3 and told["typestr"] == "<i4" and told["strides"] is None
    assert told["data"] == (address(a._view), False)
    ours = jitml.asarray(Numba(a.T, stream=55))
    assert ("wait_for", 55) in clean_device.memory.waits and ours.shape == (6, 4)  # type: ignore[attr-defined]


def test_a_capsule_is_taken_once(clean_device: ArrayDevice) -> None:
    capsule = jitml.asarray(x, device="cuda").__dlpack__(max_version=(1, 1))
    tensor = dlpack.take(capsule)
    with pytest.raises(BufferError, match="taken before"):
        dlpack.take(capsule)
    del capsule
    gc.collect()
    assert len(dlpack._lent) == 1  # whoever has taken it gives it back
    tensor.release()


def test_what_is_read_only_stays_so(clean_device: ArrayDevice) -> None:
    a = jitml.asarray(x, device="cuda")
    a._view.flags.writeable = False
    assert not jitml.asarray(Torch(a)).flags.writeable and a.__cuda_array_interface__["data"][1]
    with pytest.raises(BufferError, match="read-only"):
        a.__dlpack__()


def test_what_cannot_come_in_is_refused(clean_device: ArrayDevice) -> None:
    a = jitml.asarray(x, device="cuda")
    for changed in ({"typestr": ">i4"}, {"mask": a}, {"typestr": "<U1"}):
        with pytest.raises(jitml.DTypeError):
            jitml.asarray(Numba(a, **changed))
    with pytest.raises(BufferError, match="to_device"):
        a.__dlpack__(dl_device=(1, 0))
    with pytest.raises(jitml.UnsupportedError, match=r"DLPack's device \(2, 3\)"):
        jitml.asarray(type("Other", (Torch,), {"__dlpack_device__": lambda self: (2, 3)})(a))
    with pytest.raises(TypeError, match="no __dlpack__"):
        jitml.from_dlpack([1])


def test_bfloat16_says_what_to_do() -> None:
    with pytest.raises(jitml.DTypeError, match="bfloat16 are not supported"):
        dlpack._dtype(4, 16, 1)


def test_dlpack_arrays_of_the_host_are_numpys() -> None:
    assert np.shares_memory(jitml.from_dlpack(x), x)
