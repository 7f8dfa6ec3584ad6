"""The project's papers agree: version, addresses, change log."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec

import jitml
from tools.pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_one_version() -> None:
    cited = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert jitml.__version__ == PROJECT["version"] and cited == [PROJECT["version"]]


def test_the_command_line_says_it() -> None:
    said = subprocess.run([sys.executable, "-m", "jitml", "--version"], capture_output=True, text=True, check=True).stdout
    assert said == f"jitml {jitml.__version__}\n"


def test_the_site_has_the_address_of_the_metadata() -> None:
    site = (ROOT / "mkdocs.yml").read_text()
    for key, name in (("site_url", "Documentation"), ("repo_url", "Source")):
        assert re.findall(rf"^{key}: (\S+)", site, re.M) == [PROJECT["urls"][name]]


def test_the_make_targets_that_are_promised() -> None:
    text = (ROOT / "Makefile").read_text()
    for page in ("README.md", "CONTRIBUTING.md", "docs/guide/tutorial.md", "docs/index.md"):
        for target in re.findall(
            r"\bmake ([a-z-]+)", "\n".join(re.findall(r"^    make.*$|`make [^`]*`", (ROOT / page).read_text(), re.M))
        ):
            assert re.search(rf"^{target}:", text, re.M), f"{page} names make {target}"


def test_spelling() -> None:
    """codespell over what people read: what `make lint` runs."""
    assert find_spec("codespell_lib"), "codespell is part of the extra dev"
    (said,) = re.findall(r"codespell (.*)$", (ROOT / "Makefile").read_text(), re.M)
    files = [str(path.relative_to(ROOT)) for pattern in said.split() for path in ROOT.glob(pattern)]
    assert "README.md" in files and "docs" in files
    ran = subprocess.run([sys.executable, "-m", "codespell_lib", *files], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_change_log_begins_with_what_is_next_and_knows_this_version() -> None:
    first, second, *_ = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert first == "Unreleased"
    assert second.partition(" ")[0] == PROJECT["version"]
