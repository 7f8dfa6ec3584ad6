"""The table of object models: which model has values of a class.  A new kind of value is a class of models, and a row here."""

from __future__ import annotations

import os
from types import MethodType, ModuleType
from typing import Final

import numpy as np

from jitml.trace.carried.outer_lists import OpenList
from jitml.trace.hooks.models.model import Model
from jitml.trace.hooks.models.modules import ModuleModel
from jitml.trace.hooks.models.objects import EnvironModel, IndexTrickModel, MethodModel, ObjectModel, SuperModel, TextModel
from jitml.trace.hooks.models.opaque import OpaqueModel
from jitml.trace.hooks.models.tracers import (
    ArrayModel,
    ConcreteArrayModel,
    PythonNumberModel,
    RangeModel,
    ScalarModel,
    StandInModel,
)
from jitml.trace.host_calls.generators import TracedGenerator
from jitml.trace.lists.sequences import Range
from jitml.trace.values.boxing import TracedArray, TracedScalar
from jitml.trace.values.numbers import TracedNumber
from jitml.trace.values.opaque_objects import OpaqueObject

_OBJECTS: Final = ObjectModel()
_OPAQUE: Final = OpaqueModel()
_KINDS: dict[type, Model] = {
    TracedArray: ArrayModel(),
    TracedScalar: ScalarModel(),
    TracedNumber: PythonNumberModel(),
    Range: RangeModel(),
    np.ndarray: ConcreteArrayModel(),
    TracedGenerator: StandInModel(),
    OpenList: StandInModel(),
    ModuleType: ModuleModel(),
    MethodType: MethodModel(),
    super: SuperModel(),
    str: TextModel(),
    type(os.environ): EnvironModel(),
    **{type(x): IndexTrickModel() for x in (np.r_, np.c_, np.mgrid, np.ogrid)},
}


class _Table(dict[type, Model]):
    def __missing__(self, kind: type) -> Model:
        return _OPAQUE if issubclass(kind, OpaqueObject) else _OBJECTS


MODELS: Final = _Table(_KINDS)
