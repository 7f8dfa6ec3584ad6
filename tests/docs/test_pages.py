"""Pages: their code runs, and prints what they say (tools/pages.py)."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.pages import ROOT, blocks, differences, name_of, pages, program, settings

pytestmark = pytest.mark.every_row

NOT_USUAL = ("JITML_", "PYTHONDONTWRITEBYTECODE")  # without bytecode imports take longer, and first calls are not compiled
RUN = [page for page in pages() if any(block.is_run for block in blocks(page.read_text()))]
DOCTESTS = [page for page in pages() if any(block.is_doctest for block in blocks(page.read_text()))]


@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_the_code_of_a_page(page: Path, tmp_path: Path) -> None:
    """As a reader's first program would: a process of its own, with the usual settings, in which a wrong answer is an error."""
    text = page.read_text()
    script = tmp_path / f"{page.stem}_page.py"  # a name that hides no package
    script.write_text(program(text))
    assert not (wrong := differences(text, printed(script, tmp_path, settings(text)))), "\n".join(wrong)


def printed(script: Path, folder: Path, asked: dict[str, str]) -> str:
    """What a program prints that gets no warning of a wrong answer."""
    usual = {name: value for name, value in os.environ.items() if not name.startswith(NOT_USUAL)}
    usual["JITML_CACHE_DIR"] = os.environ["JITML_CACHE_DIR"]
    ran = subprocess.run(
        [sys.executable, str(script)],
        check=False,
        cwd=folder,
        env={**usual, **asked, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    assert "WrongResultWarning" not in ran.stderr
    return ran.stdout


# What the scripts say, between other things.
SCRIPTS = {
    "elementwise": ("NumPy with Numba's loop", "jitml", "shares [0.3"),
    "first_steps": ("its first answer is as NumPy gives it", "is [-2.88079708 -1.73105858 -0.5         0.73105858  1.88079708]"),
    "heat": ("NumPy:", "jitml:", "equal: True"),
    "logistic_regression": ("step   0  loss 0.6931  accuracy 93.3%", "step 500  loss 0.0687  accuracy 98.8%"),
}


def test_there_are_these_scripts() -> None:
    assert sorted(path.stem for path in (ROOT / "examples").glob("*.py")) == sorted(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_of_the_examples(name: str, tmp_path: Path) -> None:
    said = printed(ROOT / "examples" / f"{name}.py", tmp_path, {})
    assert [part for part in SCRIPTS[name] if part not in said] == []


@pytest.mark.parametrize("page", DOCTESTS, ids=name_of)
def test_the_doctests_of_a_page(page: Path) -> None:
    text = ""
    for block in blocks(page.read_text()):
        if block.is_doctest:
            text += "\n" * (block.line - 1 - text.count("\n")) + "\n".join(block.lines) + "\n\n"
    ran = doctest.DocTestRunner().run(doctest.DocTestParser().get_doctest(text, {}, page.stem, str(page), 0))
    assert ran.attempted
    assert not ran.failed


def test_a_page_that_says_something_else_is_found() -> None:
    text = '```python\nprint(1)\n```\n\n```text title="prints"\n2\n```\n'
    code = program(text)
    assert code.splitlines()[1] == "print(1)"
    assert "says\n2" in differences(text, "1\n<<end of block 2>>\n")[0]
    assert not differences(text.replace("\n2\n", "\n1\n"), "1\n<<end of block 2>>\n")
