"""The LLVM back end: machine code for the CPU that this process runs on."""

from __future__ import annotations

from jitml.codegen.backend import Backend, CodeOptions, Executable
from jitml.codegen.llvm.module import FLAGS, Module, emit_program
from jitml.codegen.llvm.runtime import jit
from jitml.codegen.llvm.runtime.compiler import bind_module, compile_module
from jitml.codegen.llvm.runtime.cpu import host_cpu, thread_limit
from jitml.codegen.llvm.runtime.target import host_target
from jitml.codegen.llvm.schedule import SCHEDULER
from jitml.codegen.run.calling import RunNeeds
from jitml.kernels.target import Target
from jitml.memory.program import Program


class LLVM:
    name = "llvm"
    stages = ("llvm", "asm")
    scheduler = SCHEDULER
    most_bytes = None

    @property
    def target(self) -> Target:
        return host_target()

    def emit(self, program: Program, options: CodeOptions) -> Module:
        return emit_program(
            program, cpu=host_cpu(), fastmath=options.fastmath.intersection(FLAGS), threads=options.threads or thread_limit()
        )

    def load(self, program: Program, module: Module, options: CodeOptions, needs: RunNeeds) -> Executable:
        with jit.Generation(host_cpu()) as generation:
            objects = generation.finish(module.parts)
        return bind_module(program, module, objects, options.threads or thread_limit(), needs)

    def compile(self, program: Program, options: CodeOptions, needs: RunNeeds) -> tuple[Module, Executable]:
        return compile_module(program, threads=options.threads, fastmath=options.fastmath.intersection(FLAGS), needs=needs)

    def text(self, stage: str, module: Module) -> str:
        """The IR as it was emitted, or the machine code."""
        if stage == "llvm":
            return module.text
        made = (jit.prepare(part, host_cpu()) for part in module.parts)
        return "\n".join(jit.assembly(prepared, host_cpu(), level=level) for prepared, level in made)


BACKEND: Backend[Module] = LLVM()
