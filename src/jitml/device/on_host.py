"""Functions that are not compiled, on device arrays: they run on copies; what they change or answer goes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitml.device.array import Array, to_device
from jitml.device.memory import ArrayDevice, HostArray
from jitml.device.view import fetch, store
from jitml.ir.types import is_supported

_Copies = dict[int, tuple[Array, HostArray, bytes]]


def on_host(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function answers for copies of the device arrays among its arguments: arrays on that device."""
    copies: _Copies = {}
    args, kwargs = _copied(args, copies), _copied(kwargs, copies)
    result = function(*args, **kwargs)
    for array, host, before in copies.values():
        if host.tobytes() != before:
            store(array._view, host)
    known: dict[int, Any] = {id(x): x for x in (*args, *kwargs.values()) if isinstance(x, np.ndarray)}
    known.update((id(host), array) for array, host, _ in copies.values())
    device = next((array._device for array, _, _ in copies.values()), None)
    return result if device is None else _returned(result, device, known)


def _copied(x: Any, copies: _Copies) -> Any:
    if type(x) is Array:
        if id(x) not in copies:
            host = fetch(x._view)
            copies[id(x)] = x, host, host.tobytes()
        return copies[id(x)][1]
    if type(x) in (tuple, list):
        return type(x)(_copied(item, copies) for item in x)
    return {key: _copied(item, copies) for key, item in x.items()} if type(x) is dict else x


def _returned(x: Any, device: ArrayDevice, known: dict[int, Any]) -> Any:
    if id(x) in known:
        return known[id(x)]
    if isinstance(x, (np.ndarray, np.generic)) and is_supported(x.dtype):
        return to_device(np.asarray(x), device)
    if type(x) in (tuple, list):
        return type(x)(_returned(item, device, known) for item in x)
    return x
