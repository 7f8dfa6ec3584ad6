"""Options that all tests share."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Iterator

# Every layer's verifier runs after every stage of every program that a test compiles; jitml reads this when imported.
os.environ.setdefault("JITML_CHECK", "1")
# Faults are to be found here, and not answered by NumPy in silence: what is tested is the compiled program's own answer.
os.environ.setdefault("JITML_VERIFY", "never")
os.environ.setdefault("JITML_TRIAL", "0")  # nor is what is compiled to be dropped for being slow
os.environ.setdefault("JITML_STRICT", "1")  # refusals are tested as such; `loose` tests are about what runs instead
os.environ.setdefault("JITML_TRACEBACK", "full")  # what fails here is to be mended in jitml
os.environ.setdefault("JITML_TIER", "full")  # tests of quick code ask for it
# The same on every machine, since it stands in graphs; interpreters touch all of it.
os.environ.setdefault("JITML_SAVED_BYTES", "800000")
# GPU code of the tests is kept apart from the user's.
os.environ.setdefault("JITML_CACHE_DIR", os.path.join(tempfile.gettempdir(), "jitml-tests"))

import pytest

from jitml.config import CONFIG
from support import effort, golden_files


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files; review the diff")


def pytest_report_header() -> str | None:
    if effort.TURN is None or effort.FULL:
        return None
    return f"rows of wide tables take turns (TEST_TURN={effort.TURN}; make test-full has all)"


def pytest_configure(config: pytest.Config) -> None:
    """By Python's thresholds the collector comes for each 700 objects of a compilation: for a tenth of the suite's time."""
    gc.set_threshold(50_000, 20, 20)
    golden_files.updating = config.getoption("--update-golden")


@pytest.fixture(autouse=True)
def loose(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests marked `loose` have what users have: what cannot be captured is no error; or, with names, cases of these names."""
    is_strict, case = CONFIG.strict, request.node.callspec.id if hasattr(request.node, "callspec") else ""
    named = {case, *case.split("-")}
    is_loose = any(not mark.args or not named.isdisjoint(mark.args) for mark in request.node.iter_markers("loose"))
    object.__setattr__(CONFIG, "strict", is_strict and not is_loose)
    yield
    object.__setattr__(CONFIG, "strict", is_strict)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items[:], left = effort.by_turns(items)
    # First what takes seconds, such as type checkers: no process is to be alone with it in the end, nor two to begin with it.
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    config.hook.pytest_deselected(items=left)


def pytest_collection_finish() -> None:
    _settle()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """What a file of tests leaves lives on: compiled programs, syntax trees. Hundreds of tests collect garbage beside it."""
    if nextitem is None or nextitem.path != item.path:
        _settle()


def _settle() -> None:
    """Have the collector not come by what is there now any more."""
    gc.collect()
    gc.freeze()
