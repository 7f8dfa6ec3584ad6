"""What do a loop's names hold once it has ended early, where its first iteration runs apart from the others?"""

from __future__ import annotations

from itertools import product

import pytest

from programs.drawn.outcomes import judge
from support.effort import is_turn

HEADS = {
    "range": "i in range(len(y) - 1)",
    "a range downwards": "i in range(4, -1, -2)",
    "a single iteration": "i in range(1)",
    "enumerate": "i, r in enumerate(y, 2)",
    "zip": "i, r in zip(range(3, 9), y[::-1])",
    "a size that calls differ in": "i in range(n, 9, 2)",
}
# A name becomes something else in the first iteration, or an inner loop binds names.
APART = {
    "a number": "v = v * 0.5",
    "an array": "w = np.concatenate([w, y[0]])[:3]",
    "an inner loop": "for k, q in enumerate(y): pass",
}
ENDS = {
    "break": ["if {test}:", "    break"],
    "break with a name": ["if {test}:", "    b = y + 1", "    break"],
    "continue": ["if {test}:", "    continue", "v = v + 1"],
    "return": ["if {test}:", "    return i, v, w"],
    "a target bound anew": ["i = i + 10", "if {test}:", "    break"],
    "else": ["if {test}:", "    break", "else:", "v = v + 100"],
}
TESTS = ("x[i % 3] > 0", "not (2 > x.max())")


@pytest.mark.parametrize("layer", ["machine", "graph"])
@pytest.mark.parametrize("head", HEADS)
def test_names_hold_what_the_last_iteration_left(head: str, layer: str) -> None:
    # Machine code says nothing new about most of them, and takes long to make.
    aparts, tests = (APART, TESTS) if layer == "graph" else (["an inner loop"], TESTS[1:])
    for apart, (end, lines), test in product(aparts, ENDS.items(), tests):
        if layer == "graph" and not is_turn(
            [*APART].index(apart), [*ENDS].index(end) + [*HEADS].index(head), TESTS.index(test), 2
        ):
            continue
        text = program(HEADS[head], [APART[apart], *lines], test)
        verdict = judge(text, exact=True, layer=layer)
        assert verdict.kind == "equal", f"{apart}, {end}, {test}: {verdict.detail}\n{text}"


def program(head: str, body: list[str], test: str) -> str:
    """Calls find the end in the second iteration, in the third, and in the first."""
    made = {"k, q": "k, q in", "b": "b ="}
    bound = [head.split(" in ")[0], *(names for names, how in made.items() if any(how in line for line in body))]
    indented = [f"    {line.format(test=test)}" if line != "else:" else line for line in body]
    lines = ["v, w = 1, x", f"for {head}:", *indented, f"return v, w, {', '.join(bound)}"]
    arguments = "return np.array([[0.0, 3, 0], [0, 0, 1.5], [9, 1, 1]][call]), np.arange(12.0).reshape(4, 3), [3, 3, 5][call]"
    written = "".join(f"    {line}\n" for line in lines)
    return f"import numpy as np\n\n\ndef arguments(call):\n    {arguments}\n\n\ndef program(x, y, n):\n{written}"
