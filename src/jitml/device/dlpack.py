"""DLPack, in and out: arrays handed between libraries without a copy, as capsules that hold a `DLManagedTensor`.

The structures are DLPack's C header's. A capsule that nobody takes is deleted by its destructor; a taken one by the consumer, who
calls the deleter in the structure.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from jitml.errors import DTypeError
from jitml.interrupts import pass_on
from jitml.records import dataclass

_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # NumPy's kind -> DLPack's code
_KINDS = {code: kind for kind, code in _CODES.items()}
_OTHERS = {3: "an opaque handle", 4: "bfloat16"}
_READ_ONLY = 1
_PLAIN, _VERSIONED = b"dltensor", b"dltensor_versioned"


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _ManagedVersioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_Struct = _Managed | _ManagedVersioned

_lent: dict[int, tuple[Any, ...]] = {}  # by the address of a structure: all that others may still read


def _forget(address: int | None) -> None:
    _lent.pop(address or 0, None)


_delete = _Deleter(_forget)


_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_api = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", _api))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", _api))
_USED = {_PLAIN: ctypes.c_char_p(b"used_dltensor"), _VERSIONED: ctypes.c_char_p(b"used_dltensor_versioned")}
_NAMES = {name: ctypes.c_char_p(name) for name in _USED}  # capsules keep the pointers


def _forget_untaken(capsule: int) -> None:
    for name in _USED:
        if _is_valid(capsule, name):
            _forget(_pointer(capsule, name))


_destroy = _Destructor(_forget_untaken)


def export(view: Any, address: int, device: tuple[int, int], *, is_versioned: bool) -> Any:
    """A capsule that shows an array, and keeps it alive.

    Args:
        address: of the first element.

    Raises:
        BufferError: it is read-only, which old capsules cannot say.
    """
    is_readonly = not view.flags.writeable
    if is_readonly and not is_versioned:
        raise BufferError("a read-only array needs DLPack 1.0: pass max_version=(1, 0)")
    count = view.ndim
    shape = (ctypes.c_int64 * count)(*view.shape)
    strides = (ctypes.c_int64 * count)(*(s // view.itemsize for s in view.strides))
    managed: _Struct = _ManagedVersioned() if is_versioned else _Managed()
    if isinstance(managed, _ManagedVersioned):
        managed.major, managed.minor, managed.flags = 1, 0, _READ_ONLY if is_readonly else 0
    tensor = managed.tensor
    tensor.data, (tensor.device_type, tensor.device_id) = address if view.size else None, device
    tensor.ndim, tensor.shape, tensor.strides, tensor.byte_offset = count, shape, strides, 0
    tensor.code, tensor.bits, tensor.lanes = _CODES[view.dtype.kind], 8 * view.itemsize, 1
    managed.deleter = ctypes.cast(_delete, ctypes.c_void_p)
    place = ctypes.addressof(managed)
    _lent[place] = (managed, shape, strides, view)
    return _new(place, _NAMES[_VERSIONED if is_versioned else _PLAIN], ctypes.cast(_destroy, ctypes.c_void_p))


@dataclass(frozen=True, slots=True)
class SharedTensor:
    """What a capsule has told of another library's array.

    Args:
        strides: in bytes; None for C order.
        release: tells the library that its array is not used any more.
    """

    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    device: tuple[int, int]
    is_readonly: bool
    release: Callable[[], None]


def take(capsule: Any) -> SharedTensor:
    """Take a capsule: whoever has got it must call `release`.

    Raises:
        DTypeError: jitml has no such dtype.
        BufferError: it has been taken before, or is of a version that nobody knows yet.
    """
    name = next((n for n in _USED if _is_valid(id(capsule), n)), None)
    if name is None:
        raise BufferError("this DLPack capsule has been taken before")
    place = _pointer(id(capsule), name)
    managed: _Struct = (_ManagedVersioned if name is _VERSIONED else _Managed).from_address(place)
    if isinstance(managed, _ManagedVersioned) and managed.major > 1:
        raise BufferError(f"this DLPack capsule is of version {managed.major}.{managed.minor}; jitml reads 1.x")
    tensor = managed.tensor
    dtype = _dtype(tensor.code, tensor.bits, tensor.lanes)
    shape = tuple(tensor.shape[n] for n in range(tensor.ndim))
    strides = tuple(tensor.strides[n] * dtype.itemsize for n in range(tensor.ndim)) if tensor.strides else None
    is_readonly = isinstance(managed, _ManagedVersioned) and bool(managed.flags & _READ_ONLY)
    deleter = _Deleter(managed.deleter) if managed.deleter else None

    def release() -> None:
        if deleter is not None:
            deleter(place)

    address = (tensor.data or 0) + tensor.byte_offset
    device = (tensor.device_type, tensor.device_id)
    _rename(capsule, _USED[name])
    return SharedTensor(address, dtype, shape, strides, device, is_readonly, release)


def _dtype(code: int, bits: int, lanes: int) -> np.dtype[Any]:
    if lanes == 1 and code in _KINDS and bits % 8 == 0:
        try:
            return np.dtype(f"{_KINDS[code]}{bits // 8}")
        except TypeError as error:
            pass_on(error)
    what = _OTHERS.get(code, f"DLPack's type {code} of {bits} bits")
    raise DTypeError(f"arrays of {what} are not supported", remedy="Convert it in the other library: to float32, say.")
