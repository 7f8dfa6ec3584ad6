"""cuSOLVER: how is a factorization handed to NVIDIA's library?  As functions of it, one after the other, for each matrix.

Matrices are column-major and dense, in scratch memory of the program's: each function overwrites what it reads. Sizes of
workspaces are asked for once, when a program is bound to a device. The functions of the generic interface have one form for all
types; of older ones there is one for each. Some wait for the GPU, so that none is recorded in a graph.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_int, c_int64, c_size_t, c_void_p
from functools import cache
from typing import Any, Literal

from jitml.codegen.cuda.libraries.library import Library, LibraryError, installed, opened
from jitml.errors import DeviceFault
from jitml.ir.types import DType
from jitml.memory.arena import aligned
from jitml.records import dataclass, field

# Values of the headers' enumerations.
WITHOUT_VECTORS, WITH_VECTORS = c_int(0), c_int(1)  # CUSOLVER_EIG_MODE_NOVECTOR and VECTOR
LOWER, UPPER = c_int(0), c_int(1)  # CUBLAS_FILL_MODE_LOWER and UPPER
AS_IT_IS = c_int(0)  # CUBLAS_OP_N
_TYPES = {(4, False): 0, (8, False): 1, (4, True): 4, (8, True): 5}  # CUDA_R_32F, R_64F, C_32F, C_64F; by bytes of a part
_LETTERS = {(4, False): "S", (8, False): "D", (4, True): "C", (8, True): "Z"}


@dataclass(frozen=True, slots=True)
class NumberKind:
    """What matrices are made of.

    Args:
        part: the dtype, of complex numbers that of each part.
    """

    part: DType
    is_complex: bool

    @property
    def nbytes(self) -> int:
        return self.part.itemsize * (1 + self.is_complex)

    @property
    def code(self) -> c_int:
        """cudaDataType."""
        return c_int(_TYPES[self.part.itemsize, self.is_complex])

    @property
    def code_of_parts(self) -> c_int:
        return c_int(_TYPES[self.part.itemsize, False])

    @property
    def letter(self) -> str:
        return _LETTERS[self.part.itemsize, self.is_complex]


@dataclass(frozen=True, slots=True)
class MatrixPlace:
    """An address that a function takes.

    Args:
        buffer: by its number among those of the call.
        step: bytes from that of one matrix to the next.
        is_sized: whether the function that tells the size of a workspace takes it, too.
    """

    buffer: int
    step: int
    is_sized: bool = True


@dataclass(frozen=True, eq=False)
class SolverFunction:
    """A function of the library.

    Args:
        name: without `cusolverDn`.
        arguments: numbers and places between the handle and the workspace.
        info: what it says of each matrix: 0 if all is well, above 0 if there is no result.
        interface: generic; older, with a type in its name; or generic without a workspace.
        stack: matrices that one call takes; 0 if it takes one, and is called for each.
    """

    name: str
    arguments: tuple[Any, ...]
    info: MatrixPlace
    interface: Literal["generic", "typed", "plain"] = "generic"
    stack: int = 0


@dataclass(frozen=True, slots=True)
class Workspace:
    """Bytes on the device and on the host; `elements` as the older interface counts them."""

    device: int = 0
    host: int = 0
    elements: int = 0


@dataclass(eq=False)
class SolverCall:
    """Functions of the library for a stack of matrices, one after the other.

    Args:
        buffers: that places mean; it writes the first one, at least.
        count: matrices.
    """

    buffers: tuple[str, ...]
    kind: NumberKind
    functions: tuple[SolverFunction, ...]
    count: int
    library = "cusolver"
    workspace = 0
    can_record = False
    _sizes: list[Workspace] = field(default_factory=list, repr=False, init=False)
    _host: Any = field(default=None, repr=False, init=False)

    def is_ready(self) -> bool:
        """Whether the library is there, and its version has the functions. The GPU's context has to be the thread's."""
        solver = cusolver()
        if solver is None:
            return False
        try:
            self._sizes = [solver.size(function, self.kind) for function in self.functions]
        except LibraryError:
            return False
        self._host = ctypes.create_string_buffer(max(1, *(size.host for size in self._sizes)))
        return True

    def own_bytes(self) -> int:
        return aligned(max(1, *(size.device for size in self._sizes)), 256)

    def __call__(self, stream: int, addresses: Sequence[int]) -> None:
        """
        Raises:
            DeviceFault: the library refuses.
        """
        solver = cusolver()
        assert solver is not None
        *places, space = addresses
        try:
            for function, size in zip(self.functions, self._sizes, strict=True):
                for number in range(1 if function.stack else self.count):
                    solver.run(function, size, number, places, (space, self._host), stream)
        except LibraryError as error:
            raise DeviceFault(str(error)) from None


class CuSolver(Library):
    """The library. It has a handle for each stream, and so for each GPU."""

    name, create = "cuSOLVER", "cusolverDnCreate"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._handles: dict[int, c_void_p] = {}
        self._parameters, self._jacobi = c_void_p(), c_void_p()

    def open(self) -> None:
        super().open()
        self._call("cusolverDnCreateParams", byref(self._parameters))
        self._call("cusolverDnCreateGesvdjInfo", byref(self._jacobi))

    def size(self, function: SolverFunction, kind: NumberKind) -> Workspace:
        """
        Raises:
            LibraryError: it does not take such a matrix, or is too old.
        """
        name = f"cusolverDn{function.name}"
        if not self.has(name):
            raise LibraryError(f"this version of {self.name} has no {name}")
        if function.interface == "plain":
            return Workspace()
        told = (x for x in function.arguments if type(x) is not MatrixPlace or x.is_sized)
        given = [c_void_p() if type(x) is MatrixPlace else x for x in told]
        behind = self._behind(function)
        if function.interface == "generic":
            device, host = c_size_t(), c_size_t()
            self._call(f"{name}_bufferSize", self._handle, self._parameters, *given, byref(device), byref(host), *behind)
            return Workspace(device.value, host.value)
        elements = c_int()
        self._call(f"{name}_bufferSize", self._handle, *given, byref(elements), *behind)
        return Workspace(elements.value * kind.nbytes, 0, elements.value)

    def run(
        self, function: SolverFunction, size: Workspace, number: int, places: Sequence[int], spaces: tuple[int, Any], stream: int
    ) -> None:
        """Do it for one matrix, or for all of a stack.

        Args:
            spaces: workspaces on the device, by its address, and on the host.
        """

        def given(x: Any) -> Any:
            return c_void_p(places[x.buffer] + number * x.step) if type(x) is MatrixPlace else x

        space, host = c_void_p(spaces[0]), spaces[1]
        first: list[Any] = [] if function.interface == "typed" else [self._parameters]
        work: dict[str, list[Any]] = {
            "generic": [space, c_size_t(size.device), host, c_size_t(size.host)],
            "typed": [space, c_int(size.elements)],
            "plain": [],
        }
        last = (*work[function.interface], given(function.info), *self._behind(function))
        with self._lock:
            handle = self._handle_for(stream)
            self._call(f"cusolverDn{function.name}", handle, *first, *map(given, function.arguments), *last)

    def _behind(self, function: SolverFunction) -> list[Any]:
        """What functions for stacks take at the end: the count, and the older ones before it how Jacobi's method is to go on."""
        if not function.stack:
            return []
        return [c_int64(function.stack)] if function.interface == "generic" else [self._jacobi, c_int(function.stack)]

    def _handle_for(self, stream: int) -> c_void_p:
        handle = self._handles.get(stream)
        if handle is None:
            handle = c_void_p()
            self._call(self.create, byref(handle))
            self._call("cusolverDnSetStream", handle, c_void_p(stream))
            self._handles[stream] = handle
        return handle


def find_cusolver() -> CuSolver | None:
    """The library, if it is installed."""
    return installed("cusolver", CuSolver)


@cache
def cusolver() -> CuSolver | None:
    """The library with a handle; None where it is not installed, or there is no GPU."""
    return opened(find_cusolver())
