"""What a function makes and lets code that is not converted change is as in Python, in loops and branches too, at every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.trace.effects import inside_classes, inside_containers, inside_programs

import jitml

Array = np.ndarray[Any, Any]

PROGRAMS: list[Callable[[Array], Any]] = [*inside_programs.PROGRAMS, *inside_containers.PROGRAMS, *inside_classes.PROGRAMS]

OF_SCIPY = {"sobol", "halton", "sobol_forwards_in_branch"}  # whose objects are breaks
MAKE_CLASSES = {
    *("breadth_first_by_object", "callable_object", "list_of_class", "dict_of_class", "class_by_type", "class_by_make_dataclass"),
    *("class_by_namedtuple", "class_attribute_counts", "class_attribute_under_condition", "class_of_classmethod"),
    *("dataclass_inside", "dataclass_with_slots", "subclass_inside", "class_with_metaclass", "array_of_class"),
    *("class_returned_by_helper", "class_inside_class", "class_in_loop", "cached_property_inside", "enum_inside"),
    "dispatch_inside",
}
OF_PROCESS = {"decimal_context", "decimal_flags_in_branch", "random_numbers_of_its_own", "lock_under_condition"}
LEFT = {"cached_inner_of_branches", "closure_counts", "stack_of_contexts"}  # with a `with`, a nonlocal name, a cached property
LOOSE = OF_SCIPY | MAKE_CLASSES | OF_PROCESS | LEFT


@pytest.mark.loose("namespace_filled_in_loop")
@pytest.mark.parametrize(
    "f", [pytest.param(f, id=f.__name__, marks=pytest.mark.loose if f.__name__ in LOOSE else ()) for f in PROGRAMS]
)
def test_as_in_python(f: Callable[[Array], Any]) -> None:
    compiled = jitml.jit(f)
    for x in [np.array([-1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0, 4.0]), np.array([-1.0, 2.0, 3.0, 5.0])]:
        np.testing.assert_array_equal(np.asarray(compiled(x)), np.asarray(f(x)))
