"""`python -m jitml info` on GPUs: what there is, what is missing, and no hanging driver."""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import PackageNotFoundError

import pytest

from jitml.codegen.cuda.runtime import inventory
from jitml.codegen.cuda.runtime.driver import device_count
from jitml.errors import NoDeviceError


def test_facts_are_told() -> None:
    facts = inventory.gpu_facts()
    assert {"GPU packages", "GPU libraries", "GPU compiler", "disassembler", "disk cache"} <= facts.keys()
    assert ("GPU 0" in facts) == (device_count() > 0)
    assert all("\n" not in fact for fact in facts.values())
    if not device_count():
        assert facts["GPU"].startswith(("there is no", "the NVIDIA driver"))


def test_what_is_missing_is_told_with_what_brings_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "nvidia-cuda-nvrtc-cu12":
            return "12.9.86"
        raise PackageNotFoundError(name)

    def missing() -> None:
        raise NoDeviceError("there is no compiler", remedy="pip install it")

    monkeypatch.setattr(inventory, "version", version)
    monkeypatch.setattr(inventory, "nvrtc_version", missing)
    monkeypatch.setattr(inventory, "bindings", missing)
    inventory.print_facts()
    facts = json.loads(capsys.readouterr().out)
    assert facts["GPU packages"] == (
        "nvidia-cuda-nvrtc 12.9.86 cu12; missing: cuda-bindings (the driver from Python), cuda-pathfinder (finding libraries);"
        " pip install 'jitml[cuda]' brings them"
    )
    assert facts["GPU compiler"] == facts["GPU"] == "there is no compiler; pip install it"


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("import time; time.sleep(60)", "the driver has not answered for 0.5 seconds"),
        ("import os; os.abort()", "asking for it has failed (-6): no words"),
        ("raise RuntimeError('broken')", "asking for it has failed (1): RuntimeError: broken"),
    ],
)
def test_a_driver_that_hangs_or_ends_the_process_is_told(does: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "_ASK", does)
    started = time.monotonic()
    assert inventory.gpu_facts(0.5 if "sleep" in does else 30)["GPU"].startswith(says)
    assert time.monotonic() - started < 20


def test_a_process_that_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert "no process of its own can be started" in inventory.gpu_facts()["GPU"]
