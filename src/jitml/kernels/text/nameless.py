"""Kernels without names: which kernels are the same but for what the program around calls them and their buffers?"""

from __future__ import annotations

import re
from dataclasses import replace

from jitml.kernels.ir import Kernel
from jitml.kernels.text.printer import show


def nameless(kernel: Kernel) -> str:
    """The kernel's text, in which its parameters are called by their positions."""
    names = {b.name: f"{position}" for position, b in enumerate(kernel.params)}
    text = show(replace(kernel, name="", params=(), updates={}))
    return re.sub(r"\w+(?=\[)", lambda name: names.get(name[0], name[0]), text)
