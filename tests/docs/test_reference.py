"""The reference: every public name is in it, with an example that runs."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.picture import picture

import jitml
from jitml import config
from tools.pages import DOCS, ROOT
from tools.settings_page import page as settings_page

pytestmark = pytest.mark.every_row
REFERENCE = DOCS / "reference"
PAGES = {path: path.read_text() for path in REFERENCE.glob("*.md")}
NAMES = [name for name in jitml.__all__ if not inspect.ismodule(getattr(jitml, name))]
MODULES = [name for name in jitml.__all__ if inspect.ismodule(getattr(jitml, name))]


def section(name: str) -> str:
    """What the reference says of a name beside its docstring."""
    found = [
        match[1]
        for text in PAGES.values()
        for match in re.finditer(rf"^::: {re.escape(name)}$(.*?)(?=^:::|\Z)", text, re.M | re.S)
    ]
    assert len(found) == 1, f"{name} is {len(found)} times in docs/reference; it belongs there once"
    return found[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name(name: str) -> None:
    documented, beside = inspect.getdoc(getattr(jitml, name)), section(f"jitml.{name}")
    assert documented, f"jitml.{name} has no docstring"
    assert ">>> " in documented or "```python" in beside, f"jitml.{name} has no example"


@pytest.mark.parametrize("name", MODULES)
def test_a_public_module(name: str) -> None:
    assert f"`jitml.{name}`" in PAGES[REFERENCE / "index.md"]


def test_nothing_else_is_in_it() -> None:
    named = [match for text in PAGES.values() for match in re.findall(r"^::: (\S+)$", text, re.M)]
    assert sorted(name for name in named if not name.startswith("jitml.errors.")) == sorted(f"jitml.{name}" for name in NAMES)


def test_the_settings() -> None:
    text = (REFERENCE / "settings.md").read_text()
    assert text == settings_page(), "run make docs"
    assert not [name for name in config.NAMES if f"| `{name}` |" not in text]


@pytest.mark.slow
def test_the_site_is_built(tmp_path: Path) -> None:
    """Strictly: no broken link or anchor, no page outside of the navigation, no name that is not found."""
    pytest.importorskip("material", reason="the site is built where the extra `docs` is installed")
    ran = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    page = (tmp_path / "site" / "reference" / "compile" / "index.html").read_text()
    assert 'id="jitml.jit"' in page and "static_argnums" in page
    assert 'href="../../verification/"' in page and "docs/verification.md" not in page
    assert not re.findall(r"(?:src|href)=\"https?://(?!jitml\.example)[^\"]*\.(?:js|css|woff2?)\"", page)


def test_the_picture_of_speed_shows_the_results() -> None:
    results = json.loads((ROOT / "bench" / "results" / "suite.json").read_text())
    assert (DOCS / "speed.svg").read_text() == picture(results), "run python -m bench.picture"
