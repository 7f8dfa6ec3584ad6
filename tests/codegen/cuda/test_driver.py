"""The device on the real bindings of CUDA, whose driver is a strict one in the host's memory (`fake_libcuda.cpp`)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.cuda_emulation.host_library import has_compiler, shared_library

pytest.importorskip("cuda.bindings.driver")
pytestmark = pytest.mark.skipif(not has_compiler(), reason="the fake driver is built by g++")

_SOURCE = Path(__file__).parents[2] / "support" / "fake_libcuda.cpp"
_BEFORE = """
import ctypes, gc, os, threading
import numpy as np
from jitml.codegen.cuda.runtime import devices, gpu
from jitml.codegen.cuda.runtime.driver import device_count
from jitml.errors import *

class Compiled:
    code = b"\\177ELF"

gpu.compile_cubin = lambda source, arch: Compiled
library = ctypes.CDLL(os.environ["FAKE_CUDA_LIBRARY"])

def left():
    counts = (ctypes.c_int * 7)()
    library.fake_left(counts)
    names = ("memory", "pinned", "streams", "events", "modules", "graphs", "contexts")
    return {name: n for name, n in zip(names, counts) if n}

def raised(kind, function, *args):
    try:
        function(*args)
    except kind as error:
        return str(error)
    raise AssertionError(f"nothing is raised")
"""
_DEVICE = """
device = devices.device()
x = np.arange(3_000_000.0)
"""


@pytest.fixture(scope="module")
def driver() -> dict[str, str]:
    """The environment of a process that finds the fake driver."""
    library = shared_library(_SOURCE, "-std=c++20", "-w", name="libcuda.so.1")
    return {**os.environ, "LD_LIBRARY_PATH": str(library.parent), "FAKE_CUDA_LIBRARY": str(library)}


def run(driver: dict[str, str], code: str, **settings: str) -> str:
    """What a process prints that runs this on the fake driver."""
    done = subprocess.run(
        [sys.executable, "-c", f"{_BEFORE}\n{code}"],
        env={**driver, **settings},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_memory_is_copied_filled_and_freed(driver: dict[str, str]) -> None:
    code = """
a = device.allocate(x.nbytes)
device.copy_in(a, x)
device.fill(a, 0, 8)
b = device.allocate(24)
device.copy(b, a, 24)
y, z, w = np.empty_like(x), np.zeros(3), np.zeros(0)
device.copy_out((y, a), (w, 0), (z, b))
assert y[0] == 0 and (y[1:] == x[1:]).all() and z.tolist() == [0, 1, 2]
assert device.allocate(0) == 0
assert device.memory()[1] == 1 << 26
device.free(a); device.free(b); device.free(0)
assert device.memory() == (1 << 26, 1 << 26)
device.trim()
assert "memory" not in left(), left()
"""
    run(driver, _DEVICE + code)


def test_copies_of_many_sizes_use_pieces_again(driver: dict[str, str]) -> None:
    code = """
rng = np.random.default_rng(0)
sizes = [int(n) for n in rng.integers(1, 3 << 20, 30)] + [1, 5, 4 << 20, (4 << 20) + 1, 9 << 20]
for n in sizes:
    given = rng.integers(0, 255, n, dtype=np.uint8)
    at = device.allocate(n)
    device.copy_in(at, given)
    given, want = None, given.copy()
    got = np.zeros(n, np.uint8)
    device.copy_out((got, at))
    assert (got == want).all()
    device.free(at)
assert left()["pinned"] == 6, left()
"""
    run(driver, _DEVICE + code)


def test_kernels_are_launched_and_recorded(driver: dict[str, str]) -> None:
    code = """
a = device.allocate(x.nbytes)
device.copy_in(a, x)
code = device.load("")
add = code["add_one"]
assert raised(KeyError, code.__getitem__, "nothing")
device.launch(add, 4, 256, 0, [a, 3])
device.launch(add, 4, 256, 100 << 10, [a, 3])
device.launch(add, 0, 256, 0, [a, 3])
assert "shared memory" in raised(CompilerError, device.launch, add, 1, 256, 1 << 20, [a, 3])

def work():
    device.fill(a, 0, 8)
    for n in (1, 2):
        device.launch(add, 4, 256, 0, [a, n])
    device.free(b)  # not part of it, and not before it

b = device.allocate(16)
graph = device.record(work)
y = np.zeros(3)
device.copy_out((y, a))
assert y.tolist() == [2, 3, 4]
for _ in range(2):
    graph.replay()
device.copy_out((y, a))
assert y.tolist() == [2, 5, 4], y
graph.replay([(1, [a, 3])])
device.copy_out((y, a))
assert y.tolist() == [2, 6, 5], y
graph.replay()
device.copy_out((y, a))
assert y.tolist() == [2, 7, 6], y
device.launch(add, 4, 256, 0, [a, 1])  # which has parameters of its own
graph.replay()
device.copy_out((y, a))
assert y.tolist() == [2, 8, 7], y
device.trim()
assert left()["memory"] == 1

def broken():
    raise ZeroDivisionError

raised(ZeroDivisionError, device.record, broken)
device.copy_out((y, a))
del graph, code, add
gc.collect()
assert not left().keys() & {"modules", "graphs"}, left()
"""
    run(driver, _DEVICE + code)


CONDITIONS = """
a = device.allocate(x.nbytes)
device.copy_in(a, x)
code = device.load("")
add, down = code["add_one"], code["count_down"]
far = a + 8000

def values(*places):
    found = [np.zeros(1) for _ in places]
    device.copy_out(*((y, a + 8 * n) for y, n in zip(found, places)))
    return [float(y[0]) for y in found]
"""


def test_graphs_have_loops_and_branches(driver: dict[str, str]) -> None:
    code = """
def work():
    goes_on, left, ends, spare = (device.new_condition() for _ in range(4))
    device.launch(add, 1, 1, 0, [far, 1])
    device.launch(down, 1, 1, 0, [a, 1, goes_on, spare])
    device.conditional("if", spare, lambda: None)

    def body():
        device.launch(add, 1, 1, 0, [far + 8, 1])
        device.copy(far + 16, far + 8, 8)
        device.launch(down, 1, 1, 0, [far + 24, 2, left, ends])
        device.conditional("if", left, lambda: device.launch(add, 1, 1, 0, [far + 32, 1]))
        device.conditional("if", ends, lambda: device.launch(add, 1, 1, 0, [far + 40, 1]))
        device.launch(down, 1, 1, 0, [a, 1, goes_on, ends])

    device.conditional("while", goes_on, body)
    device.launch(add, 1, 1, 0, [far + 48, 1])

assert device.has_conditions
graph = device.record(work)
for trips in (0, 1, 3):
    device.copy_in(a, np.array([trips + 1.0]))
    device.copy_in(far, np.array([0.0, 0, 0, 3, 0, 0, 0]))  # of the inner one something is left the first time
    graph.replay()
    assert values(0, *range(1000, 1007)) == [0, 1, trips, trips, 3 - 2 * trips, trips > 0, max(0, trips - 1), 1]
graph.replay([(0, [far + 56, 1])])  # the other launches of the graph itself
graph.replay([(2, [far + 64, 1])])
assert values(1000, 1006, 1007, 1008) == [1, 2, 1009, 1009], values(1000, 1006, 1007, 1008)
del graph, work
gc.collect()
device.synchronize()
assert "graphs" not in left(), left()
"""
    run(driver, _DEVICE + CONDITIONS + code)


def test_conditions_are_set_before_they_are_asked_for(driver: dict[str, str]) -> None:
    """And have one node each, of their own graph: else the driver of the tests says that something is wrong."""
    code = """
def nobody_asks():
    device.new_condition()

def asked_twice():
    condition = device.new_condition()
    device.conditional("if", condition, lambda: None)
    device.conditional("if", condition, lambda: None)

def another_graphs():
    device.conditional("if", kept[0], lambda: None)

def broken():
    device.conditional("while", device.new_condition(), lambda: 1 / 0)

kept = []
first = device.record(lambda: (kept.append(device.new_condition()), device.conditional("while", kept[0], lambda: None)))
for work in (nobody_asks, asked_twice, another_graphs):
    raised(CompilerError, device.record, work)
raised(ZeroDivisionError, device.record, broken)
device.launch(add, 1, 1, 0, [far, 1])
assert values(1000) == [1001]
raised(DeviceFault, lambda: (first.replay(), device.synchronize()))
"""
    run(driver, _DEVICE + CONDITIONS + code)


def test_an_old_driver_has_no_conditions(driver: dict[str, str]) -> None:
    run(driver, _DEVICE + "assert not device.has_conditions", FAKE_CUDA_VERSION="12030")


def test_what_is_freed_is_used_again_in_the_same_place(driver: dict[str, str]) -> None:
    code = """
a, b = device.allocate(1000), device.allocate(1024)
device.free(a); device.free(b)
assert device.allocate(3000) not in (a, b)
assert {device.allocate(1), device.allocate(600), device.allocate(1024)} >= {a, b}
assert raised(KeyError, device._lists.keep, 5)
big = device.allocate(1 << 20)  # more of one size than is kept of so small a memory
device.free(big)
assert left()["memory"] == 4
many = [device.allocate(512 * n) for n in range(10, 100)]
for at in many:
    device.free(at)
assert 4 < left()["memory"] < 4 + 65, left()
held = device.allocate(1 << 25)
rest = device.allocate((1 << 25) - 10_000)  # for which all that is kept is given back
assert device._lists.held == 0
"""
    run(driver, _DEVICE + code)


def test_too_much_memory_is_refused_with_figures(driver: dict[str, str]) -> None:
    out = run(driver, _DEVICE + "print(raised(DeviceMemoryError, device.allocate, 1 << 30))")
    assert out.startswith("NVIDIA H100 80GB HBM3 has not 1,073,741,824 bytes: 67,108,864 of 67,108,864 are free")


def test_a_limit_is_kept_and_told_with_figures(driver: dict[str, str]) -> None:
    code = """
class Keeper:
    def give_up(self):
        device.free(self.address)
        self.address = 0

assert device.memory() == (10 << 20, 10 << 20)
a, b = device.allocate(6 << 20), device.allocate(4 << 20)
assert device.memory()[0] == 0
print(raised(DeviceMemoryError, device.allocate, 1 << 20))
device.free(b)
c = device.allocate(3 << 20)  # what is kept in lists counts, and is given up
assert device.memory() == (1 << 20, 10 << 20)
keeper = Keeper()
keeper.address = a
device.keepers.add(keeper)
d = device.allocate(2 << 20)  # so is what keepers have
assert keeper.address == 0 and device.memory() == (5 << 20, 10 << 20)
print(raised(DeviceMemoryError, device.allocate, 6 << 20))
"""
    first, again = run(driver, _DEVICE + code, JITML_DEVICE_BYTES=str(10 << 20)).split("Let go of arrays")[:2]
    told = "has not 1,048,576 bytes: 0 of 10,485,760 are free, and JITML_DEVICE_BYTES allows no more"
    assert told in first and "5,242,880 of 10,485,760" in again


def test_a_fault_is_told_at_each_call_and_none_reaches_the_driver(driver: dict[str, str]) -> None:
    code = """
a = device.allocate(8)
fault = device.load("")["fault"]
print(raised(DeviceFault, device.launch, fault, 1, 1, 0, [a, 0]))
print(raised(DeviceFault, device.copy_out, (np.zeros(1), a)))
device.free(a)
"""
    first, second = run(driver, _DEVICE + code).split("NVIDIA H100 80GB HBM3 does nothing more")
    assert "an access outside of memory (CUDA_ERROR_ILLEGAL_ADDRESS, as cuLaunchKernel found)" in first
    assert "The CPU keeps working" in second


def test_a_child_of_a_fork_is_told_to_spawn(driver: dict[str, str]) -> None:
    code = """
a = device.allocate(8)
child = os.fork()
if child == 0:
    assert "forked" in raised(NoDeviceError, device.allocate, 8)
    assert "forked" in raised(NoDeviceError, gpu.Gpu)
    assert device_count() == 0
    device.free(a)
    os._exit(5)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
device.synchronize()
"""
    run(driver, _DEVICE + code)


def test_contexts_of_others_are_put_back(driver: dict[str, str]) -> None:
    code = """
def other():
    library.fake_push_context(ctypes.c_void_p(0x77))
    device.free(device.allocate(8))
    with device.lock, device.turn:
        at = device.allocate(8)
        with device.lock, device.turn:
            device.launch(device.load("")["add_one"], 1, 32, 0, [at, 1])
        device.free(at)
    now = ctypes.c_void_p()
    library.fake_context(ctypes.byref(now))
    assert now.value == 0x77

def none():
    device.free(device.allocate(8))

for function in (other, none):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()
device.trim()
assert "memory" not in left()
"""
    run(driver, _DEVICE + code)


def test_other_streams_are_put_in_order(driver: dict[str, str]) -> None:
    run(driver, _DEVICE + "device.wait_for(1); device.hold_back(2); assert 'events' not in left(), left()")


def test_a_collector_waits_for_no_thread(driver: dict[str, str]) -> None:
    """A thread that helped with a copy, and freed what the collector had found there, waited for the one that waited for it."""
    code = """
import threading
held = device.allocate(8)
with device.lock:
    thread = threading.Thread(target=lambda: (device.wait_later(1), device.free(held)), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    assert "memory" in left() and not device._lists.held  # nobody may have it before the other stream is waited for
device.synchronize()
assert device._lists.held == 512 and "events" not in left(), left()
device.trim()
assert "memory" not in left(), left()
"""
    run(driver, _DEVICE + code)


def test_all_is_given_back_when_python_ends(driver: dict[str, str]) -> None:
    code = """
import atexit
atexit.register(lambda: print(left()))  # before the device's: it runs after it
device = devices.device()
held = device.allocate(100), device.load(""), device.record(lambda: None)
device.copy_in(held[0], np.zeros(5))
"""
    out = run(driver, code)
    assert out == "{'modules': 1, 'graphs': 2}\n"  # a graph, and what it became: the context takes all with it


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"FAKE_CUDA_INIT": "100"}, "the NVIDIA driver finds no GPU"),
        ({"FAKE_CUDA_INIT": "803"}, "the NVIDIA driver does not start: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
        ({"FAKE_CUDA_VERSION": "11040"}, "the NVIDIA driver is of CUDA 11.4, and older than 12.0"),
    ],
)
def test_what_is_missing_is_named(driver: dict[str, str], settings: dict[str, str], message: str) -> None:
    out = run(driver, "print(raised(NoDeviceError, devices.device)); assert device_count() == 0", **settings)
    assert out.startswith(message)


def test_there_is_one_gpu_only(driver: dict[str, str]) -> None:
    assert "there is no GPU 1: the driver finds 1" in run(driver, "print(raised(NoDeviceError, devices.device, 1))")
