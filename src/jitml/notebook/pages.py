"""Pages of notebooks: the report of `jitml.explain`, and every stage of `f.lower(...)`."""

from __future__ import annotations

from collections.abc import Iterator

from jitml.errors import JitmlError
from jitml.notebook.html import code, folded, head, outline, page
from jitml.outline import Explanation
from jitml.pipeline import Lowered
from jitml.report import program_entries

_MOST_LINES = 300  # of a stage: a notebook keeps all that it shows


def explanation(report: Explanation) -> str:
    """The HTML of a report."""
    title, *entries = report.entries
    return page([head(title.text), *outline(title.inner, is_open=True), *outline(entries, is_open=True)])


def lowered(program: Lowered) -> str:
    """The HTML of a program: its steps, and every stage as a text that opens."""
    stages = (folded(stage, _stage_html(program, stage)) for stage in program.stages)
    return page([*outline(program_entries(program)[:-1], is_open=True), head("stages"), *stages])


def _stage_html(program: Lowered, stage: str) -> Iterator[str]:
    try:
        lines = program.text(stage).splitlines()
    except JitmlError as error:  # a tool that shows it is missing, say
        yield code(str(error))
        return
    yield code("\n".join(lines[:_MOST_LINES]))
    if len(lines) > _MOST_LINES:
        yield head(f"{len(lines) - _MOST_LINES} more lines: print(lowered.text({stage!r}))")
