"""The parts of the check of a GPU, in the order of their importance: as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from gpu.supervision import Part

_GPU = frozenset(("device", "cuda.bindings"))
_PROGRAMS = frozenset(("device", "backend"))
_TABLES = _PROGRAMS | {"hypothesis", "pytest"}  # the tests' own modules import them

CHECK = (
    Part("leads", "Does the device do what the design takes for granted?", "gpu.correctness.leads", 45, 1, 25, _GPU | {"nvrtc"}),
    Part("runtime", "Does the runtime's device?", "gpu.correctness.runtime", 40, 3, 25, _GPU | {"nvrtc", "jitml"}),
    Part("ops", "Does each op of the table give NumPy's answer?", "gpu.correctness.ops", 70, 12, 25, _PROGRAMS, True),
    Part("sizes", "Do kernels of many blocks?", "gpu.correctness.sizes", 45, 12, 20, _PROGRAMS, True),
    Part("programs", "Do whole programs?", "gpu.correctness.programs", 60, 12, 20, _PROGRAMS, True),
    Part("arrays", "Do arrays on the device?", "gpu.correctness.arrays", 30, 4, 25, _GPU | {"jitml"}, True),
    Part("tests", "Do the tests marked `cuda` pass?", "gpu.correctness.own_tests", 50, 6, 45, _TABLES),
    Part("gradients", "Do derivatives?", "gpu.correctness.gradients", 40, 12, 20, _PROGRAMS, True),
    Part("leaks", "What is left on the device?", "gpu.correctness.leaks", 30, 1, 25, _PROGRAMS),
    Part(
        "sanitizer",
        "What does compute-sanitizer find?",
        "gpu.correctness.sanitizer",
        40,
        4,
        38,
        _PROGRAMS | {"tool:compute-sanitizer"},
    ),
    Part("edges", "Do pointwise ops at edge values?", "gpu.correctness.edges", 25, 12, 20, _TABLES, True),
    Part("drawn", "Do drawn programs?", "gpu.correctness.drawn", 300, 12, 20, _TABLES, True),
)
_measured = partial(Part, verifies=False)
MEASURE = (
    _measured("limits", "What can this device do?", "gpu.speed.limits", 25, 1, 20, _GPU | {"nvrtc"}),
    _measured("kernels", "How near do memory-bound kernels come to a copy?", "gpu.speed.kernels", 90, 8, 60, _PROGRAMS, True),
    _measured("products", "How near are products to cuBLAS? Launches?", "gpu.speed.products", 60, 1, 30, _PROGRAMS | {"torch"}),
    _measured("everyday", "Who is ahead on everyday programs?", "gpu.speed.everyday", 120, 12, 110, _PROGRAMS, True),
    _measured("gradients", "Who is ahead on derivatives?", "gpu.speed.gradients", 90, 8, 80, _PROGRAMS, True),
)
PARTS: Mapping[str, Sequence[Part]] = {"check": CHECK, "measure": MEASURE}
