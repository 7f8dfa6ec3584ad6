"""Whole scripts as people run them, each function that they define decorated: is the output the same, and what is the time?

    python -m bench.public.scripts --checkouts DIR [--only NAME ...] [--json OUT] [--seconds LIMIT]

`scripts.toml` lists them; some are made shorter by other constants. The time is that of the whole script, compilation included.
"""

from __future__ import annotations

import argparse
import ast
import json
import linecache
import os
import random
import resource
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.public.checkouts import prepare, text_of
from bench.public.outcomes import difference, leaves_of
from bench.public.report import one_line

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Script:
    """A script of a repository; `replace` are texts and what stands in their place, so that it ends soon."""

    name: str
    repository: str
    commit: str
    file: str
    replace: tuple[tuple[str, str], ...] = ()


def all_scripts() -> list[Script]:
    content: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    found = []
    for repository in content["repositories"]:
        for name, entry in repository["scripts"].items():
            replace = tuple((old, new) for old, new in entry.get("replace", ()))
            found.append(Script(name, repository["repository"], repository["commit"], entry["file"], replace))
    return found


class Decorated(ast.NodeTransformer):
    """Has all functions decorated, below the decorators that they have."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.decorator_list.append(ast.copy_location(ast.Name("_decorated_by", ast.Load()), node))
        return node


def run(script: Script, checkouts: Path, limit: float, *, is_jitted: bool) -> None:
    """Run a script in this process; the seconds that it took go to standard error."""
    import numpy as np

    root = checkouts / script.repository.replace("/", "+")
    path = root / script.file
    prepare(root, str(Path(script.file).parent))
    text = text_of(path)
    for old, new in script.replace:
        assert old in text, f"{script.name} has no {old!r}"
        text = text.replace(old, new)
    file = str(path.with_suffix(".script.py"))
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    random.seed(0)
    np.random.seed(0)
    module = type(sys)("__main__")
    vars(module).update(__file__=str(path))
    sys.modules["__main__"], sys.argv = module, [str(path)]
    began = time.perf_counter(), time.process_time()
    tree = ast.parse(text)
    if is_jitted:
        import jitml

        vars(module)["_decorated_by"] = jitml.jit
        tree = ast.fix_missing_locations(Decorated().visit(tree))
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
    try:
        exec(compile(tree, file, "exec"), vars(module))
    finally:
        seconds = min(time.perf_counter() - began[0], time.process_time() - began[1])
        print(f"\nseconds {seconds}", file=sys.stderr)


def outcome(script: Script, checkouts: Path, limit: float, *, is_jitted: bool) -> tuple[str, float, str]:
    """What a script printed, how long it took, and how it failed, if it did."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [
        sys.executable,
        "-m",
        "bench.public.scripts",
        "--checkouts",
        str(checkouts.resolve()),
        "--run",
        script.name,
        "--seconds",
        str(limit),
    ]
    with TemporaryDirectory() as directory:
        try:
            ended = subprocess.run(
                [*command, *(["--jitted"] if is_jitted else [])],
                check=False, capture_output=True, text=True, timeout=6 * limit, cwd=directory, env=environment,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return "", limit, f"ended after {limit:.0f} s"
    lines = ended.stderr.strip().splitlines()
    seconds = next((float(line.split()[1]) for line in reversed(lines) if line.startswith("seconds ")), limit)
    said = [line for line in lines if not line.startswith("seconds ") and line]
    return ended.stdout, seconds, one_line(" ".join(said[-3:])) if ended.returncode else ""


def compared(script: Script, checkouts: Path, limit: float) -> dict[str, Any]:
    plain, seconds, failed = outcome(script, checkouts, limit, is_jitted=False)
    mine, jitted, why = outcome(script, checkouts, max(limit, 3 * seconds), is_jitted=True)
    apart = difference(leaves_of({"printed": mine}), leaves_of({"printed": plain}))
    kind = "broken" if failed else "failed" if why else "wrong" if apart else "right"
    return {"name": script.name, "kind": kind, "plain": seconds, "jitted": jitted, "detail": failed or why or apart or ""}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkouts", type=Path, required=True)
    parser.add_argument("--only", nargs="+", default=())
    parser.add_argument("--json", type=Path, help="write the outcomes here")
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of a script, or three times what plain Python takes")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--jitted", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        script = next(script for script in all_scripts() if script.name == options.run)
        run(script, options.checkouts, options.seconds, is_jitted=options.jitted)
        return
    rows = []
    for script in all_scripts():
        if not options.only or script.name in options.only:
            row = compared(script, options.checkouts, options.seconds)
            rows.append(row)
            times = f"{row['plain']:7.2f} s {row['jitted']:7.2f} s {row['jitted'] / row['plain']:6.2f}"
            print(f"{row['name']:32s} {row['kind']:7s} {times}  {row['detail'][:120]}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    right = [row for row in rows if row["kind"] == "right"]
    slow = [row["name"] for row in right if row["jitted"] > 1.1 * row["plain"]]
    print(f"{len(rows)} scripts, {len(right)} right; above 1.1 of plain Python: {', '.join(slow) or 'none'}")


if __name__ == "__main__":
    main()
