"""Schedule primitives: what they refuse, and the text form of schedules; `tests/golden/fusion/schedules.txt` has what they do."""

from __future__ import annotations

import pickle

import pytest

from jitml.errors import ScheduleError
from jitml.fusion.schedule.tree import Misfit
from jitml.kernels.schedule import Schedule, parse_primitive, parse_schedule, show_primitive
from support.loop_trees import scheduled

POINTS = "for i0 in 0:100 { for i1 in 0:50 { point store y } }"
ROWS = "for i0 in 0:64 { cell s0: f64 = 0.0; for i1 in 0:100 { point s0 add= %s0 }; point store y }"
MATRICES = f"for i0 in 0:9 {{ {ROWS.replace('i1', 'i2').replace('i0', 'i1')} }}"
PRODUCT = "cell s0: f64 = 1.0; for i0 in 0:9 { for i1 in 0:9 { point s0 mul= %s0 } }; point store y"


@pytest.mark.parametrize(
    ("tree", "primitives", "reason"),
    [
        (POINTS, "vector i7", "no loop is called i7; the loops are i0, i1"),
        (POINTS, "vector i0.1", "no loop is called i0.1; the loops are i0, i1"),
        (POINTS, "parallel i1", "i1 does not stand outermost, and only such loops are shared among threads"),
        (POINTS, "vector i0; vector i1", "i1 cannot run in lanes inside i0, which does"),
        (POINTS, "vector i0; split i0 8 -> a", "i0 is vector already"),
        (POINTS, "split i0 8 -> a; vector a", "the limits of i0 depend on a, so that lanes would run it in their own ways"),
        (POINTS, "split i0 8 -> i1", "the name i1 is taken"),
        (POINTS, "split i0 8 -> a; reorder i0 a", "the limits of i0 depend on a loop that would stand inside it"),
        (POINTS, "parallel i0; reorder i1 i0", "i0 does not stand outermost, and only such loops are shared among threads"),
        (POINTS, "fuse i1 i0 -> f", "i0 is not all that i1 holds"),
        (POINTS, "rfactor i1 8 -> a", "i1 adds nothing up"),
        (POINTS, "jam i0 1", "i0 is serial, with steps of 1: 1 of them do not run side by side"),
        (ROWS, "jam i0 2; split i0 8 -> a", "i0 runs side by side already"),
        (ROWS, "split i0 8 -> a; jam i0 2; vector i0", "i0 is vector, and does not run side by side as well"),
        (
            MATRICES,
            "vector i0; rfactor i2 8 -> a across i1",
            "i0 has scratch of its own, of which there is one and not one for each lane",
        ),
        (
            MATRICES,
            "jam i0 2; rfactor i2 8 -> a across i1",
            "i0 has scratch of its own, which iterations side by side would share",
        ),
        (ROWS, "reorder i1 i0", "i1 i0 are not loops that hold nothing but each other"),
        (ROWS, "split i0 8 -> a; stage cells at i0", "i0 is no loop over pieces of another, which is all that it holds"),
        (ROWS, "rfactor i1 8 -> a in registers", "partial results lie in memory, or across a loop, not in registers"),
        (ROWS, "rfactor i0 8 -> a in memory", "i0 is not the one pass over a row"),
        (POINTS, "bind i1 block", "i1 does not stand outermost, and blocks of threads take only such loops"),
        (POINTS, "bind i0 block; bind i1 block; bind i0 thread", "i0 is block already"),
        (POINTS, "bind i0 thread; bind i1 thread", "threads of a block cannot take i1 inside i0, which is thread"),
        (POINTS, "bind i0 warp", "loops are bound to a block or a thread, not to warp"),
        (POINTS, "parallel i0; bind i1 thread", "threads of a block cannot take i1 inside i0, which is parallel"),
        (PRODUCT, "bind i0 block", "all iterations of i0 add to s0, which blocks do not share"),
        (PRODUCT, "bind i1 thread", "the product s0 is taken in the order of i1"),
        (PRODUCT, "reorder i1 i0", "the product s0 is taken in the order of i0"),
        (PRODUCT, "rfactor i0 8 -> a in memory", "the product s0 is taken in the order of i0"),
        (PRODUCT, "parallel i0", "all iterations of i0 add to s0, which threads do not share"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(tree: str, primitives: str, reason: str) -> None:
    with pytest.raises(Misfit) as refusal:
        scheduled(f"{tree} apply {primitives}")
    assert refusal.value.message == reason


def test_a_schedule_prints_parses_hashes_and_pickles() -> None:
    text = "schedule {\n  split i0 64 -> io\n  rfactor i1 16 -> i1b across i0\n  parallel io grain 4\n  stage %3 in row\n}"
    schedule = parse_schedule(text)
    assert str(schedule) == text
    assert {schedule: 1}[pickle.loads(pickle.dumps(schedule))] == 1
    boxes = Schedule((schedule.boxes[0], (parse_primitive("vector i0"),)))
    assert parse_schedule(str(boxes)) == boxes


@pytest.mark.parametrize(
    "text",
    ["parallel i0", "parallel i0 grain 3", "rfactor j", "rfactor j 8 -> a in memory", "stage cells at ib", "reorder a b.1 c"],
)
def test_a_primitive_is_read_as_it_is_written(text: str) -> None:
    assert show_primitive(parse_primitive(text)) == text


def test_what_is_no_schedule_says_how_it_is_written() -> None:
    with pytest.raises(ScheduleError, match="no primitive is called 'tile'; there are split, fuse, reorder, parallel"):
        parse_schedule("tile i0 i1")
    with pytest.raises(ScheduleError, match="cannot read 'split i0 by 3': it is written 'split LOOP SIZE -> OUTER'"):
        parse_schedule("split i0 by 3")
    with pytest.raises(ScheduleError, match="'vector i0' stands in no box"):
        parse_schedule("box 0 { vector i1 } vector i0")
