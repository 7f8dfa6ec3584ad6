"""What a target says is what grouping, lowering and memory planning ask: other targets get other programs of the same graphs."""

from dataclasses import replace

import pytest

from jitml.errors import VerificationError
from jitml.fusion.fuse import DEFAULT
from jitml.ir.text.parser import parse
from jitml.kernels.program import Call, KernelProgram
from jitml.kernels.target import GEMM, Accepts, Cost, Limits, Target
from jitml.kernels.text.parser import parse as parse_kernel
from jitml.kernels.verify.target import verify_for
from jitml.memory.plan import plan
from support.fused import fuse

PRODUCT = """
graph(x: f64[30,40], y: f64[40,20], s: f64[30,20]) {
  z: f64[30,20] = dot_general x y {batch=((), ()), contract=((1,), (0,))}
  t: f64[30,20] = add s z
  return t
}
"""
SHARED = """
graph(x: f64[1000], y: f64[1000]) {
  e: f64[1000] = exp x
  a: f64[1000] = mul e y
  m: f64[] = reduce_max e {axes=(0,)}
  n: f64[] = reduce_sum a {axes=(0,)}
  b: f64[1000] = broadcast m {shape=(1000,), axes=()}
  d: f64[1000] = sub e b
  return d n
}
"""


def fused(text: str, target: Target = DEFAULT) -> KernelProgram:
    return fuse(parse(text), target=target)


def calls(program: KernelProgram) -> list[Call]:
    return [step for step in program.steps if isinstance(step, Call)]


def with_gemm(gemm: Accepts | None) -> Target:
    return Target(calls={} if gemm is None else {"gemm": gemm})


def test_what_the_library_multiplies() -> None:
    (call,) = calls(fused(PRODUCT))
    assert "adds" in call.params
    (call,) = calls(fused(PRODUCT, with_gemm(replace(GEMM, epilogues=frozenset()))))
    assert "adds" not in call.params
    for other in (None, replace(GEMM, dtypes=frozenset()), replace(GEMM, small=40)):
        assert not calls(fused(PRODUCT, with_gemm(other)))


@pytest.mark.parametrize(
    ("steps", "extents", "dense"),
    [
        ((4, 1), (3, 4), True),
        ((1, 3), (3, 4), True),
        ((3, 1), (3, 4), False),  # rows overlap
        ((8, 2), (3, 4), False),
        ((5, 2), (1, 4), True),
        ((5, 1), (1, 4), True),
        ((1, 5), (7, 1), True),
    ],
)
def test_matrices_that_blas_reads(steps: tuple[int, int], extents: tuple[int, int], dense: bool) -> None:
    assert GEMM.takes_matrices(steps, extents) == dense
    assert Accepts().takes_matrices(steps, extents)


def test_what_is_computed_again_is_a_matter_of_cost() -> None:
    dear = Target(cost=Cost(work={"exp": 1e6}))
    cheap = Target(cost=Cost(work={"exp": 0.1}))
    stored = [len(fused(SHARED, target).buffers) for target in (dear, cheap)]
    assert stored[0] > stored[1]


def test_costs_answer_by_what_is_close() -> None:
    cost = Cost(memory_bandwidth=1.0, cache_bandwidth=10.0, close_bytes=1000, flops=2.0)
    assert cost.transfer_ns(1000) == 100 and cost.transfer_ns(1001) == 1001
    assert cost.transfer_ns(600, share=2) == 600
    assert cost.loop_ns(400, 1000, 1000) == 200 and cost.loop_ns(4, 1000, 1000) == 100
    assert cost.loop_ns(4, 2000, 500) == 200 and cost.loop_ns(4, 2000, 1001) == 2000
    assert cost.pays_to_recompute(200, 500) and not cost.pays_to_recompute(201, 500)
    assert cost.waits_for_lines(1001) and not cost.waits_for_lines(1000)


def test_what_a_target_cannot_run_is_found() -> None:
    program = fused(PRODUCT)
    assert verify_for(program, DEFAULT) is program
    with pytest.raises(VerificationError, match="a plotter has no library call gemm; it has sort"):
        verify_for(program, Target("a plotter", calls={"sort": Accepts()}))
    loops = fused(PRODUCT, with_gemm(None))
    with pytest.raises(VerificationError, match=r"k0_add: the loop over \w+ is vector; a plotter has serial, unroll"):
        verify_for(loops, Target("a plotter", kinds=frozenset(("serial", "unroll"))))
    verify_for(loops, with_gemm(None))
    blocks = KernelProgram({}, (), (), {}, {}, (parse_kernel("kernel k(y: f64[8]) { for i in 0:8 block { y[i] = 0.0 } }"),))
    with pytest.raises(VerificationError, match="k: the loop over i is block; cpu has parallel, serial, unroll, vector"):
        verify_for(blocks, DEFAULT)
    verify_for(blocks, Target("a device", kinds=frozenset(("serial", "block", "thread"))))


@pytest.mark.parametrize("alignment", [64, 256])
def test_buffers_are_aligned_as_the_target_wants(alignment: int) -> None:
    text = (
        "graph(x: f64[30,40], y: f64[40,20]) {\n"
        "  p: f64[30,20] = dot_general x y {batch=((), ()), contract=((1,), (0,))}\n"
        "  q: f64[20,30] = transpose p {perm=(1, 0)}\n"
        "  r: f64[30,30] = dot_general p q {batch=((), ()), contract=((1,), (0,))}\n"
        "  s: f64[30,20] = dot_general r p {batch=((), ()), contract=((1,), (0,))}\n"
        "  return s\n}"
    )
    program = plan(fused(text), Limits(alignment=alignment).alignment)
    offsets = [place.offset for place in program.places.values() if place.space == "arena"]
    assert len(offsets) > 1 and max(offsets) > 0
    assert all(offset % alignment == 0 for offset in offsets) and program.arena_size % alignment == 0
