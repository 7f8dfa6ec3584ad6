"""Results of runs: outputs of their true shape, or what has failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jitml.codegen.run.interface import ProgramInterface
from jitml.kernels.ir import Buffer
from jitml.kernels.sizes import evaluate

Array = np.ndarray[Any, Any]


def has_failed(result: Any) -> bool:
    """Whether what a program returned says that the plain function has to answer the call."""
    return type(result) is tuple


def exact_buffers(interface: ProgramInterface, inputs: Sequence[Array]) -> list[Buffer]:
    """The outputs' buffers; those whose shape follows from the inputs have their true shape."""
    buffers = list(interface.outputs)
    if not interface.exact:
        return buffers
    values = {name: int(inputs[place]) for name, place in interface.sizes.items()}
    for k, buffer in enumerate(interface.outputs):
        if buffer.name in interface.exact:
            shape = tuple(evaluate(e, values) for e in interface.exact[buffer.name])
            buffers[k] = replace(buffer, shape=shape, strides=None if buffer.is_c_contiguous else buffer.strides)
    return buffers


def shrunk(outputs: list[Array], measured: Sequence[tuple[int | None, ...] | None]) -> list[Array]:
    """Outputs without the elements beyond their true shape.

    Args:
        outputs: of the largest shapes; the last one holds the true extents.
        measured: for each output and axis, where its extent stands there.
    """
    extents: list[int] = outputs.pop().tolist()
    for k, places in enumerate(measured):
        if places is not None:
            whole = outputs[k]
            shape = tuple(n if place is None else extents[place] for n, place in zip(whole.shape, places))
            outputs[k] = _leading(whole, shape)
    return outputs


def _leading(whole: Array, shape: tuple[int, ...]) -> Array:
    """The leading part of a new array: where it lies if much of it is kept and its elements are neighbours, else a copy."""
    if whole.shape == shape:
        return whole
    if whole.shape[1:] == shape[1:] and 4 * shape[0] >= whole.shape[0] and whole.flags.c_contiguous:
        whole.resize(shape, refcheck=False)
        return whole
    return whole[tuple(map(slice, shape))].copy()
