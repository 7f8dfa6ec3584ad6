"""Prose: sentences are short and mostly active, and terms are explained, for readers whose first language is another one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.pages import DOCS, name_of, pages

pytestmark = pytest.mark.every_row

MOST = 30  # words of a sentence
MOST_PASSIVE = 1 / 3  # of the sentences of a page
FOR_CONTRIBUTORS = ("architecture", "layers", "dependencies", "files", "tour")
READERS = [page for page in pages() if page not in tuple(DOCS / f"{name}.md" for name in FOR_CONTRIBUTORS)]
_OTHERS = "|".join(
    (
        *("built", "chosen", "cut", "done", "drawn", "found", "given", "held", "hidden", "kept", "known", "left", "lost", "made"),
        *("met", "put", "read", "run", "seen", "sent", "set", "shown", "split", "taken", "told", "written"),
    )
)
PASSIVE = re.compile(
    rf"\b(?:is|are|was|were|be|been|being)(?: (?:not|never|also|only|then|always|both|\w+ly))* (?:\w\w+ed|{_OTHERS})\b"
)
# Terms of compilers, of derivatives and of GPUs: each that a page uses stands in the list of words.
TERMS = (
    *("alias", "arena", "aval", "back end", "bail", "BLAS", "broadcast", "bytecode", "captur", "closure", "cotangent", "cubin"),
    *("dataflow", "deopt", "DLPack", "dtype", "epilogue", "fuse", "guard", "Hessian", "host call", "inlin", "intrinsic"),
    *("Jacobian", "jitted", "kernel", "kink", "LAPACK", "lowering", "mask", "memoi", "monomorph", "NVRTC", "occupancy", "opcode"),
    *("primal", "pytree", "ragged", "refuse", "replay", "residual", "schedule", "section", "SIMD", "speciali[sz]ation", "spill"),
    *("SSA", "stand-in", "strides", "tangent", "tape", "tiling", "trace", "transform", "ufunc", "ulp", "unroll", "variant"),
    "warp",
)


def sentences(text: str) -> list[str]:
    """The sentences of a page, without code blocks, tables and headings; what stands between backticks is one word.

    >>> sentences("# A\\n\\nOne two. Three `a b c` four:\\n\\n* five six\\n")
    ['One two.', 'Three x four:', 'five six']
    """
    text = re.sub(r"^ *(`{3,}).*?^ *\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(#|\||<|:::|    ).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`]*`", "x", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    found = []
    for block in re.split(r"\n\s*\n|\n\s*(?:[*-]|\d+\.) |\A\s*(?:[*-]|\d+\.) ", text):
        paragraph = re.sub(r"^(?:[*-]|\d+\.) ", "", " ".join(block.split()))
        found += [part for part in re.split(r"(?<=[.?!])[)*\"]*\s+(?=[A-Z`*x\"(])", paragraph) if part]
    return found


def too_long(text: str, most: int) -> list[str]:
    return [sentence for sentence in sentences(text) if len(sentence.split()) > most]


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_sentences_are_short(page: Path) -> None:
    assert not too_long(page.read_text(), MOST)


def test_a_long_one_is_found() -> None:
    assert too_long(f"Short. Now {'word ' * 50}end. Short.", MOST) == [f"Now {'word ' * 50}end."]


def passive(text: str) -> list[str]:
    """Sentences in which something "is made", and nobody makes it."""
    return [sentence for sentence in sentences(text) if PASSIVE.search(sentence)]


@pytest.mark.parametrize("page", READERS, ids=name_of)
def test_most_sentences_are_active(page: Path) -> None:
    text = page.read_text()
    count = len(sentences(text))
    assert count < 10 or len(passive(text)) <= MOST_PASSIVE * count, passive(text)


def undefined(text: str, words: str) -> list[str]:
    """Terms that a page uses and a list of words does not explain: in the first column of its tables, or in italics there."""
    prose = re.sub(r"`[^`]*`|\]\([^)]*\)", "", re.sub(r"^ *(`{3,}).*?^ *\1$", "", text, flags=re.DOTALL | re.MULTILINE))
    explained = " ".join([*re.findall(r"^\| ([^|]+) \|", words, re.MULTILINE), *re.findall(r"\*([\w -]+)\*", words)])
    used = (term for term in TERMS if re.search(rf"\b{term}", prose, re.IGNORECASE))
    return [term for term in used if not re.search(rf"\b{term}", explained, re.IGNORECASE)]


@pytest.mark.parametrize("page", READERS, ids=name_of)
def test_terms_are_explained(page: Path) -> None:
    assert not undefined(page.read_text(), (DOCS / "words.md").read_text())


def test_passive_sentences_and_undefined_terms_are_found() -> None:
    told = passive("It is not compiled. It compiles. We are quickly shown `x`. A red bed.")
    assert told == ["It is not compiled.", "We are quickly shown x."]
    assert undefined("Fused kernels. `arena` unrolled", "| kernel, to fuse | a loop |\n*unroll* it") == []
    assert undefined("A fused kernel in an arena.", "| kernel | an arena |") == ["arena", "fuse"]
