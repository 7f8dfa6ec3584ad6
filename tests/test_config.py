"""Environment variables: what each value means, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jitml
from jitml.config import CONFIG, STAGES, Config, ConfigError, _group_limits, read


def test_an_empty_environment_asks_for_nothing() -> None:
    names = ("JITML_NUM_THREADS", "JITML_DUMP", "JITML_CHECK", "JITML_CPU", "JITML_KEPT_BYTES", "JITML_MAX_PATHS")
    assert read({}) == read(dict.fromkeys(names, "")) == Config()


def test_values() -> None:
    asked = {"JITML_NUM_THREADS": "3", "JITML_DUMP": "graph, llvm", "JITML_CHECK": "1", "JITML_CPU": "x86-64-v3"}
    assert read(asked) == Config(3, frozenset({"graph", "llvm"}), True, "x86-64-v3")
    assert read({"JITML_DUMP": "all"}).dump == set(STAGES)
    assert not read({"JITML_CHECK": "0"}).check
    assert (read({"JITML_VERIFY": "7"}).verify, read({"JITML_VERIFY": "never"}).verify, read({}).verify) == (7, "never", "first")
    assert (read({"JITML_CACHE_DIR": "/tmp/x"}).cache_dir, read({"JITML_CACHE_BYTES": "0"}).cache_bytes) == ("/tmp/x", 0)
    assert read({"JITML_STRICT": "1"}).strict and not read({}).strict
    assert read({"JITML_TRACEBACK": "full"}).full_traceback and not read({"JITML_TRACEBACK": "short"}).full_traceback
    assert read({"JITML_DEBUG_NANS": "1"}).debug_nans and not read({"JITML_DEBUG_NANS": "0"}).debug_nans


@pytest.mark.parametrize(
    "is_strict", [True, pytest.param(False, marks=pytest.mark.loose)], ids=["strict", "loose"]
)  # fmt: skip
def test_tests_are_strict_unless_marked(is_strict: bool) -> None:
    assert CONFIG.strict is is_strict


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("JITML_NUM_THREADS", "0", "JITML_NUM_THREADS='0' is not a number of threads"),
        ("JITML_NUM_THREADS", "many", "'many' is not a number of threads"),
        ("JITML_KEPT_BYTES", "18446744073709551616", "'18446744073709551616' is not a number of bytes"),
        ("JITML_VERIFY", "sometimes", "JITML_VERIFY='sometimes' is neither first, always, never nor a number of calls"),
        ("JITML_CHECK", "false", "JITML_CHECK='false' is neither 0 nor 1"),
        ("JITML_TRACEBACK", "1", "JITML_TRACEBACK='1' is neither short nor full"),
        ("JITML_DUMP", "graph,wat", "JITML_DUMP names no such stage: wat"),
    ],
)
def test_values_that_mean_nothing(name: str, value: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        read({name: value})


def test_a_name_that_means_nothing_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="jitml has no variable JITML_THREADS; there are JITML_NUM_THREADS, "):
        assert read({"JITML_THREADS": "1"}) == Config()


def test_more_threads_than_any_machine_has_a_use_for_are_not_started() -> None:
    with pytest.warns(UserWarning, match="JITML_NUM_THREADS=1000000000 is more than this machine has a use for"):
        most = read({"JITML_NUM_THREADS": str(10**9)}).num_threads
    assert most is not None and 256 <= most < 10**6
    with pytest.warns(UserWarning, match=f"threads=100000000000000000000 is more .* {most} threads") as told:
        f = jitml.jit(lambda x: x + 1, threads=10**20)
    assert told[0].filename == __file__
    np.testing.assert_array_equal(f(np.zeros(300_000)), np.ones(300_000))


def test_groups_limit_what_may_be_saved(tmp_path: Path) -> None:
    """Both versions; a limit of any group around counts, and inside a container the group's own path is not to be seen."""
    for name, limit in (
        ("memory.max", "max"),
        ("job/memory.max", "5000"),
        ("job/step/memory.max", "max"),
        ("memory/memory.limit_in_bytes", "9223372036854771712"),
        ("memory/docker/memory.limit_in_bytes", "7000"),
    ):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{limit}\n")

    def limits(groups: str) -> list[int]:
        (tmp_path / "groups").write_text(groups)
        return list(_group_limits(str(tmp_path / "groups"), str(tmp_path)))

    assert limits("0::/job/step\n") == [5000]
    assert limits("0::/elsewhere/step\n0::/\n") == []
    assert limits("7:cpu,cpuacct:/docker\n4:memory:/docker/abc\n") == [9223372036854771712, 7000]
    assert list(_group_limits(str(tmp_path / "none"), str(tmp_path))) == []


@pytest.mark.skipif(sys.platform == "win32", reason="has no resource limits")
def test_a_limit_on_addresses_limits_what_may_be_saved() -> None:
    program = (
        "import resource; from jitml.config import read; "
        "resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)); print(read({}).saved_bytes)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(run.stdout) <= 1 << 29
