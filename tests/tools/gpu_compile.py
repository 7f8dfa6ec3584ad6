"""Whole programs through NVRTC, for every architecture: which kernels do not compile, spill, or take long?

`make gpu-compile` goes through the corpus and the suites of `bench/`, derivatives included. It needs no GPU. It prints a line for
each program, writes `out/gpu-compile.json`, and ends with status 1 if a program cannot be compiled or a kernel exceeds a limit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jitml
from jitml.codegen.cuda.compiler import nvrtc_version
from jitml.errors import JitmlError, UnsupportedError

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
sys.path.insert(0, str(Path(__file__).parents[1]))

import autodiff
import workloads
from autodiff.columns import ours
from programs import corpus
from support.emitted_cuda.compiled import ARCHS, cuda_text, fresh_reports

ROOT = Path(__file__).parents[2]
_BAR = 300  # milliseconds that a typical program is to take at most
Subject = tuple[str, Callable[..., Any], Callable[[], tuple[Any, ...]]]


def subjects() -> Iterator[Subject]:
    """Name, function, and what makes its arguments."""
    for name in corpus.NAMES:
        program = corpus.load(name)
        yield f"corpus/{name}", program.function, lambda program=program: program.arguments("large", 0)
    for name, w in workloads.WORKLOADS.items():
        function = w.function if w.loss is None else jitml.grad(w.loss, argnums=w.argnums)
        yield f"everyday/{name}", function, w.make_inputs
    transforms = ours.Transforms()
    for name, d in autodiff.WORKLOADS.items():
        yield f"derivatives/{name}", d.task.of(transforms, d.function), d.make_inputs


def examine(function: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Any]:
    """What is to be known of one program."""
    began = time.process_time()
    source = cuda_text(function, *args)
    found: dict[str, Any] = {"emit": time.process_time() - began, "lines": source.count("\n"), "excess": {}, "nvrtc": {}}
    for arch in ARCHS:
        began = time.process_time()
        kernels = fresh_reports(source, arch)
        found["nvrtc"][arch] = time.process_time() - began
        found["excess"] |= {f"{name} ({arch})": kernel.excess for name, kernel in kernels.items() if kernel.excess}
        found["kernels"] = len(kernels)
        found["registers"] = max([found.get("registers", 0), *(kernel.resources.registers for kernel in kernels.values())])
    return found


def line(name: str, found: dict[str, Any]) -> str:
    if "refused" in found:
        return f"{name:44} {found['refused']}"
    times = " ".join(f"{1e3 * found['nvrtc'][arch]:5.0f}" for arch in ARCHS)
    excess = "; ".join(f"{kernel}: {what}" for kernel, what in found["excess"].items())
    return f"{name:44} {found['kernels']:4} kernels {found['registers']:4} registers {times} ms  {excess}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="programs whose names have this in them")
    parser.add_argument("--write", type=Path, default=ROOT / "out" / "gpu-compile.json")
    parser.add_argument("--record", type=Path, help="a table as Markdown: bench/results/gpu_compile.md")
    options = parser.parse_args()
    print(f"NVRTC {'.'.join(map(str, nvrtc_version()))}; milliseconds of the processor for {', '.join(ARCHS)}")
    results: dict[str, dict[str, Any]] = {}
    for name, function, make in subjects():
        if options.only in name:
            try:
                results[name] = examine(function, make())
            except UnsupportedError as error:
                results[name] = {"refused": f"refused: {str(error).splitlines()[0]}"}
            except JitmlError as error:
                results[name] = {"refused": f"FAILED: {str(error)[:2000]}", "failed": True}
            except Exception:
                results[name] = {"refused": f"FAILED: {traceback.format_exc()}", "failed": True}
            print(line(name, results[name]), flush=True)
    options.write.parent.mkdir(exist_ok=True, parents=True)
    options.write.write_text(json.dumps(results, indent=1))
    if options.record:
        options.record.write_text(table(results))
    return summary(results)


def table(results: dict[str, dict[str, Any]]) -> str:
    """Milliseconds of each program, the slowest first, as Markdown."""
    compiled = {name: r for name, r in results.items() if "refused" not in r}
    times = {arch: sorted(1e3 * r["nvrtc"][arch] for r in compiled.values()) for arch in ARCHS}
    lines = [
        "# Programs through NVRTC",
        "",
        f"`make gpu-compile` compiles {len(compiled)} programs with NVRTC {'.'.join(map(str, nvrtc_version()))}. These are",
        "milliseconds of the processor for each, with nothing kept from before.",
        "",
        f"| | kernels | registers | {' | '.join(ARCHS)} |",
        f"| --- | ---: | ---: |{' ---: |' * len(ARCHS)}",
    ]
    for share, what in ((0.5, "the median"), (0.9, "90 of 100 take less than")):
        row = " | ".join(f"{of[int(share * len(of))]:.0f}" for of in times.values())
        lines.append(f"| **{what}** | | | {row} |")
    row = " | ".join(str(sum(t <= _BAR for t in of)) for of in times.values())
    lines.append(f"| **programs of up to {_BAR} ms** | | | {row} |")
    for name, r in sorted(compiled.items(), key=lambda item: -max(item[1]["nvrtc"].values())):
        row = " | ".join(f"{1e3 * r['nvrtc'][arch]:.0f}" for arch in ARCHS)
        lines.append(f"| {name} | {r['kernels']} | {r['registers']} | {row} |")
    return "\n".join([*lines, ""])


def summary(results: dict[str, dict[str, Any]]) -> int:
    """What all of it comes to; the exit status."""
    compiled = [r for r in results.values() if "refused" not in r]
    failed = [name for name, r in results.items() if r.get("failed") or r.get("excess")]
    times = sorted(1e3 * seconds for r in compiled for seconds in r["nvrtc"].values())
    if times:
        late = times[min(len(times) * 95 // 100, len(times) - 1)]
        print(
            f"{len(compiled)} of {len(results)} programs compiled: {statistics.median(times):.0f} ms in the median, {late:.0f} ms"
        )
        print(f"for 95 of 100, {sum(t > _BAR for t in times)} of {len(times)} above {_BAR} ms, {times[-1]:.0f} ms at most")
    print(f"failed or over a limit: {', '.join(failed) or 'none'}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
