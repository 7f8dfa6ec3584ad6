"""The runtime's device on a real GPU: memory, copies, launches, graphs, and what it says when something is wrong."""

from __future__ import annotations

import subprocess
import sys
import threading
from functools import cache
from typing import Any

import numpy as np

from gpu.cases import Cases, Outcome, Setting
from gpu.correctness.leads import SOURCE, microseconds_of
from gpu.failures import Mismatch, require_same
from gpu.supervision import environment

Array = np.ndarray[Any, Any]


def cases(setting: Setting) -> Cases:
    for check in (
        facts,
        round_trips,
        copies_and_fills,
        launches,
        shared_memory,
        graphs,
        loops_of_the_device,
        threads,
        too_much_memory,
        memory_is_reused,
    ):
        yield check.__name__.replace("_", " "), check
    yield "other streams", other_streams
    yield "a fault", faults
    yield "a fork", forks


@cache
def device() -> Any:
    from jitml.codegen.cuda.runtime.devices import device as first

    return first()


@cache
def code() -> Any:
    return device().load(SOURCE)


def on_device(x: Array) -> int:
    address = int(device().allocate(x.nbytes))
    device().copy_in(address, x)
    return address


def fetch(address: int, like: Array) -> Array:
    result = np.empty_like(like)
    device().copy_out((result, address))
    return result


def facts() -> Outcome:
    gpu = device()
    free, total = gpu.memory()
    code()["empty"]
    try:
        code()["no such kernel"]
    except KeyError:
        found = {"name": gpu.name, "arch": gpu.arch, "multiprocessors": gpu.multiprocessors, "stream": gpu.stream}
        return {"figures": found | {"free GB": free / 1e9, "all GB": total / 1e9, "copy GB/s": gpu.peaks.copy}}
    raise Mismatch("a kernel that is not there was found")


def round_trips() -> None:
    """Of sizes about those of the staging buffers; the array may change as soon as it is copied in."""
    rng = np.random.default_rng(0)
    for nbytes in (1, 3, 64, 4096, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, (37 << 20) + 5):
        x = rng.integers(0, 256, nbytes).astype(np.uint8)
        kept, address = x.copy(), on_device(x)
        x[:] = 0
        require_same([fetch(address, x)], [kept], 0)
        device().free(address)
    pairs = [(np.empty(1000), on_device(np.full(1000, float(n)))) for n in range(20)]
    device().copy_out(*pairs)
    require_same([host for host, _ in pairs], [np.full(1000, float(n)) for n in range(20)], 0)


def copies_and_fills() -> None:
    x = np.arange(1000, dtype=np.float32)
    a, b = on_device(x), on_device(np.zeros_like(x))
    device().copy(b, a, 2000)
    require_same([fetch(b, x)], [np.where(x < 500, x, 0).astype(np.float32)], 0)
    device().fill(b, 0xFF, 2000)
    require_same([fetch(b, x).view(np.uint32)[:501]], [np.array([0xFFFFFFFF] * 500 + [0], np.uint32)], 0)


def launches() -> Outcome:
    x = np.arange(100_003, dtype=np.float32)
    address, function = on_device(x), code()["add_one"]
    for _ in range(3):
        device().launch(function, 100, 256, 0, (address, x.size))
    require_same([fetch(address, x)], [x + 3], 0)
    device().launch(function, 0, 256, 0, (address, x.size))  # of no blocks: nothing
    once = microseconds_of(lambda: device().launch(function, 1, 32, 0, (address, 32)), device().synchronize)
    waited = microseconds_of(
        lambda: (device().launch(function, 1, 32, 0, (address, 32)), device().synchronize()), lambda: None, 300
    )
    return {"figures": {"host us": once, "with wait us": waited}}


def shared_memory() -> None:
    x = np.arange(50_000, dtype=np.float32)
    a, b = on_device(x), on_device(np.zeros_like(x))
    device().launch(code()["through_shared"], 1, 256, x.nbytes, (a, b, x.size))
    require_same([fetch(b, x)], [x[::-1].copy()], 0)


def graphs() -> Outcome:
    x = np.zeros(1000, np.float32)
    a, b, function = on_device(x), on_device(x), code()["add_one"]

    def work() -> None:
        for _ in range(19):
            device().launch(function, 4, 256, 0, (a, x.size))
        device().copy(b, a, x.nbytes)

    graph = device().record(work)
    require_same([fetch(a, x)], [x], 0)  # nothing has been done yet
    for _ in range(3):
        graph.replay()
    require_same([fetch(a, x), fetch(b, x)], [x + 57, x + 57], 0)
    graph.replay([(3, (b, x.size)), (18, (b, 10))])  # before the copy
    graph.replay([(18, (a, x.size))])
    require_same([fetch(a, x), fetch(b, x)], [x + 57 + 17 + 18, x + 57 + 17 + 18], 0)
    changed = [(3, (b, x.size))]
    figures = {"20 nodes, host us": microseconds_of(graph.replay, device().synchronize, 300)}
    figures["one of them changed, host us"] = microseconds_of(lambda: graph.replay(changed), device().synchronize, 300)
    return {"figures": figures}


def loops_of_the_device() -> Outcome:
    """A program that ends its loop itself, changes places of what it carries, and branches in it."""
    import jitml

    def halved(x: Array, y: Array, most: int) -> tuple[Array, Array, int]:
        rounds = 0
        while np.abs(x).max() > 1e-3 and rounds < most:
            x, y = np.cumsum(y)[::-1] / 2000, x
            if x[0] > 1:
                x = np.cumsum(x) / 3000
            rounds += 1
        return x, y, rounds

    jitted, rng, most = jitml.jit(halved, verify="never"), np.random.default_rng(0), 50
    for scale in (1e-6, 1.0, 1e3, 1e9):
        x, y = scale * rng.uniform(1, 2, (2, 1000))
        there = [jitml.asarray(a, device="cuda") for a in (x, y)]
        got, wanted = jitted(*there, most), halved(x, y, most)
        require_same([np.asarray(a) for a in got[:2]], list(wanted[:2]), 10_000)
        if got[2] != wanted[2]:
            raise Mismatch(f"{got[2]} rounds, not {wanted[2]}")
    if not device().has_conditions:
        raise Mismatch("the driver has no conditions of graphs")
    return {"figures": {"a call, host us": microseconds_of(lambda: jitted(*there, most), device().synchronize, 30)}}


def threads() -> None:
    """Several at once, each with memory of its own."""
    wrong: list[str] = []

    def work(n: int) -> None:
        x = np.full(10_000, float(n), np.float32)
        for k in range(50):
            address = on_device(x)
            device().launch(code()["add_one"], 8, 256, 0, (address, x.size))
            if not np.array_equal(fetch(address, x), x + 1):
                wrong.append(f"thread {n}, trip {k}")
            device().free(address)

    own = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in own:
        thread.start()
    for thread in own:
        thread.join()
    if wrong:
        raise Mismatch(f"{wrong[:5]} have others' numbers")


def too_much_memory() -> Outcome:
    from jitml.errors import DeviceMemoryError

    try:
        device().allocate(1 << 41)
    except DeviceMemoryError as error:
        x = np.ones(10)
        require_same([fetch(on_device(x), x)], [x], 0)  # it goes on
        return {"figures": {"said": str(error).splitlines()[0]}}
    raise Mismatch("2 TiB were given")


def memory_is_reused() -> None:
    before, _ = device().memory()
    for nbytes in (256 << 20, 1 << 20):
        for _ in range(200):
            device().free(device().allocate(nbytes))
    device().synchronize()
    after, _ = device().memory()
    if before - after > (300 << 20):
        raise Mismatch(f"{before - after:,} bytes fewer are free")


def other_streams() -> None:
    """What PyTorch computes on a stream of its own is seen, if it is waited for; and the other way round."""
    import torch

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.zeros(1 << 24, device="cuda")
        for _ in range(20):
            x += 1
    device().wait_for(stream.cuda_stream)
    device().launch(code()["add_one"], 1000, 256, 0, (x.data_ptr(), x.numel()))
    device().hold_back(stream.cuda_stream)
    with torch.cuda.stream(stream):
        total = float(x.sum())
    if total != 21 * (1 << 24):
        raise Mismatch(f"{total / (1 << 24)} in each place, not 21")


_HEAD = """
import numpy as np
from jitml.codegen.cuda.runtime.devices import device
gpu = device()
bad = gpu.load('extern "C" __global__ void bad(float* x) { *x = 1.0f; }')["bad"]
"""
FAULT = (
    _HEAD
    + """
gpu.launch(bad, 1, 1, 0, (64,))
for step in (gpu.synchronize, lambda: gpu.allocate(8), gpu.synchronize):
    try:
        step(); print("no error")
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])
"""
)
FORK = (
    _HEAD
    + """
import os, sys
child = os.fork()
if not child:
    try:
        gpu.allocate(8); print("no error", flush=True)
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0], flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(gpu.allocate(8) > 0)
"""
)


def faults() -> Outcome:
    return _said(FAULT, "DeviceFault")


def forks() -> Outcome:
    return _said(FORK, "NoDeviceError")


def _said(program: str, wanted: str) -> Outcome:
    command = [sys.executable, "-W", "ignore", "-c", program]  # Python warns of forks where there are threads
    done = subprocess.run(command, capture_output=True, text=True, env=environment(""), timeout=25, check=False)
    said = done.stdout.strip() + (f" (stderr: {done.stderr[-800:]})" if done.stderr.strip() else "")
    if done.returncode or wanted not in said or "no error" in said or done.stderr.strip():
        raise Mismatch(f"exit status {done.returncode}: {said}")
    return {"figures": {"said": said.replace("\n", " | ")}}
