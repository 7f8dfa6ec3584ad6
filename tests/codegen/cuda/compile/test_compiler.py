"""NVRTC and what it makes: no GPU is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from jitml.codegen.cuda import compiler
from jitml.codegen.cuda.compiler import OPTIONS, compile_cubin, compile_ptx, disassemble, known_archs, nvrtc_version
from jitml.codegen.cuda.cubin import read_resources
from jitml.disk_cache import DiskCache
from jitml.errors import CompilerError, NoDeviceError, UnsupportedError

pytest.importorskip("cuda.bindings.nvrtc")

_ARCHS = ("sm_80", "sm_90", "sm_100")
_NOTHING = DiskCache(None, 0)
_SOURCE = """
extern "C" __global__ void __launch_bounds__(256) twice(const float4* __restrict__ x, float4* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { float4 v = x[i]; v.x += v.x; v.y += v.y; v.z += v.z; v.w += v.w; y[i] = v; }
}
extern "C" __global__ void chosen(float* x, unsigned char which, double z) {
    __shared__ float shared[128];
    float local[64];
    for (int i = 0; i < 64; i++) local[i] = x[i] * z;
    shared[threadIdx.x] = local[(which + threadIdx.x) % 64];
    __syncthreads();
    x[threadIdx.x] = shared[127 - threadIdx.x];
}
"""


@pytest.mark.parametrize("arch", _ARCHS)
def test_a_cubin_says_what_its_kernels_take(arch: str) -> None:
    cubin = compile_cubin(_SOURCE, arch, (*OPTIONS, "--ptxas-options=-v"), cache=_NOTHING)
    twice, chosen = cubin.resources["twice"], cubin.resources["chosen"]
    assert (twice.frame, twice.shared, twice.parameters) == (0, 0, (8, 8, 4))
    assert (chosen.frame, chosen.shared, chosen.parameters) == (256, 512, (8, 1, 8))
    for name, found in cubin.resources.items():  # the compiler's own words
        log = cubin.log.split(f"Function properties for {name}\n")[1]
        assert f"{found.frame} bytes stack frame" in log.split("Used")[0]
        assert log.split("Used ")[1].startswith(f"{found.registers} registers")


def test_a_damaged_cubin_is_told() -> None:
    code = compile_cubin(_SOURCE, "sm_90", cache=_NOTHING).code
    for damaged in (b"", b"no cubin at all", code[: len(code) // 2], code[:70]):
        with pytest.raises(ValueError, match="ELF file"):
            read_resources(damaged)


def test_products_and_sums_are_rounded_apart() -> None:
    source = 'extern "C" __global__ void f(double* x) { x[0] = x[1] * x[2] + x[3]; }'
    assert "mul.rn.f64" in compile_ptx(source, "sm_90") and "fma" not in compile_ptx(source, "sm_90")
    assert "fma.rn.f64" in compile_ptx(source, "sm_90", ("--std=c++17",))
    assert compile_ptx(source, "sm_80").count(".target sm_80") == 1


def test_what_the_compiler_refuses_is_shown_with_its_lines() -> None:
    lines = ['extern "C" __global__ void f(float* x) {', "  // a user's line", "  x[0] = INFINITY;", "  x[1] = 0;", "}"]
    with pytest.raises(CompilerError) as refused:
        compile_cubin("\n".join(lines), "sm_90", cache=_NOTHING)
    told = str(refused.value).splitlines()
    assert told[0] == 'NVRTC refuses the CUDA C++ of a program: line 3: identifier "INFINITY" is undefined'
    assert told[1:6] == [f"  {'>' if n == 3 else ' '}{n:5} | {line}" for n, line in enumerate(lines, 1)]
    assert "bug in jitml" in told[-2] and "NVRTC's log:" in told


def test_what_the_assembler_refuses_is_told() -> None:
    source = 'extern "C" __global__ void f(int* x) { __shared__ int s[20000]; s[x[1]] = 1; __syncthreads(); x[0] = s[x[2]]; }'
    with pytest.raises(CompilerError, match=r"program: ptxas error.*'f' uses too much shared data"):
        compile_cubin(source, "sm_90", cache=_NOTHING)


def test_an_architecture_that_the_compiler_does_not_know_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"does not compile for sm_999\nIt knows .*sm_90.*pip install --upgrade nvidia-"):
        compile_cubin(_SOURCE, "sm_999", cache=_NOTHING)
    assert set(_ARCHS) <= set(known_archs())


@pytest.mark.parametrize(
    ("error", "package"), [(ImportError("No module named cuda"), "cuda-bindings"), (RuntimeError("no lib"), "nvidia-cuda-nvrtc")]
)
def test_a_missing_compiler_is_told_with_the_package_that_brings_it(
    error: Exception, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise error

    monkeypatch.setattr(compiler, "import_module", missing)
    with pytest.raises(NoDeviceError, match=rf"(?s){error}.*pip install 'jitml\[cuda\]'.*\({package} is missing\)"):
        compile_cubin(_SOURCE, "sm_90")


def test_code_is_kept_for_its_text_options_architecture_and_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = DiskCache(tmp_path, 1 << 20)
    made = []
    compile_ = compiler._compile
    monkeypatch.setattr(compiler, "_compile", lambda *given: made.append(given) or compile_(*given))
    source = 'extern "C" __global__ void f(float* x) { x[0] = 1; }'
    first = compile_cubin(source, "sm_90", cache=cache)
    again = compile_cubin(source, "sm_90", cache=cache)
    assert len(made) == 1 and again.code == first.code and again.resources == first.resources
    compile_cubin(source, "sm_80", cache=cache)
    compile_cubin(source + " ", "sm_90", cache=cache)
    compile_cubin(source, "sm_90", ("--std=c++17",), cache=cache)
    assert len(made) == 4
    monkeypatch.setattr(compiler, "nvrtc_version", lambda: (99, 0))
    compile_cubin(source, "sm_90", cache=cache)
    assert len(made) == 5
    monkeypatch.undo()
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert compile_cubin(source, "sm_90", cache=cache).resources == first.resources


def test_the_disassembly_shows_wide_loads() -> None:
    cubin = compile_cubin(_SOURCE, "sm_90", cache=_NOTHING)
    try:
        text = disassemble(cubin)
    except UnsupportedError as error:
        pytest.skip(str(error))
    assert "LDG.E.128" in text and "STG.E.128" in text


def test_without_a_disassembler_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(compiler, "import_module", missing)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UnsupportedError, match="pip install nvidia-cuda-nvdisasm"):
        compiler.nvdisasm()


def test_the_version_is_that_of_the_library() -> None:
    assert nvrtc_version() >= (12, 0)
