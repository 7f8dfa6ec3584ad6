"""Processors: which CPU is code made for?  By LLVM's names, as data, so that any CPU can be described.

`codegen/llvm/runtime/cpu.py` describes the host; tests describe others and cross-compile.
"""

from __future__ import annotations

from functools import cached_property

from jitml.records import dataclass, field

DENSE_STRIDE = 4  # up to this stride, whole vectors and shuffles are faster than an access for each lane


@dataclass(frozen=True)
class Cpu:
    """A CPU by LLVM's names.

    Args:
        triple: as in `x86_64-unknown-linux-gnu`.
        cpu: LLVM's name of the processor (`znver5`, `x86-64-v3`, `generic`).
        features: LLVM's feature string (`+avx2,+fma,-sse4a`); empty leaves it to `cpu`.
        threads: the most threads that a program may use.

    >>> Cpu("x86_64-unknown-linux-gnu", "haswell", "+sse2,+avx,+avx2,+fma").vector_bytes
    32
    """

    triple: str
    cpu: str
    features: str
    threads: int = field(default=1, compare=False)

    @property
    def arch(self) -> str:
        """`x86_64` or `aarch64`, as the triple begins (Apple's `arm64` is `aarch64`)."""
        arch = self.triple.split("-")[0]
        return "aarch64" if arch == "arm64" else arch

    @property
    def is_x86(self) -> bool:
        return self.arch == "x86_64"

    def has(self, feature: str) -> bool:
        """Whether a feature is on: `has("avx512f")`."""
        return feature in self._features

    @cached_property
    def _features(self) -> frozenset[str]:
        on = {f[1:] for f in self.features.split(",") if f.startswith("+")}
        return frozenset(on) if self.features else _IMPLIED.get(self.cpu, frozenset())

    @property
    def has_avx2(self) -> bool:
        return self.has("avx2")

    @property
    def has_avx512(self) -> bool:
        """The subset that vector code needs: 512-bit arithmetic, masks on every lane width, 64-bit multiply."""
        return all(self.has(f) for f in ("avx512f", "avx512bw", "avx512vl", "avx512dq"))

    @property
    def has_fma(self) -> bool:
        return not self.is_x86 or self.has("fma")

    @property
    def has_neon(self) -> bool:
        return self.arch == "aarch64"

    @property
    def vector_bytes(self) -> int:
        """Bytes of a vector register: what one SIMD instruction works on."""
        if self.has_avx512:
            return 64
        return 32 if self.has_avx2 else 16

    @property
    def vector_registers(self) -> int:
        return 32 if self.has_avx512 or self.has_neon else 16


_V3 = frozenset(("sse2", "sse4.1", "sse4.2", "avx", "avx2", "fma", "bmi", "bmi2", "f16c", "lzcnt", "movbe", "popcnt"))
# What a CPU name implies, for the few generic names that stand without a feature string.
_IMPLIED: dict[str, frozenset[str]] = {
    "x86-64": frozenset(("sse2",)),
    "x86-64-v2": frozenset(("sse2", "sse4.1", "sse4.2", "popcnt")),
    "x86-64-v3": _V3,
    "x86-64-v4": _V3 | {"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512cd"},
}

X86_64 = Cpu("x86_64-unknown-linux-gnu", "x86-64", "")
X86_64_V3 = Cpu("x86_64-unknown-linux-gnu", "x86-64-v3", "")
X86_64_V4 = Cpu("x86_64-unknown-linux-gnu", "x86-64-v4", "")
AARCH64 = Cpu("aarch64-unknown-linux-gnu", "generic", "+neon")
