"""The memory plan: safe on drawn programs, by a checker of its own, and as small as can be on chains and trees."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitml
from jitml.codegen.interpreter import run
from jitml.fusion.fuse import DEFAULT
from jitml.ir.text.parser import parse
from jitml.kernels.interpret import interpret
from jitml.kernels.ir import Kernel
from jitml.kernels.program import KernelProgram, Step
from jitml.kernels.text.program_parser import parse_program
from jitml.memory.plan import plan
from jitml.memory.program import Program
from jitml.memory.report import describe, show
from support.fused import fuse

N = 16

# What a kernel of two operands may do to its result `o`; the sizes of `a` and `b` are N.
BODIES = {
    "pointwise": "for i in 0:16 vector { o[i] = a[i] + b[i] }",
    "reverse": "for i in 0:16 { o[i] = a[15 - i] - b[i] }",
    "sum": "cell s: f64 = 0.0; for i in 0:16 vector { s add= a[i] }; for i in 0:16 vector { o[i] = s * b[i] }",
    "late": "for i in 0:16 { o[i] = b[i] }; for i in 0:16 { o[i] = o[i] + a[i] }",
    "shift": "for i in 0:15 { o[i] = a[i + 1] }; o[15] = b[0]",
    "first": "for i in 0:16 { o[i] = a[i] * b[0] }",
    "checked": "for i in 0:16 { check a[i] == a[i], ValueError, 'nan' }; for i in 0:16 { o[i] = a[i] * b[i] }",
}
UPDATES = (
    "for i in 2:5 {{ {o}[i] = {a}[i] * 3.0 }}",
    "for i in 2:5 {{ {o}[i] = {a}[i + 1] }}",
    "for i in 2:5 {{ {o}[i] = {b}[i] * 3.0 }}",
    "{o}[3] = {a}[0] - {b}[0]",
)


@st.composite
def programs(draw: st.DrawFn) -> KernelProgram:
    """Kernels over vectors of one size: pointwise ones, and ones that read ahead, behind, all, or one for all."""
    inputs = [f"x{k}" for k in range(draw(st.integers(1, 3)))]
    known, steps = list(inputs), []
    for n in range(draw(st.integers(1, 7))):
        a, b, o = draw(st.sampled_from(known)), draw(st.sampled_from(known)), f"t{n}"
        kind = draw(st.sampled_from([*BODIES, "update", "copy"]))
        known.append(o)
        if kind == "copy":
            steps.append(f"copy({a}) -> ({o})")
            continue
        if kind == "update":
            params, marks = list(dict.fromkeys([a, b, o])), f" updates({o}={a})"
            body = draw(st.sampled_from(UPDATES)).format(o=o, a=a, b=b)
        else:
            params, marks, body = list(dict.fromkeys([a, b, o])), "", BODIES[kind]
            for old, new in (("a[", f"{a}["), ("b[", f"{b}["), ("o[", f"{o}[")):
                body = body.replace(f" {old}", f" {new}").replace(f"({old}", f"({new}")
        steps.append(f"kernel k{n}({', '.join(f'{p}: f64[16]' for p in params)}){marks} {{ {body} }}")
    made = known[len(inputs) :]
    outputs = draw(st.lists(st.sampled_from(made), min_size=1, max_size=3, unique=True))
    targets = draw(st.permutations(inputs))
    aliases = dict(zip(outputs, targets[: draw(st.integers(0, len(targets)))]))
    buffers = "; ".join(f"buffer {name}: f64[16]" for name in known)
    alias_text = "; ".join(f"alias {o} = {i}" for o, i in aliases.items())
    return parse_program(
        f"program({', '.join(inputs)}) -> ({', '.join(outputs)}) {{ {buffers}; {alias_text}; {'; '.join(steps)} }}"
    )


def run_with_memory_for_all(program: KernelProgram, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The program's outputs with an array of its own for every buffer."""
    arrays = {name: np.full(b.shape, np.nan) for name, b in program.buffers.items()}
    arrays |= {name: x.copy() for name, x in zip(program.inputs, inputs)}
    for step in program.steps:
        copies = step.updates.items() if isinstance(step, Kernel) else [(step.writes[0], step.reads[0])]
        for written, read in copies:
            arrays[written][...] = arrays[read]
        if isinstance(step, Kernel):
            interpret(step, arrays)
    return [arrays[name] for name in program.outputs]


@settings(max_examples=120, deadline=None)
@given(programs())
def test_planned_memory_changes_no_result(program: KernelProgram) -> None:
    inputs = [np.linspace(1, 2, N) * (k + 1) for k in range(len(program.inputs))]
    expected = run_with_memory_for_all(program, inputs)
    given_arrays = [x.copy() for x in inputs]
    got = run(plan(program), given_arrays)
    for e, g in zip(expected, got, strict=True):
        np.testing.assert_array_equal(g, e)
    changed = {
        program.inputs.index(name): k for k, name in ((k, program.aliases.get(o)) for k, o in enumerate(program.outputs)) if name
    }
    for k, (before, after) in enumerate(zip(inputs, given_arrays)):
        np.testing.assert_array_equal(after, expected[changed[k]] if k in changed else before)


def occupied(program: Program, name: str) -> tuple[object, ...]:
    place = program.places[name]
    return (place.space, place.index, place.offset)


def with_needless_copies(program: KernelProgram, planned: Program) -> list[Step]:
    """The planned steps, and where they were the copies that became copies onto themselves.

    What a kernel's result is written back by follows the kernel at once.
    """
    steps, rest = [], list(planned.kernels.steps)
    names = {step.name for step in program.steps}
    for step in program.steps:
        found = [k for k, s in enumerate(rest) if s is step or (isinstance(step, Kernel) and s.name == step.name)]
        if found:
            steps += rest[: found[0] + 1]
            rest = rest[found[0] + 1 :]
            while rest and isinstance(rest[0], Kernel) and rest[0].name not in names:
                steps.append(rest.pop(0))
        else:
            steps.append(step)
    return steps + rest


@settings(max_examples=120, deadline=None)
@given(programs())
def test_no_two_live_buffers_overlap(program: KernelProgram) -> None:
    """Backwards over the steps: what is live after a step, and what it reads, lies apart."""
    planned = plan(program)
    in_place = {(written, read) for written, read, _ in planned.report.in_place}
    live = set(program.outputs) - set(program.aliases)
    written_before: set[str] = set(program.inputs)
    steps = with_needless_copies(program, planned)
    first_writer: dict[str, int] = {}
    for n, step in enumerate(steps):
        for name in step.writes:
            first_writer.setdefault(name, n)
    live |= {o for o in program.aliases if not any(s.writes == (program.aliases[o],) for s in steps)}
    for n in range(len(steps) - 1, -1, -1):
        step = steps[n]
        reads = set(step.reads) | (set(step.updates.values()) if isinstance(step, Kernel) else set())
        after = live | set(step.writes)
        live = {name for name in live | reads if first_writer.get(name, -1) < n or name in written_before}
        for group in (after, live):
            spots = [occupied(planned, name) for name in group]
            assert len(set(spots)) == len(spots), f"step {n}: {group} overlap"
        for written in step.writes:
            for read in reads - {written}:
                shared = occupied(planned, written) == occupied(planned, read)
                assert not shared or (written, read) in in_place
    # All buffers have one size here, so two places overlap exactly if they are equal.
    assert all(p.offset % 128 == 0 for p in planned.places.values())


@settings(max_examples=120, deadline=None)
@given(programs())
def test_arguments_change_only_after_the_last_check(program: KernelProgram) -> None:
    planned = plan(program)
    touched = False
    for step in planned.kernels.steps:
        if isinstance(step, Kernel) and "check" in step.name + str(step.body).lower():
            assert not touched
            assert not any(planned.places[name].space == "input" for name in step.writes)
        touched = touched or any(planned.places[name].space == "input" for name in step.writes)


def chain(length: int) -> str:
    names = ["x", *(f"t{k}" for k in range(length)), "y"]
    buffers = "; ".join(f"buffer {n}: f64[16]" for n in names)
    steps = "; ".join(
        f"kernel k{k}({a}: f64[16], {b}: f64[16]) {{ for i in 0:16 vector {{ {b}[i] = exp({a}[i]) }} }}"
        for k, (a, b) in enumerate(pairwise(names))
    )
    return f"program(x) -> (y) {{ {buffers}; {steps} }}"


def test_a_pointwise_chain_runs_in_the_output() -> None:
    planned = plan(parse_program(chain(5)))
    assert planned.arena_size == 0
    assert {planned.places[f"t{k}"].space for k in range(5)} == {"output"}


def test_a_chain_that_cannot_run_in_place_needs_two_buffers() -> None:
    text = chain(6).replace("exp(", "exp(").replace("[i])", "[15 - i])")
    planned = plan(parse_program(text))
    assert planned.arena_size == planned.report.lower_bound == 2 * 128


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_arena_equals_the_peak_on_trees(depth: int) -> None:
    """Sums of reversed leaves, evaluated depth first: sizes grow towards the leaves."""
    buffers, steps = ["x: f64[64]", "out: f64[64]"], []

    def build(level: int, name: str) -> None:
        buffers.append(f"{name}: f64[{8 * (level + 1)}]")
        n = 8 * (level + 1)
        if level == depth:
            steps.append(f"kernel k{name}(x: f64[64], {name}: f64[{n}]) {{ for i in 0:{n} {{ {name}[i] = x[{n - 1} - i] }} }}")
            return
        build(level + 1, f"{name}l")
        build(level + 1, f"{name}r")
        m = 8 * (level + 2)
        steps.append(
            f"kernel k{name}({name}l: f64[{m}], {name}r: f64[{m}], {name}: f64[{n}])"
            f" {{ for i in 0:{n} {{ {name}[i] = {name}l[{m - 1} - i] + {name}r[i] }} }}"
        )

    build(0, "t")
    steps.append("kernel last(t: f64[8], out: f64[64]) { for i in 0:64 { out[i] = t[i // 8] } }")
    planned = plan(parse_program(f"program(x) -> (out) {{ {'; '.join('buffer ' + b for b in buffers)}; {'; '.join(steps)} }}"))
    assert planned.arena_size == planned.report.lower_bound


def test_a_mutated_argument_is_updated_where_it_lies() -> None:
    text = """program(x) -> (y) { buffer x: f64[16]; buffer y: f64[16]; alias y = x
      kernel k(x: f64[16], y: f64[16]) { for i in 0:16 vector { y[i] = x[i] + 1.0 } } }"""
    planned = plan(parse_program(text))
    assert occupied(planned, "y") == occupied(planned, "x")
    assert planned.report.in_place == (("y", "x", 0),)
    assert planned.report.copies == ()


def test_a_check_keeps_the_result_out_of_the_callers_array_until_it_has_passed() -> None:
    text = """program(x) -> (y) { buffer x: f64[16]; buffer y: f64[16]; alias y = x
      kernel k(x: f64[16], y: f64[16]) { for i in 0:16 { check x[i] > 0.0, ValueError, 'sign'; y[i] = x[i] + 1.0 } } }"""
    planned = plan(parse_program(text))
    assert planned.places["y"].space == "arena"
    assert planned.report.copies == ("y",)
    x = np.array([1.0] * 15 + [-1.0])
    with pytest.raises(ValueError, match="sign"):
        run(planned, [x])
    assert x.tolist() == [1.0] * 15 + [-1.0]
    x = np.ones(16)
    (y,) = run(planned, [x])
    assert y is x
    assert x.tolist() == [2.0] * 16


def test_a_base_is_not_copied_over_an_argument_that_is_still_to_be_read() -> None:
    text = """program(x) -> (y) { buffer x: f64[4]; buffer t: f64[4]; buffer y: f64[4]; alias y = x
      kernel a(t: f64[4]) { for i in 0:4 { t[i] = 7.0 } }
      kernel b(x: f64[4], y: f64[4]) updates(y=t) { for i in 0:3 { y[i] = x[i] } } }"""
    x = np.arange(4.0)
    run(plan(parse_program(text)), [x])
    assert x.tolist() == [0.0, 1.0, 2.0, 7.0]


STENCIL = """program(x) -> (y) { buffer x: f64[16]; buffer y: f64[16]; alias y = x
  kernel k(x: f64[16], y: f64[16]) updates(y=x) {
    for i in 1:15 vector { let t: f64 = x[i - 1] + x[i + 1]; y[i] = t } } }"""


def test_a_slice_update_that_reads_neighbours_copies_back_what_it_changed() -> None:
    planned = plan(parse_program(STENCIL))
    assert [step.name for step in planned.kernels.steps] == ["k", "k_back"]
    assert planned.report.copies == ("y",)
    x = np.arange(16.0)
    run(planned, [x])
    assert x.tolist() == [0.0, *(2.0 * i for i in range(1, 15)), 15.0]


def test_a_slice_update_whose_result_is_read_again_copies_back_at_once() -> None:
    text = STENCIL.replace("(y) {", "(y, z) { buffer z: f64[16];", 1).rstrip("}") + (
        "kernel l(y: f64[16], z: f64[16]) { for i in 0:16 { z[i] = y[i] } } }"
    )
    planned = plan(parse_program(text))
    assert [step.name for step in planned.kernels.steps] == ["k", "k_back", "l"]
    (_, z) = run(planned, [np.ones(16)])
    assert z.tolist() == [1.0, *[2.0] * 14, 1.0]


def test_two_arguments_swapped() -> None:
    text = """program(x, y) -> (p, q) { buffer x: f64[4]; buffer y: f64[4]; buffer p: f64[4]; buffer q: f64[4]
      alias p = x; alias q = y
      kernel a(y: f64[4], p: f64[4]) { for i in 0:4 { p[i] = y[i] } }
      kernel b(x: f64[4], q: f64[4]) { for i in 0:4 { q[i] = x[i] } } }"""
    x, y = np.arange(4.0), np.ones(4)
    run(plan(parse_program(text)), [x, y])
    assert (x.tolist(), y.tolist()) == ([1.0] * 4, [0.0, 1.0, 2.0, 3.0])


def test_strided_and_reversed_inputs_are_written_through() -> None:
    text = """program(x) -> (y) { buffer x: f64[4] strides(-2); buffer y: f64[4] strides(-2); alias y = x
      kernel k(x: f64[4] strides(-2), y: f64[4] strides(-2)) { for i in 0:4 { y[i] = x[3 - i] } } }"""
    planned = plan(parse_program(text))
    memory = np.arange(8.0)
    run(planned, [memory[::-2]])
    assert memory.tolist() == [0, 7, 2, 5, 4, 3, 6, 1]
    assert planned.report.copies == ("y",)


def test_the_report_reads_well_and_the_text_parses() -> None:
    planned = plan(parse_program(chain(1).replace("exp(t0[i])", "t0[15 - i]")))
    assert describe(planned) == "arena 128 B; without reuse 128 B\n  that is the peak of live bytes: no plan could need less"
    assert "buffer t0: f64[16]  # arena 0" in show(planned)
    assert parse_program(show(planned)) == planned.kernels


def test_what_a_write_at_the_end_reads_lives_until_then() -> None:
    """How much is written back was overwritten by the result of the call in between: memory beside the array was written."""
    special = pytest.importorskip("scipy.special")

    @jitml.jit
    def f(x: np.ndarray, order: float) -> np.float64:
        np.add(x[1:], x[:-1], out=x[:-1])
        return special.jv(order, 2.0)  # type: ignore[no-any-return]

    for n in (12, 13, 14):
        memory = np.full(n + 64, -1)
        x = memory[:n]
        x[:] = np.arange(n)
        f(x, n + 0.5)
        np.testing.assert_array_equal(memory[:n], [*(2 * np.arange(n - 1) + 1), n - 1])
        assert (memory[n:] == -1).all()
    assert len(f.variants) == 2


def test_nothing_larger_lies_in_an_output_of_its_true_size() -> None:
    """A step writes all of what may be needed, others what is there; the output has room for the latter alone."""
    graph = parse(
        """graph(a: i64[], b: f64[n0]) {
          bind a {sym=n0[0:640]}
          c: i64[] = full {dtype=i64, shape=(), value=0}
          d: i64[] = full {dtype=i64, shape=(), value=2}
          e: i64[] = minimum d a
          bind e {sym=n1[0:2]}
          f: f64[n1] = full {dtype=f64, shape=(n1,), value=1.0}
          g: f64[n0] = full {dtype=f64, shape=(n0,), value=1.0}
          h: f64[640] = full {dtype=f64, shape=(640,), value=0.0}
          i: f64[640] = dynamic_update_slice h g c {step=(1,)}
          j: f64[n0] = dynamic_slice i c {sizes=(n0,), step=(1,)}
          k: f64[n0] = mul j b
          l: f64[n1] = dynamic_slice k c {sizes=(n1,), step=(1,)}
          m: f64[n1] = add l f
          n: f64[n0] = dynamic_update_slice k m c {step=(1,)}
          return n
        }"""
    )
    program = plan(fuse(graph, aliases={}, strides={}, target=DEFAULT))
    (output,) = program.kernels.outputs
    there = [name for name, place in program.places.items() if place == program.places[output]]
    assert {program.kernels.extents.get(name) for name in there} == {program.kernels.extents[output]}
