"""Offline pages: `python -m jitml help` prints what messages name, and a wheel has it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from jitml.__main__ import main
from jitml.diagnostics import pages
from jitml.errors import CODES
from tools.pages import DOCS, ROOT

INCLUDED = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]


def in_wheel() -> set[str]:
    """The pages that a wheel has, by name; each lies where `pages` looks for it."""
    found = set()
    for source, target in INCLUDED.items():
        assert target == source.replace("docs/", "jitml/pages/", 1)
        place = ROOT / source
        found |= {file.relative_to(DOCS).with_suffix("").as_posix() for file in (place.glob("*") if place.is_dir() else [place])}
    return found


def test_a_wheel_has_the_pages_that_messages_name() -> None:
    sources = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    named = {name for text in sources for name in re.findall(r"\bdocs/([\w/-]+)\.md", text)}
    assert {"error-codes", *named} <= in_wheel() <= pages.pages().keys()


def test_all_pages_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("`python -m jitml help PAGE`")
    assert re.search(r"^howto/deploy +Deploy$", "\n".join(said), re.M) and len(said) == 2 + len(pages.pages())


@pytest.mark.parametrize("name", ["howto/deploy", "deploy", "docs/howto/deploy.md"])
def test_a_page(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", name]) == 0
    assert capsys.readouterr().out == (DOCS / "howto" / "deploy.md").read_text() + "\n"


@pytest.mark.parametrize("code", [*CODES.values(), "jm302", "JM904"])
def test_a_code(code: str) -> None:
    said = pages.page(code).splitlines()
    assert said[0] == f"## {code.upper()}" and len(said) > 2 and not [line for line in said[1:] if line.startswith("## ")]


@pytest.mark.parametrize(
    ("name", "says"),
    [("JM999", "there is no code JM999"), ("sectons", "did you mean sections"), ("xyzxyz", "without a name, all are listed")],
)
def test_what_is_not_there(name: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", name]) == 1
    assert says in capsys.readouterr().err


def test_a_reader_may_go_before_the_end() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    with open(theirs, "w") as out:
        done = subprocess.run(
            [sys.executable, "-m", "jitml", "help", "derivatives"], stdout=out, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")


def test_installed_pages_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "error-codes.md").write_text("# Codes\n\n## JM106\n\nInstalled.\n\n## JM107\n\nAnother.\n")
    monkeypatch.setattr(pages, "_INSTALLED", tmp_path)
    assert pages.page("JM106") == "## JM106\n\nInstalled."
    assert [*pages.pages()] == ["error-codes"]
