"""What notebooks show of `jitml.explain` and `f.lower`: HTML that stands alone, closes what it opens, and escapes all text."""

from __future__ import annotations

import pickle
import re
import threading
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import UnsupportedError
from jitml.outline import Explanation, OutlineEntry

X = np.ones((300, 200))


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))  # <b>&
    for _ in range(3):
        e = np.where(e < 3, np.sqrt(e), e)
    return e / e.sum(axis=1, keepdims=True), np.linalg.inv(x[:9, :9] + 9 * np.eye(9))


class Read(HTMLParser):
    """The tags of a page, its summaries and its text; raises if tags do not nest."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.summaries: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "summary":
            self.summaries.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "summary" in self.open:
            self.summaries[-1] += data
        if "style" not in self.open:
            self.text += data + "\n"


def test_an_explanation_is_the_text_and_a_page_that_says_the_same() -> None:
    fast = jitml.jit(softmax)
    fast(X)
    told = jitml.explain(fast, X)
    assert isinstance(told, str) and repr(told) == repr(str(told))
    page = Read(told._repr_html_())
    shown = "".join(page.text.split())
    assert not [line for line in told.splitlines() if "".join(line.split()) not in shown]
    again = pickle.loads(pickle.dumps(told))
    assert again == told and again._repr_html_() == told._repr_html_()


def test_kernels_fold_and_have_the_users_lines_and_their_loops() -> None:
    page = Read(jitml.explain(softmax, X)._repr_html_())
    assert {"graph", "decisions", "work", "memory", "guards", "variants"} <= {*page.summaries}
    first = softmax.__code__.co_firstlineno + 1
    assert f"{first:>5}  e = np.exp(x - x.max(axis=1, keepdims=True))  # <b>&\n" in page.text
    assert "for i0 in 0:300" in page.text
    assert any(summary.startswith("loop 3 times") or "k1" in summary for summary in page.summaries)


def test_bytes_are_bars_on_one_scale() -> None:
    def products(x: Any) -> Any:
        return x @ x.T, x[:150] @ x[:150].T

    html = jitml.explain(products, X)._repr_html_()
    steps = html[html.index("gemm") : html.index("decisions")]
    widths = [float(width) for width in re.findall(r"width: ([\d.]+)%", steps)]
    program = jitml.jit(products).lower(X).program.kernels
    moved = [sum(program.buffers[n].nbytes for n in {*step.reads, *step.writes}) for step in program.steps]
    assert len(set(moved)) == 2
    assert widths == [pytest.approx(100 * n / max(moved), abs=0.1) for n in moved]


def test_a_lowered_program_has_all_stages_and_long_ones_are_cut() -> None:
    lowered = jitml.jit(softmax).lower(X)
    page = Read(lowered._repr_html_())
    assert [summary for summary in page.summaries if summary in lowered.stages][-len(lowered.stages) :] == [*lowered.stages]
    assert str(lowered.graph) in page.text
    lines = lowered.asm.splitlines()
    assert f"{len(lines) - 300} more lines: print(lowered.text('asm'))" in page.text
    assert lines[299] in page.text and "\n".join(lines[299:301]) not in page.text


def test_a_stage_that_cannot_be_shown_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = jitml.jit(softmax).lower(X)

    def missing(stage: str, module: Any) -> str:
        raise UnsupportedError(f"there is no tool for <{stage}>")

    monkeypatch.setattr(type(lowered.backend), "text", staticmethod(missing))
    assert "there is no tool for <asm>" in Read(lowered._repr_html_()).text


def test_pages_stand_alone() -> None:
    for page in (jitml.explain(softmax, X)._repr_html_(), jitml.jit(softmax).lower(X)._repr_html_()):
        read = Read(page)
        assert {*read.tags} <= {"div", "style", "details", "summary", "span", "pre"}
        assert {name for name, _ in read.attributes} <= {"class", "style", "open"}
        assert "url(" not in page and "@import" not in page and "://" not in page


def test_everything_is_escaped() -> None:
    evil = "<script>alert('&')</script>"
    told = Explanation(OutlineEntry(evil), OutlineEntry(evil, (OutlineEntry(evil, bars=((evil, 3),), code=evil),)))
    page = Read(told._repr_html_())
    assert "script" not in page.tags and page.text.count(evil) == 5


@pytest.mark.loose
def test_functions_in_sections_have_pages() -> None:
    shared = threading.local()

    def halves(x: Any) -> Any:
        y = np.exp(x).sum()
        shared.y = y
        return y * 2

    fast = jitml.jit(halves)
    for _ in range(3):
        fast(X)
    told = jitml.explain(fast, X)
    assert "runs as Python" in told
    assert any("runs as Python: shared.y" in text for text in Read(told._repr_html_()).summaries)
