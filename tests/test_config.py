"""Environment variables: what each value means, and what is refused."""

from __future__ import annotations

import pytest

from jitml.config import STAGES, Config, ConfigError, read


def test_an_empty_environment_asks_for_nothing() -> None:
    names = ("JITML_NUM_THREADS", "JITML_DUMP", "JITML_CHECK", "JITML_CPU", "JITML_KEPT_BYTES", "JITML_MAX_PATHS")
    assert read({}) == read(dict.fromkeys(names, "")) == Config()


def test_values() -> None:
    asked = {"JITML_NUM_THREADS": "3", "JITML_DUMP": "graph, llvm", "JITML_CHECK": "1", "JITML_CPU": "x86-64-v3"}
    assert read(asked) == Config(3, frozenset({"graph", "llvm"}), True, "x86-64-v3")
    assert read({"JITML_DUMP": "all"}).dump == set(STAGES)
    assert not read({"JITML_CHECK": "0"}).check
    assert read({"JITML_DEBUG_NANS": "1"}).debug_nans and not read({"JITML_DEBUG_NANS": "0"}).debug_nans


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("JITML_NUM_THREADS", "0", "JITML_NUM_THREADS='0' is not a number of threads"),
        ("JITML_NUM_THREADS", "many", "'many' is not a number of threads"),
        ("JITML_KEPT_BYTES", "18446744073709551616", "'18446744073709551616' is not a number of bytes"),
        ("JITML_DUMP", "graph,wat", "JITML_DUMP names no such stage: wat"),
    ],
)
def test_values_that_mean_nothing(name: str, value: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        read({name: value})
