"""Launch sequences on a device: graphs for arrays at any addresses, and what calls copy in."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.cuda.runtime.device import DeviceArgument
from jitml.device.operations import forget_operations
from sections.forced_breaks import trials
from support.cuda_emulation import has_compiler
from support.cuda_emulation.device import EmulatedDevice, emulated

pytestmark = pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")
SIZE = 300


@pytest.fixture
def device() -> Iterator[EmulatedDevice]:
    with emulated() as device:
        yield device
        forget_operations()
        gc.collect()
        assert device.used == 0


def chain(x: Any, y: Any) -> Any:
    for _ in range(3):
        x = np.cumsum(x)[::-1] / y
    return x, x.sum()


def looped(x: Any, y: Any) -> Any:
    u, v = x, y
    for _ in range(40):  # a region, whose carried arrays change places
        u, v = v - np.cumsum(u) / SIZE, u
    return u, v


def in_place(x: Any, y: Any) -> Any:
    x += np.cumsum(y)
    y[1:] = np.cumsum(x)[:-1]
    return (np.cumsum(x * y),)


@pytest.mark.parametrize("program", [chain, looped, in_place])
def test_graphs_serve_arrays_at_other_addresses(program: Callable[..., Any], device: EmulatedDevice) -> None:
    jitted = jitml.jit(program, verify="never")
    rng, kept = np.random.default_rng(0), []
    for n in range(9):
        x, y = rng.uniform(1, 2, (2, SIZE))
        given = [jitml.asarray(a, device="cuda") for a in (x, y)]
        got, wanted = jitted(*given), program(x, y)
        for mine, theirs in zip((*given, *got), (x, y, *wanted), strict=True):
            np.testing.assert_allclose(np.asarray(mine), theirs, rtol=1e-9)
        kept.append((given, got) if n % 3 else None)  # so that some addresses come again
    assert 1 <= len(device.graphs) <= 4
    assert sum(graph.replays for graph in device.graphs) == 8  # all but the first
    assert sum(graph.changes for graph in device.graphs) > 0
    kept.clear()


def test_a_loop_that_the_device_ends_is_a_graph_from_the_first_call_on(device: EmulatedDevice) -> None:
    def halved(x: Any) -> Any:
        rounds = 0
        while np.abs(x).max() > 1e-3:
            x = np.cumsum(x)[::-1] / 1000
            rounds += 1
        return x, rounds

    jitted = jitml.jit(halved, verify="never")
    for scale in (1.0, 1e-9, 1e6, 30.0):
        copied = device.copied_out
        x = jitml.asarray(np.full(SIZE, scale), device="cuda")
        got, expected = jitted(x), halved(np.full(SIZE, scale))
        assert device.copied_out - copied < 100  # the number of rounds, and nothing in between
        np.testing.assert_allclose(np.asarray(got[0]), expected[0], rtol=1e-12)
        assert got[1] == expected[1]
    assert sum(graph.replays for graph in device.graphs) == 4 and not jitted.variants[0].replays


def test_a_run_that_fails_between_leaves_a_graph_to_be_changed_as_a_whole(
    device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    jitted = jitml.jit(chain, verify="never")
    sets = [[jitml.asarray(np.full(SIZE, n + 1.0), device="cuda") for n in (k, k + 1)] for k in range(8)]
    for given in sets[:3]:
        jitted(*given)
    (graph,) = device.graphs
    replay = graph.replay

    def half(changes: Any = ()) -> None:
        replay(changes[:1])
        raise KeyboardInterrupt

    monkeypatch.setattr(graph, "replay", half)
    with pytest.raises(KeyboardInterrupt):
        jitted(*sets[3])
    monkeypatch.undo()
    for given in (sets[2], sets[4]):
        expected = chain(*(np.asarray(x) for x in given))
        np.testing.assert_allclose(np.asarray(jitted(*given)[0]), expected[0], rtol=1e-12)


def test_numbers_are_copied_in_when_they_are_others(device: EmulatedDevice) -> None:
    jitted, x = jitml.jit(lambda x, s, n: x * s + n, verify="never"), jitml.asarray(np.arange(5.0), device="cuda")
    for s, n, is_copied in (
        (2.5, 1, True),
        (2.5, 1, False),
        (-2.5, 1, True),
        (-2.5, 2, True),
        (-2.5, 2, False),
        (0.0, 0, True),
        (-0.0, 0, True),
    ):
        before = device.copied_in
        np.testing.assert_array_equal(np.asarray(jitted(x, s, n)), np.arange(5.0) * s + n)
        assert (device.copied_in > before) == is_copied


def test_small_arrays_that_a_program_changes_are_copied_in_again(device: EmulatedDevice) -> None:
    def change(x: Any, y: Any) -> Any:
        y += x[0]
        return y * 2

    jitted, there = jitml.jit(change, verify="never"), jitml.asarray(np.ones(3), device="cuda")
    on_host = jitml.jit(change, device="cuda", verify="never")
    for _ in range(3):
        y, z = np.arange(4.0), np.arange(4.0)
        np.testing.assert_array_equal(np.asarray(jitted(there, y)), 2 * (np.arange(4.0) + 1))
        np.testing.assert_array_equal(on_host(np.ones(3), z), 2 * (np.arange(4.0) + 1))
        np.testing.assert_array_equal(y, np.arange(4.0) + 1)
        np.testing.assert_array_equal(z, np.arange(4.0) + 1)


def test_a_failed_check_is_forgotten_by_the_next_call(device: EmulatedDevice) -> None:
    jitted, x = jitml.jit(lambda x, places: x[places] * 2, verify="never"), jitml.asarray(np.arange(5.0), device="cuda")
    good, bad = (jitml.asarray(np.array(places), device="cuda") for places in ([0, 4, 1], [0, 5, 1]))
    for _ in range(2):
        assert jitted(x, good).tolist() == [0.0, 8.0, 2.0]
        with pytest.raises(IndexError, match="index 5 is out of bounds"):
            jitted(x, bad)
    (variant,) = jitted.variants
    assert sum(variant.replays.values()) == 2


def _cumulated(x: Any, places: Any) -> None:
    for k in range(4):
        x[:] = np.cumsum(x) / 10 + places[places[k]]


def _exchanged(x: Any, places: Any) -> None:
    y = x * 2
    z = y[places]
    for _ in range(3):  # behind the check
        x[...], y = y, x.copy()
    x += z.sum()


def _sorted(x: Any, places: Any) -> None:
    y = np.sort(x[places])
    x[:4] = np.sort(y)
    x.sort()


def _multiplied(x: Any, places: Any) -> None:
    m = np.outer(x, x)
    x += m[places].sum(axis=0)
    x[...] = m @ x


def _inverted(x: Any, places: Any) -> None:
    x[...] = np.linalg.inv(np.outer(x, x))[0]  # which is singular
    x[places] = 0


@pytest.mark.parametrize("program", [_cumulated, _exchanged, _sorted, _multiplied, _inverted])
def test_what_a_program_changes_is_as_it_was_when_a_check_fails(program: Callable[..., Any], device: EmulatedDevice) -> None:
    """Copies and other calls behind a failed check had written to the caller's arrays, which the plain function then read."""
    jitted = jitml.jit(program, verify="never")
    for places in ([0, 1, 2, 3], [0, 1, 9, 3], [1, 1, 1, 9], [0, 0, 0, 3]):
        mine, theirs, places = np.arange(1.0, 9.0), np.arange(1.0, 9.0), np.array(places)
        there, raised = jitml.asarray(mine, device="cuda"), []
        for function, x, p in ((jitted, there, jitml.asarray(places, device="cuda")), (program, theirs, places)):
            try:
                function(x, p)
                raised.append("")
            except (IndexError, np.linalg.LinAlgError) as error:
                raised.append(str(error))
        np.testing.assert_allclose(np.asarray(there), theirs, rtol=1e-12)
        assert raised[0] == raised[1]


def test_a_call_without_any_memory(device: EmulatedDevice) -> None:
    nothing, some = np.zeros((0, 3)), np.ones((4, 3))
    for mine, other in (
        (nothing, nothing),
        (jitml.asarray(nothing, device="cuda"), nothing),
        (jitml.asarray(some, device="cuda"), nothing),
    ):
        for _ in range(2):
            first, second = jitml.jit(lambda x, y: (x * 2, y * 3), device="cuda", verify="never")(mine, other)
            np.testing.assert_array_equal(np.asarray(first), 2 * np.asarray(mine))
            assert second.shape == (0, 3)


def test_calls_on_a_device_are_not_timed(device: EmulatedDevice) -> None:
    x = jitml.asarray(np.ones(3), device="cuda")
    with trials():
        jitted = jitml.jit(lambda x: np.exp(x) * 2, verify="never")
        for _ in range(3):
            jitted(x)
    (variant,) = jitted.variants
    assert not variant.timed and device.launches == 3


def test_an_argument_is_known_by_its_address(device: EmulatedDevice) -> None:
    jitted, x = jitml.jit(lambda x: x[::-1] + 1, verify="never"), jitml.asarray(np.arange(5.0), device="cuda")
    result = jitted(x)
    argument = result._view.argument
    assert type(argument) is DeviceArgument and argument.address == argument.owned and argument.nbytes == 40
    np.testing.assert_array_equal(np.asarray(jitted(result)), np.arange(5.0) + 2)
