"""Direct calls: what Python calls without a look for `__call__` is answered, seen, timed and let go of as before."""

from __future__ import annotations

import copy
import gc
import inspect
import os
import pickle
import platform
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from functools import partial
from itertools import repeat
from time import sleep
from typing import Any

import numpy as np
import pytest
from llvmlite import binding

import jitml
from jitml import engine
from jitml.dispatch import direct_calls
from jitml.dispatch.direct_calls import call_directly
from jitml.functions import look_away, see_calls
from jitml.jitted import Jit
from jitml.native_entry.forwarder import forwarder
from sections.forced_breaks import trials

X = np.arange(4.0)
call_directly(Jit)
pytestmark = pytest.mark.skipif(not Jit.forwarder, reason="this interpreter's types are not known")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "OFTEN", 3)


def scaled(x: Any, by: Any = 2.0, *, plus: Any = 0.0) -> Any:
    """Scaled."""
    return x * by + plus


jitted_scaled = jitml.jit(scaled)


def entered(function: Any = scaled, *args: Any, **kwargs: Any) -> Any:
    """A jitted function whose calls with such arguments are forwarded to machine code."""
    f = jitml.jit(function)
    for _ in range(6):
        f(*(args or (X,)), **kwargs)
    assert f._forward == Jit.forwarder
    assert type(f._target) is type(len)
    return f


def test_calls_of_all_forms_are_answered() -> None:
    f = entered()
    for _ in range(5):
        for args, kwargs in [((X,), {}), ((X, 3.0), {}), ((), {"x": X}), ((X,), {"plus": 1.0}), ((X, 2), {"plus": X})]:
            np.testing.assert_array_equal(f(*args, **kwargs), scaled(*args, **kwargs))
            np.testing.assert_array_equal(next(map(f, [X])), scaled(X))
    for args, kwargs in [((), {}), ((X, 1, 2), {}), ((X,), {"z": 1}), ((X,), {"x": X})]:
        with pytest.raises(TypeError) as wanted:
            scaled(*args, **kwargs)
        with pytest.raises(TypeError) as got:
            f(*args, **kwargs)
        assert str(got.value) == str(wanted.value)


class Model:
    def __init__(self) -> None:
        self.by = 3.0

    @jitml.jit
    def scaled(self, x: Any) -> Any:
        return x * self.by

    @staticmethod
    @jitml.jit
    def half(x: Any) -> Any:
        return x / 2

    @classmethod
    @jitml.jit
    def named(cls, x: Any) -> Any:
        return x - 1


def test_methods_are_bound() -> None:
    model = Model()
    for n in range(20):
        model.by = float(n % 2)
        np.testing.assert_array_equal(model.scaled(X), X * model.by)
        np.testing.assert_array_equal(Model.scaled(model, x=X), X * model.by)
        np.testing.assert_array_equal(model.half(X), X / 2)
        np.testing.assert_array_equal(model.named(X), X - 1)
        np.testing.assert_array_equal(Model.named(X), X - 1)
        kept = model.scaled
        assert kept.__self__ is model
        np.testing.assert_array_equal(kept(X), X * model.by)
    model.scaled = lambda x: "own"  # type: ignore[method-assign]  # an instance's attribute comes first
    assert model.scaled(X) == "own"


def test_it_is_still_the_same_object() -> None:
    f = entered()
    assert (f.__name__, f.__doc__, f.__wrapped__) == ("scaled", "Scaled.", scaled)
    assert inspect.signature(f) == inspect.signature(scaled)
    assert type(f) is Jit
    assert copy.deepcopy(f) is f
    assert "mul" in str(f.lower(X).graph)
    for _ in range(6):
        jitted_scaled(X)
    assert jitted_scaled._forward
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(jitted_scaled))(X), scaled(X))
    assert Jit.__call__(f, X).shape == (4,)
    assert f.__call__(X).shape == (4,)


def test_a_trace_sees_the_calls() -> None:
    f = entered()
    outer = jitml.jit(lambda x: f(x) + 1, strict=True)
    np.testing.assert_array_equal(outer(X), scaled(X) + 1)
    assert "mul" in str(outer.lower(X).graph)
    assert not f._forward
    np.testing.assert_array_equal(f(X), scaled(X))
    assert f._forward
    np.testing.assert_array_equal(jitml.grad(lambda x: f(x).sum())(X), np.full(4, 2.0))


def test_nothing_is_forwarded_while_jitml_is_disabled() -> None:
    f = entered()
    with jitml.disable():
        assert not f._forward or f._target is scaled
        np.testing.assert_array_equal(f(X), scaled(X))
    np.testing.assert_array_equal(f(X), scaled(X))


def test_what_it_forwards_to_stays_until_it_has_answered() -> None:
    class Target:
        def __call__(self, x: Any) -> Any:
            f.answer_by(len)
            gc.collect()
            return known() is not None, x

    f = jitml.jit(scaled)
    target = Target()
    known = weakref.ref(target)
    f.answer_in_turn(repeat(max), target)
    del target
    assert f._forward
    assert f([2, 3]) == (True, [2, 3])
    assert f([2, 3]) == 2
    assert known() is None


def test_so_many_calls_are_forwarded_and_no_more() -> None:
    f = jitml.jit(scaled)
    for times in (0, 1, 3):
        f.answer_in_turn(repeat(max), min, times)
        assert [f(2, 3) for _ in range(5)] == [2] * times + [3] * (5 - times)
        assert not f._forward
    viewer = set[int]()
    f.answer_in_turn(repeat(max), min, 3)
    assert f(2, 3) == 2
    see_calls(viewer)
    look_away(viewer)
    assert [f(2, 3) for _ in range(4)] == [2, 2, 3, 3]


def test_some_calls_of_what_is_left_alone_are_timed() -> None:
    told: list[int] = []
    f = jitml.jit(scaled)
    f.leave_alone(lambda seconds, calls=1: bool(told.append(calls)))
    with trials():
        for _ in range(20_000):
            f(X)
        assert f._forward
    assert 5 < len(told) < 1000
    assert 15_000 < sum(told) < 30_000


class Other(Jit):
    """A class of its own has flags of its own."""


class Asked(Jit):
    def __call__(self, x: Any) -> Any:  # type: ignore[override]
        return "asked", x


@pytest.mark.parametrize("cls", [Other, Asked])
def test_derived_classes_are_called_as_ever(cls: type[Jit]) -> None:
    f = cls(scaled)
    f.answer_in_turn(repeat(max), min, 2)
    wanted: list[Any] = [2, 2, 3, 3] if cls is Other else [("asked", [2, 3])] * 4
    assert [f([2, 3]) for _ in range(4)] == wanted
    assert not f._forward
    call_directly(cls)
    f.answer_in_turn(repeat(max), min, 2)
    assert [f([2, 3]) for _ in range(4)] == wanted


def test_what_recurs_has_pythons_stack() -> None:
    def depth(n: int) -> int:
        return 0 if n == 0 else 1 + f(n - 1)  # type: ignore[no-any-return]  # the same

    f = jitml.jit(depth)
    f.answer_in_turn(repeat(depth), depth)
    assert f._forward
    assert f(sys.getrecursionlimit() // 2 - 100) == sys.getrecursionlimit() // 2 - 100
    with pytest.raises(RecursionError):
        f(10**6)
    assert f(3) == 3


def test_exceptions_pass_through() -> None:
    def fails(x: Any) -> Any:
        raise ValueError(x)

    f = jitml.jit(fails)
    f.answer_in_turn(repeat(fails), fails)
    with pytest.raises(ValueError, match="3") as found:
        f(3)
    assert [entry.name for entry in found.traceback][-1] == "fails"
    assert len(found.traceback) == 2


@pytest.mark.usefixtures("interval")
def test_threads_may_change_what_answers() -> None:
    f, wrong, is_over = jitml.jit(scaled), [], threading.Event()

    def call() -> None:
        while not is_over.is_set():
            if (found := f(2, 3)) not in (2, 3):
                wrong.append(found)

    def change() -> None:
        for n in range(3000):
            f.answer_in_turn(repeat(max), partial(min), n % 50)  # a new object, which the switch alone holds
            f.answer_by(min)
        is_over.set()

    f.answer_by(max)
    threads = [threading.Thread(target=part) for part in (call, call, change)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.fixture(name="interval")
def with_short_interval() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_it_is_collected() -> None:
    def make() -> Any:
        def own(x: Any) -> Any:
            return x + len(held)

        held: list[Any] = []
        f = entered(own)
        held.append(f)
        return weakref.ref(f), weakref.ref(own)

    found = make()
    for _ in range(100):  # until its program has been written to the disk
        gc.collect()
        if found[0]() is None:
            break
        sleep(0.05)
    assert [known() for known in found] == [None, None]


_ASSEMBLY = {
    "x86_64": """
  .intel_syntax noprefix
forward:
  endbr64
  mov rax, [rdi + 24]
  test rax, rax
  jle over
  dec rax
  mov [rdi + 24], rax
  push rbx
  push rsi
  push rdx
  push rcx
  sub rsp, 8
  mov rbx, [rdi + 32]
  mov rdi, rbx
  call [rip + hold]
  add rsp, 8
  pop rcx
  pop rdx
  pop rsi
  mov rdi, rbx
  call [rip + call_it]
  mov rdi, rbx
  mov rbx, rax
  call [rip + let_go]
  mov rax, rbx
  pop rbx
  ret
over:
  mov qword ptr [rdi + 16], 0
  jmp [rip + call_it]
  .att_syntax
""",
    "aarch64": """
forward:
  ldr x9, [x0, 24]
  cmp x9, 0
  b.le over
  sub x9, x9, 1
  str x9, [x0, 24]
  stp x29, x30, [sp, -48]!
  mov x29, sp
  stp x19, x1, [sp, 16]
  stp x2, x3, [sp, 32]
  ldr x19, [x0, 32]
  mov x0, x19
  ldr x16, hold
  blr x16
  mov x0, x19
  ldr x1, [sp, 24]
  ldp x2, x3, [sp, 32]
  ldr x16, call_it
  blr x16
  mov x1, x19
  mov x19, x0
  mov x0, x1
  ldr x16, let_go
  blr x16
  mov x0, x19
  ldr x19, [sp, 16]
  ldp x29, x30, [sp], 48
  ret
over:
  str xzr, [x0, 16]
  ldr x16, call_it
  br x16
""",
}
_ADDRESSES = """
  .balign 8
hold: .quad 0
call_it: .quad 0
let_go: .quad 0
"""


def test_the_code_is_what_is_assembled_of_its_text() -> None:
    text = _ASSEMBLY.get(platform.machine())
    if text is None:
        pytest.skip("no code for this processor")
    lines = "".join(f'module asm "{line}"\n' for line in (text + _ADDRESSES).splitlines())
    for initialize in (
        binding.initialize_native_target,
        binding.initialize_native_asmprinter,
        binding.initialize_native_asmparser,
    ):
        initialize()
    machine = binding.Target.from_default_triple().create_target_machine()
    assembled = machine.emit_object(binding.parse_assembly(lines))
    assert bytes.fromhex(direct_calls._CODE[platform.machine()]) in assembled


_PLAIN = """
import sys
import jitml

def factorial(n, /, *, by=1):
    return by if n < 2 else n * factorial(n - 1, by=by)

plain, factorial = factorial, jitml.jit(factorial)
assert [factorial(n) for n in range(9)] == [plain(n) for n in range(9)]
assert factorial(5, by=2) == 240 and factorial._forward == jitml.jitted.Jit.forwarder
assert factorial._left > 100
assert not [name for name in sys.modules if name.startswith("llvmlite")]
"""


@pytest.mark.skipif(sys.platform != "linux", reason="no code for other systems")
def test_calls_are_forwarded_in_a_process_without_llvm() -> None:
    environment = os.environ | {"JITML_TRIAL": "1", "JITML_STRICT": "", "JITML_CHECK": ""}
    subprocess.run([sys.executable, "-c", _PLAIN], env=environment, check=True, timeout=60)


def test_llvm_makes_code_that_forwards_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    class Another(Jit):
        pass

    monkeypatch.setattr(direct_calls, "_ready_made", lambda: 0)
    call_directly(Another)
    assert not Another.forwarder
    call_directly(Another, forwarder())
    assert Another.forwarder == forwarder() != Jit.forwarder
    f = Another(scaled)
    f.answer_in_turn(repeat(max), min, 2)
    assert [f([2, 3]) for _ in range(4)] == [2, 2, 3, 3]
