"""The demo's programs: they agree with NumPy, learn, and the command line runs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import jitml
from jitml import demo
from jitml.__main__ import info, main
from jitml.demo import digits, options, photo


def test_training_by_derived_gradients_follows_the_hand_written_curve() -> None:
    x, y, _, _ = digits.load()
    _, theirs = digits.train(digits.step_by_hand, x, y, epochs=2)
    params, ours = digits.train(jitml.jit(digits.step), x, y, epochs=2)
    np.testing.assert_allclose(ours, theirs, rtol=demo.CURVE_TOLERANCE)
    assert ours[-1] < ours[0]
    assert digits.accuracy(params, x, y) > 0.8


def test_training_compiles_once() -> None:
    x, y, _, _ = digits.load()
    fast = jitml.jit(digits.step)
    digits.train(fast, x, y, epochs=1)
    assert len(fast.variants) == 1


def test_training_step_plans_its_memory_tightly() -> None:
    x, y, _, _ = digits.load()
    params = digits.init()
    averages = digits.moments(params)
    report = jitml.jit(digits.step).lower(params, averages, x[: digits.BATCH], y[: digits.BATCH], 0.1).program.report
    assert report.arena <= 1.1 * report.lower_bound


def test_the_drawing_is_numpys_up_to_rounding() -> None:
    image = photo.load()[:60, :80]
    ours, theirs = jitml.jit(photo.sketch)(image), photo.sketch(image)
    assert ours.dtype == np.uint8
    assert np.abs(ours.astype(int) - theirs).max() <= 1  # a last place in exp may cross a whole number


def test_greeks_are_the_textbooks() -> None:
    market = options.market(1000)
    for ours, theirs in zip(jitml.jit(options.prices_and_greeks)(*market), options.prices_and_greeks_by_hand(*market)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def test_info_names_the_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    printed = capsys.readouterr().out
    sizes = r"[\d.]+ [KM]iB of"  # of the cache's folder, to which other processes write
    assert re.sub(sizes, "", printed.strip()) == re.sub(sizes, "", info())
    assert "LLVM" in printed and "threads" in printed


@pytest.mark.slow
def test_the_whole_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "picture.png"
    assert main(["demo", "--picture", str(path)]) == 0
    assert path.stat().st_size > 100_000
    assert "price options" in capsys.readouterr().out
