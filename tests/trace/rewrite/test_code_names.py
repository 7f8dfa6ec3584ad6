"""Names in code objects, of functions and of those inside them."""

from __future__ import annotations

from typing import Any

from jitml.trace.rewrite.code_names import codes_inside, names_and_texts, names_in_code


def outer(x: Any) -> Any:
    def middle(y: Any) -> Any:
        return (lambda z: z.deep + getattr(z, "told", 0) + len("no name"))(y)

    return middle(x).shallow


def test_names_of_functions_inside_are_found() -> None:
    code = outer.__code__
    others = ("<listcomp>", "__annotate__")  # which some Pythons have
    assert [inner.co_name for inner in codes_inside(code) if inner.co_name not in others] == ["middle", "<lambda>"]
    assert {"shallow", "deep", "getattr", "len"} <= names_in_code(code)
    assert "told" not in names_in_code(code) and "x" not in names_in_code(code)
    assert names_and_texts(code) >= names_in_code(code) | {"told"}
    assert "no name" not in names_and_texts(code)
