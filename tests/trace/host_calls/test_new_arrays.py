"""Arrays that a library gives while the function is traced, and nobody else holds, are new at each call."""

from __future__ import annotations

import array
import copy
import functools
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.spatial.transform

import jitml
from jitml.errors import UncompiledWarning

pytestmark = pytest.mark.filterwarnings("error::jitml.errors.UncompiledWarning")


class Model:
    def __init__(self) -> None:
        self.w, self.parts, self.table = np.ones(2), [np.zeros(2)], {"k": np.zeros(2)}


class Made(Model):
    def __reduce__(self) -> Any:
        return Made, ()


class Stating(Model):
    def __getstate__(self) -> Any:
        return dict(self.__dict__)


MODEL, MADE, STATING = Model(), Made(), Stating()
HELD = np.zeros(2)


@functools.lru_cache
def held() -> Any:
    return HELD


def called(x: Any) -> Any:
    h = scipy.linalg.hilbert(3)
    h += x
    return h


def in_a_loop(x: Any) -> Any:
    total = np.zeros(4)
    for v in x:
        w = scipy.signal.get_window("hann", 4)
        w += v
        total += w
    return total


def under_a_condition(x: Any) -> Any:
    w = scipy.signal.get_window("hann", 4)
    if x[0] > 0:
        w *= x[1]
    return w


def in_a_tuple(x: Any) -> Any:
    b, a = scipy.signal.butter(2, 0.2)
    b += 1
    a[0] += 1
    return b, a


def in_a_dict(x: Any) -> Any:
    found = scipy.optimize.linprog([1, 1], bounds=[(0, 1), (0, 1)])
    found["x"] += x[0]
    return found.x


def unpickled(x: Any) -> Any:
    model = pickle.loads(pickle.dumps(MODEL))
    model.w += x[0]
    for part in model.parts:
        part += 1
    model.table["k"][1] += 2
    return model.w, model.parts, model.table


def copied(x: Any) -> Any:
    models = [copy.deepcopy(MADE), copy.deepcopy(STATING), copy.copy(MADE)]
    for model in models:
        model.w += x[0]
        model.table["k"] += 1
    return [model.w for model in models], models[0].table, models[2].parts


def shared(x: Any) -> Any:
    model = copy.copy(STATING)
    model.w += 1
    a = held()
    a += x[0]
    return model.w, a


def only_read(x: Any) -> Any:
    return scipy.linalg.hilbert(3) @ x, scipy.linalg.hilbert(2)


LOOSE = [pytest.param(f, marks=pytest.mark.loose) for f in (in_a_dict, unpickled, copied, shared)]


@pytest.mark.parametrize("f", [called, in_a_loop, under_a_condition, in_a_tuple, only_read, *LOOSE])
def test_new_at_each_call(f: Callable[[Any], Any]) -> None:
    found = []
    for function in (f, jitml.jit(f, verify="never")):
        STATING.w[...], HELD[...] = 1.0, 0.0
        results = [function(np.arange(3.0) + call) for call in range(3)]
        arrays = [x for result in results for x in (result if isinstance(result, tuple) else (result,))]
        arrays = [x for x in arrays if isinstance(x, np.ndarray)]
        pairs = [(n, k) for n, a in enumerate(arrays) for k, b in enumerate(arrays[:n]) if np.shares_memory(a, b)]
        found.append((results, pairs, STATING.w.tolist(), HELD.tolist()))
    assert repr(found[0][1:]) == repr(found[1][1:])
    np.testing.assert_equal(*([repr(np.round(x, 9)) if isinstance(x, np.ndarray) else repr(x) for x in one[0]] for one in found))


def _with_two_names(x: Any) -> Any:
    b, a = scipy.signal.butter(2, 0.2)
    other = b
    b[0] = x[0]
    return other * 2, a @ other


def _changed_in_a_branch(x: Any) -> Any:
    b, _ = scipy.signal.butter(2, 0.2)
    if x[0] > 0:
        b += 1
    return b


def _changed_in_a_loop(x: Any) -> Any:
    b, _ = scipy.signal.butter(2, 0.2)
    total = 0.0
    for v in x:
        b += v
        total += b[0]
    return total


@pytest.mark.parametrize("f", [_with_two_names, _changed_in_a_branch, _changed_in_a_loop])
def test_unpacked(f: Callable[[Any], Any]) -> None:
    compiled = jitml.jit(f, verify="never")
    for first in (-1.0, 0.0, 1.0, -2.0):
        x = np.arange(3.0) + first
        got, expected = ([*y] if isinstance(y, tuple) else [y] for y in (compiled(x), f(x)))
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def _of_lent_memory(x: Any) -> Any:
    m = scipy.spatial.transform.Rotation.from_euler("z", 0.5).as_matrix()
    if x[0] > 0:
        m[...] = m * 2
    return m, m @ x


BUFFER = array.array("d", [1.0, 2.0, 3.0])


def _of_a_buffer(x: Any) -> Any:
    a = np.frombuffer(bytearray(24))
    a[:] = x
    return a


def _of_one_twice(x: Any) -> Any:
    b = bytearray(24)
    a, c = np.frombuffer(b), np.frombuffer(b).reshape(3, 1)
    a[0] = x[0]
    return c * x


def _of_one_from_outside(x: Any) -> Any:
    a = np.frombuffer(BUFFER)
    if x[0] > 3:
        a[0] = x[0]
    return a, a * x, BUFFER[0]


@pytest.mark.parametrize("f", [_of_a_buffer, _of_one_twice, pytest.param(_of_one_from_outside, marks=pytest.mark.loose)])
def test_memory_of_buffers(f: Callable[[Any], Any]) -> None:
    results = []
    for function in (f, jitml.jit(f, verify="never")):
        results.append([])
        for first, k in ((1.0, 1.0), (1.0, 2.0), (7.0, 2.0), (7.0, 4.0)):
            BUFFER[0] = first
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UncompiledWarning)  # it is not written: such a call runs as Python
                results[-1].append(function(np.ones(3) * k))
    assert repr(results[0]) == repr(results[1])


@pytest.mark.loose
def test_what_is_written_into_memory_of_others_does_not_stay() -> None:
    compiled = jitml.jit(_of_lent_memory, verify="never")
    for first in (1.0, -2.0, 1.0, 2.0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UncompiledWarning)  # it is not written: such a call runs as Python
            found = compiled(np.ones(3) * first)
        for a, b in zip(found, _of_lent_memory(np.ones(3) * first)):
            np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("give", [np.sum, np.max, np.add.reduce, lambda table: np.take(table, 0)])
def test_a_container_that_numpy_gives_back_is_refused(give: Any) -> None:
    """NumPy takes a dict for one object, and its sum is the dict itself: the program's was another one."""

    def change_through_sum(x: Any) -> Any:
        table = {0: [x.max(), 1]}
        give(table)[0][1] = 7
        return table

    with pytest.raises(jitml.UnsupportedError):
        jitml.jit(change_through_sum, verify="never")(np.arange(3.0))
