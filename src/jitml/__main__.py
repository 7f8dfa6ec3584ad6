"""`python -m jitml`: `info` about the machine, `cache` on disk, `help` pages of the documentation, `demo` the demonstration."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import jitml
from jitml import demo
from jitml.codegen.cuda.runtime.inventory import gpu_facts
from jitml.codegen.llvm.runtime.cpu import host_caches, host_cpu, llvm_binding, processor_name
from jitml.config import CONFIG
from jitml.diagnostics.pages import page
from jitml.disk_cache import disk_cache
from jitml.memory.report import bytes_text


def info() -> str:
    """Versions, processor, caches, threads and configuration, one fact a line."""
    target, caches = host_cpu(), host_caches()
    llvm = ".".join(map(str, llvm_binding().llvm_version_info))
    facts = {
        "jitml": jitml.__version__,
        "Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        **{name: _version(name) for name in ("numpy", "scipy", "llvmlite", "optree")},
        "LLVM": llvm,
        "processor": f"{processor_name()} (LLVM: {target.cpu})",
        "vectors": f"{target.vector_bytes * 8} bits, {target.vector_registers} registers{', fma' if target.has_fma else ''}",
        "caches": f"L1 {bytes_text(caches.l1)}, L2 {bytes_text(caches.l2)}, L3 {bytes_text(caches.l3)}",
        "threads": f"{target.threads} (JITML_NUM_THREADS {CONFIG.num_threads or 'not set'})",
        "back end": f"{CONFIG.backend} (JITML_BACKEND)",
        "checks": "each stage is verified (JITML_CHECK)" if CONFIG.check else "off (JITML_CHECK)",
        "dump": ", ".join(sorted(CONFIG.dump)) or "nothing (JITML_DUMP)",
        **gpu_facts(),
    }
    width = max(map(len, facts))
    return "\n".join(f"{name:<{width}}  {fact}" for name, fact in facts.items())


def cache(action: str) -> str:
    """What is kept on disk for later processes: shown, checked (what is damaged is removed) or removed."""
    kept = disk_cache()
    if action == "clear":
        return f"{kept.clear()} files removed from {kept.folder}"
    if action == "check":
        whole, removed = kept.remove_damaged()
        return f"{whole} files are whole; {removed} were damaged or unfinished, and are removed"
    files = list(kept.files())
    lines = [f"folder  {kept.folder} (JITML_CACHE_DIR)", f"limit   {bytes_text(kept.limit)} (JITML_CACHE_BYTES)"]
    if (reason := kept.why_unused()) is not None:
        lines.append(f"unused  {reason}")
    for kind in sorted({file.kind for file in files}):
        sizes = [file.size for file in files if file.kind == kind]
        lines.append(f"{kind:<7} {len(sizes)} files, {bytes_text(sum(sizes))}")
    return "\n".join([*lines, f"all     {len(files)} files, {bytes_text(sum(file.size for file in files))}"])


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m jitml", description="A compiler for NumPy code.")
    parser.add_argument("--version", action="version", version=f"jitml {jitml.__version__}")
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("info", help="versions, processor, threads and configuration")
    keep = commands.add_parser("cache", help="machine code kept on disk for later processes")
    keep.add_argument(
        "action", nargs="?", choices=("show", "check", "clear"), default="show", help="check removes what is damaged"
    )
    read = commands.add_parser("help", help="a page of the documentation, or what an error code means")
    read.add_argument("page", nargs="?", default="", help="sections, howto/deploy, JM106; without it, all are listed")
    run = commands.add_parser("demo", help="three programs on real data, NumPy beside jitml")
    run.add_argument("--picture", type=Path, default=Path("out/photograph.png"), help="where the filtered photograph goes")
    options = parser.parse_args(argv)
    if options.command is None:
        parser.print_help()
        return 0
    if options.command == "info":
        print(info())
        return 0
    if options.command == "cache":
        print(cache(options.action))
        return 0
    if options.command == "help":
        try:
            print(page(options.page), flush=True)
        except BrokenPipeError:  # `head` and `less` may go before the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more when it ends
        except KeyError as error:
            print(error.args[0], file=sys.stderr)
            return 1
        return 0
    missing = [package for package in ("scikit-learn", "pillow", "rich") if _version(package) == "not installed"]
    if missing:
        print(f"The demo needs {', '.join(missing)}: pip install {' '.join(missing)}", file=sys.stderr)
        return 1
    return demo.main(options.picture)


if __name__ == "__main__":
    sys.exit(main())
