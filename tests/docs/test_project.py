"""The project's papers agree: version, addresses, change log."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import jitml
from tools import file_index, release_check
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


def test_the_release_check_finds_interpreters_of_each_promised_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    this = f"{sys.version_info[0]}.{sys.version_info[1]}"
    folder = tmp_path / "versions" / "3.99.1" / "bin"
    folder.mkdir(parents=True)
    (folder / "python").write_text("#!/bin/sh\necho 3.99\n")
    broken = tmp_path / "python-broken"
    broken.write_text("#!/bin/sh\nexit 1\n")
    for file in (folder / "python", broken):
        file.chmod(0o755)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setattr(release_check, "promised", lambda: [this, "3.98", "3.99"])
    assert release_check.interpreters([str(broken), "no-such-python"]) == {this: sys.executable, "3.99": str(folder / "python")}
    assert release_check.version_of(broken) is None


def test_the_architecture_names_every_file() -> None:
    assert file_index.PAGE.read_text() == file_index.page(), "run make docs"
    assert not [
        path for path in file_index.SOURCE.rglob("*.py") if path.name != "__init__.py" and len(file_index.says(path)) < 10
    ]
