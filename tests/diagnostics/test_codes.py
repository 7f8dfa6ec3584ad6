"""Codes: each has a section in docs/error-codes.md, whose wrong code gets it, and whose right code does not."""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Iterator
from dataclasses import replace

import pytest

import jitml.config
from jitml import errors
from jitml.errors import CODES, SITE, Cause, CodedWarning, JitmlError
from tools.pages import DOCS, ROOT, Block, blocks

PAGE = (DOCS / "error-codes.md").read_text()
SECTIONS = {text[:5]: text[5:] for text in re.split(r"^## (?=JM)", PAGE, flags=re.M)[1:]}
GETS = re.compile(r'title="not run: (raises|warns) (JM\d+)"')
BLOCKS = {code: [*blocks(text)] for code, text in SECTIONS.items()}

pytestmark = [pytest.mark.loose, pytest.mark.every_row]


def kinds(base: type) -> Iterator[type]:
    for kind in base.__subclasses__():
        if kind.__module__.startswith("jitml."):
            yield kind
            yield from kinds(kind)


def known() -> dict[str, str]:
    """All codes that there are, and what has them."""
    found = {code: cause for cause, code in CODES.items()}
    for kind in kinds(JitmlError):
        if kind.__dict__.get("own_code"):
            found[kind.own_code] = kind.__name__  # type: ignore[attr-defined]  # a class attribute
    return found | {kind.code: kind.__name__ for kind in kinds(CodedWarning)}  # type: ignore[attr-defined]  # the same


def run(block: Block) -> set[str]:
    """The codes that code gets."""
    source = "import numpy as np\nimport jitml\n" + "\n".join(block.lines)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(compile(source, "<page>", "exec"), {"__name__": "page"})
        except JitmlError as error:
            return {error.code}
    return {w.message.code for w in caught if isinstance(w.message, CodedWarning)}


def test_every_cause_has_a_code() -> None:
    assert CODES.keys() == set(Cause) and len(set(CODES.values())) == len(CODES)


def test_no_two_errors_share_a_code_of_their_own() -> None:
    own = [code for kind in kinds(JitmlError) if (code := vars(kind).get("own_code"))]
    own += [vars(kind)["code"] for kind in kinds(CodedWarning)]
    assert len({*own, *CODES.values()}) == len(own) + len(CODES)


def test_the_page_is_complete() -> None:
    assert list(SECTIONS) == sorted(known())


@pytest.mark.parametrize("code", [code for code, found in BLOCKS.items() if found])
def test_wrong_code_gets_it_and_right_code_does_not(code: str) -> None:
    wrong = [block for block in BLOCKS[code] if GETS.search(block.info)]
    right = [block for block in BLOCKS[code] if block not in wrong]
    assert wrong and right
    for block in wrong:
        assert GETS.search(block.info)[2] == code  # type: ignore[index]  # it has been found
        assert run(block) == {code}
    for block in right:
        assert not run(block)


@pytest.mark.parametrize("site", ["", "https://docs.somewhere.org/jitml/"])
def test_messages_end_with_the_code_and_where_it_is_explained(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jitml.config, "CONFIG", replace(jitml.config.CONFIG, site=site))
    error = errors.UnsupportedError("f(x)", remedy="See docs/sections.md.", cause=Cause.EFFECT)
    if site:
        expected = ["f(x)", f"See {site}sections/.", f"JM106: {site}error-codes/#jm106"]
    else:
        expected = ["f(x)", "See `python -m jitml help sections`.", "JM106: python -m jitml help JM106"]
    assert str(error).splitlines() == expected
    assert str(errors.ShapeError("x")).endswith("#jm112" if site else "help JM112")
    assert str(errors.FailedCheck("a")) == "a"
    assert str(errors.RecompileWarning("a")).splitlines()[1].endswith("#jm302" if site else "help JM302")


def test_no_message_has_an_address_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SITE.endswith(".example/") and not jitml.config.Config().site, "there is a site: docs/policy.md says otherwise"
    monkeypatch.setattr(errors, "SITE", "https://jitml.org/")
    assert jitml.config.read({}).site == "https://jitml.org/"
    assert jitml.config.read({"JITML_SITE": "http://intranet/jitml"}).site == "http://intranet/jitml/"
    monkeypatch.delattr(jitml.config, "CONFIG")  # as while the variables are read
    with pytest.raises(
        errors.JitmlError, match=r"(?s)JITML_SITE='jitml' is no address.*JM209: https://jitml\.org/error-codes/#jm209"
    ):
        jitml.config.read({"JITML_SITE": "jitml"})


def test_the_address_is_the_sites() -> None:
    assert f"\nsite_url: {SITE} " in (ROOT / "mkdocs.yml").read_text()
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Documentation"] == SITE
    assert jitml.config.ConfigError.own_code == "JM209"


def test_pages_that_messages_name_are_there() -> None:
    """Wherever a text of the sources names one."""
    named = {name for path in (ROOT / "src").rglob("*.py") for name in re.findall(r"\bdocs/([\w/-]+)\.md", path.read_text())}
    assert not [name for name in named if not (DOCS / f"{name}.md").exists()]
