"""Emulation of CUDA on the CPU: the text that goes to NVRTC goes to g++, and its threads run as fibers.

    module, = build([source])                   # all its `extern "C" __global__` kernels
    x = guarded(np.arange(100.0))               # accesses outside of it fault
    module.launch("double", blocks, threads, x, order=order)

Under each of the `ORDERS` of threads and blocks, a kernel has to give the same bits. It raises `KernelFault`, with block, thread
and line, for races (two threads access a byte, one of them writes, no barrier lies between), accesses outside of guarded memory,
misaligned vectors, barriers that threads meet apart, operations of a warp with wrong masks or lanes that have ended, and
asynchronous copies that are not waited for. Shared memory is NaN at first. `counted()` says what warps ask of memory, bank
conflicts too. What is not modelled: time, registers, blocks that wait for each other. The host's compiler allows more than NVRTC,
which therefore has to compile each kernel, too.
"""

from support.cuda_emulation.build import build
from support.cuda_emulation.host_library import BuildError, has_compiler
from support.cuda_emulation.launch import ORDERS, EmulatedModule, KernelFault, arguments_of
from support.cuda_emulation.memory import GuardedMemory, guarded
from support.cuda_emulation.traffic import Traffic, counted

__all__ = [
    "ORDERS",
    "BuildError",
    "EmulatedModule",
    "GuardedMemory",
    "KernelFault",
    "Traffic",
    "arguments_of",
    "build",
    "counted",
    "guarded",
    "has_compiler",
]
