"""Writes `docs/reference/settings.md` from the manual in `config.py`: `make docs`."""

from __future__ import annotations

import re

from jitml import config

HEAD = """\
# Settings

Written by `make docs` from `src/jitml/config.py`; not by hand.

Settings are environment variables. jitml reads each once, when it is imported. So set them before you start Python:

```sh
JITML_NUM_THREADS=4 python simulate.py
```

`python -m jitml info` shows what jitml has read, and what it has found of the machine. Bytes are written as a number:
`JITML_KEPT_BYTES=0`.

| variable | what it does |
| --- | --- |
"""


def page() -> str:
    """The page: a row for each variable."""
    rows = re.findall(r"^(JITML_\w+) +((?:.*\n)(?: {4,}.*\n)*)", config.__doc__ or "", re.MULTILINE)
    table = "".join(f"| `{name}` | {' '.join(text.split())} |\n" for name, text in rows)
    return HEAD + re.sub(r"\(docs/([\w-]+)\.md\)", r"([\1](../\1.md))", table)


if __name__ == "__main__":
    print(page(), end="")
