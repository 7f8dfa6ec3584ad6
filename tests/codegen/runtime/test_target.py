"""What this machine is said to be, and other machines as data."""

from __future__ import annotations

import os

import pytest

from jitml.codegen.llvm.ir.cpu import AARCH64, X86_64, X86_64_V3, X86_64_V4, Cpu
from jitml.codegen.llvm.runtime.cpu import host_caches, host_cpu, target_machine, thread_limit, usable_cores
from jitml.codegen.llvm.runtime.target import host_target


@pytest.mark.parametrize(
    ("target", "bytes", "registers", "fma"),
    [(X86_64, 16, 16, False), (X86_64_V3, 32, 16, True), (X86_64_V4, 64, 32, True), (AARCH64, 16, 32, True)],
    ids=lambda x: x.cpu if isinstance(x, Cpu) else "",
)
def test_vectors_of_other_processors(target: Cpu, bytes: int, registers: int, fma: bool) -> None:
    assert (target.vector_bytes, target.vector_registers, target.has_fma) == (bytes, registers, fma)
    assert target_machine(target, 2) is target_machine(target, 2)


def test_features_win_over_the_name() -> None:
    assert Cpu("x86_64-unknown-linux-gnu", "x86-64-v4", "+sse2,-avx512f").vector_bytes == 16
    assert Cpu("arm64-apple-darwin", "apple-m1", "+neon").has_neon


def test_the_host() -> None:
    host, caches = host_cpu(), host_caches()
    assert host.vector_bytes >= 16 and host.triple
    assert 0 < caches.l1 < caches.l2
    assert 1 <= usable_cores() <= (os.cpu_count() or 1) and thread_limit() >= 1


def test_cuts_do_not_depend_on_the_number_of_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = host_target()
    monkeypatch.setattr("jitml.codegen.llvm.runtime.cpu.usable_cores", lambda: 64)
    host_target.cache_clear()
    assert host_target() == machine
