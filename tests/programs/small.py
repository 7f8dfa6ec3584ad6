"""Small programs, as lines of text: what failures that fuzz.py has found are made to. They agree with NumPy, call by call."""

from __future__ import annotations

import numpy as np

from programs.drawn.outcomes import judge


def check(lines: list[str], arguments: str, last: str, layer: str = "machine") -> None:
    verdict = judge(program(lines, arguments, last), exact=True, layer=layer)
    assert verdict.kind == "equal", verdict.detail


def program(lines: list[str], arguments: str, last: str) -> str:
    parameters = ", ".join("xyz"[: len(eval(f"({arguments},)", {"np": np, "call": 0}))])
    body = "".join(f"    {line}\n" for line in lines)
    made = f"def arguments(call):\n    return ({arguments},) if call < 2 else ({last},)\n"
    return f"import numpy as np\n\n{made}\n\ndef program({parameters}):\n{body}"
