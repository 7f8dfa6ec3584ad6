"""The CUDA back end: kernels as CUDA C++, compiled by NVRTC for the GPU of this machine.

Code can be written and read with no GPU; to load it takes one.
"""

from __future__ import annotations

from jitml.codegen.backend import Backend, CodeOptions, Executable
from jitml.codegen.cuda.compiler import compile_cubin, compile_ptx, disassemble
from jitml.codegen.cuda.runtime.devices import device, known_arch, most_bytes
from jitml.codegen.cuda.runtime.executable import CudaExecutable
from jitml.codegen.cuda.runtime.loaded import LoadedProgram
from jitml.codegen.cuda.runtime.text import CudaText, write_text
from jitml.codegen.cuda.runtime.usage import launches_text
from jitml.codegen.cuda.schedule import SCHEDULER
from jitml.codegen.cuda.target import cuda_target
from jitml.codegen.run.calling import RunNeeds
from jitml.kernels.target import Target
from jitml.memory.program import Program


class Cuda:
    name = "cuda"
    stages = ("cuda", "launches", "ptx", "sass")
    scheduler = SCHEDULER

    @property
    def target(self) -> Target:
        return cuda_target(known_arch())

    @property
    def most_bytes(self) -> int | None:
        return most_bytes()

    def emit(self, program: Program, options: CodeOptions) -> CudaText:
        return write_text(program, options.fastmath)

    def load(self, program: Program, module: CudaText, options: CodeOptions, needs: RunNeeds) -> Executable:
        """
        Raises:
            NoDeviceError: there is no GPU, or something is missing to use it.
        """
        return CudaExecutable(LoadedProgram(program, module, device()), needs)

    def compile(self, program: Program, options: CodeOptions, needs: RunNeeds) -> tuple[CudaText, Executable]:
        module = self.emit(program, options)
        return module, self.load(program, module, options, needs)

    def text(self, stage: str, module: CudaText) -> str:
        """The source, what is launched, the compiler's portable assembly, or the GPU's instructions.

        The GPU is that of this machine, or an H100.
        """
        if stage == "cuda":
            return module.source
        if stage == "launches":
            return launches_text(module, known_arch())
        if stage == "ptx":
            return compile_ptx(module.source, known_arch())
        return disassemble(compile_cubin(module.source, known_arch()))


BACKEND: Backend[CudaText] = Cuda()
