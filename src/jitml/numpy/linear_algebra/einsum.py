"""np.einsum: the subscripts read, every operand brought to distinct summed-out labels, then products pair by pair.

Operands are multiplied from left to right; a label is summed as soon as no later operand and no result needs it.
"""

from __future__ import annotations

from contextlib import nullcontext
from string import ascii_lowercase
from typing import Any

import numpy as np

from jitml.errors import ShapeError
from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.types import F32, is_inexact
from jitml.numpy.arrays.reshaping import transposed
from jitml.numpy.linear_algebra.products import diagonal_values, diagonal_view, dot_values
from jitml.numpy.reductions.reductions import finish, reduce_values
from jitml.numpy.support.arguments import as_int, astype, broadcast_value, not_compiled, reshape_value, value_of
from jitml.numpy.support.versions import dot_warns
from jitml.records import dataclass
from jitml.trace.record.recording import user_source
from jitml.trace.symbolic.broadcasting import common_sizes, fitted, insist_equal
from jitml.trace.values.boxing import TracedArray, named_order
from jitml.trace.values.python_arithmetic import unheard
from jitml.trace.values.registry import implements


@dataclass(frozen=True, slots=True)
class LabelledTerm:
    """A value with a label for each axis."""

    value: Value
    labels: str


def parse_subscripts(subscripts: str, ndims: list[int]) -> tuple[list[str], str]:
    """Labels of each operand and of the result; axes of an ellipsis get labels of their own.

    Raises:
        ValueError: the subscripts do not fit the operands (NumPy's messages where they are short).

    >>> parse_subscripts("...ij,jk", [3, 2])
    (['Aij', 'jk'], 'Aik')
    """
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(ndims):
        raise ValueError(f"einsum: {len(inputs)} subscripts for {len(ndims)} operands")
    spare = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in text]
    longest = max((n - len(i.replace("...", "")) for i, n in zip(inputs, ndims) if "..." in i), default=0)
    hidden = "".join(spare[:longest])
    expanded = []
    for labels, ndim in zip(inputs, ndims):
        own = ndim - len(labels.replace("...", ""))
        if own < 0 or ("..." not in labels and own):
            raise ValueError(f"einstein sum subscripts string {labels!r} does not fit an operand with {ndim} axes")
        expanded.append(labels.replace("...", hidden[len(hidden) - own :]))
    joined = "".join(expanded)
    if arrow:
        result = right.replace("...", hidden)
        if len(set(result)) < len(result):
            raise ValueError("einstein sum subscripts string includes an output subscript multiple times")
        if unknown := set(result) - set(joined):
            raise ValueError(
                f"einstein sum subscripts string included output subscript {min(unknown)!r} which never appeared in an input"
            )
    else:
        result = hidden + "".join(sorted(c for c in set(joined) - set(hidden) if joined.count(c) == 1))
    return expanded, result


def _with_text(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """`einsum(x, [0, 1], y, [1, 2], [0, 2])` as `einsum("ab,bc->ac", x, y)`.

    Raises:
        ValueError: a label is not from 0 to 51.
    """
    given, result = (operands[:-1], [operands[-1]]) if len(operands) % 2 else (operands, [])
    lists = [[label if label is ... else as_int(label) for label in labels] for labels in (*given[1::2], *result)]
    used = sorted({label for labels in lists for label in labels if label is not ...})
    if used and not 0 <= used[0] <= used[-1] < 52:
        raise ValueError("subscript is not within the valid range [0, 52)")
    if len(used) > len(ascii_lowercase):
        not_compiled("einsum", f"with {len(used)} labels in lists", "Write the subscripts as a string.")
    letters: dict[Any, str] = {**dict(zip(used, ascii_lowercase)), ...: "..."}
    texts = ["".join(letters[label] for label in labels) for labels in lists]
    text = ",".join(texts[: len(given) // 2]) + "".join("->" + text for text in texts[len(given) // 2 :])
    return (text, *given[::2])


@implements(np.einsum)
def einsum(
    *operands: Any, out: Any = None, dtype: Any = None, order: str = "K", casting: Any = "safe", optimize: Any = False
) -> Any:
    if not isinstance(operands[0], str):
        operands = _with_text(operands)
    named_order(order)
    values = [value_of(x) for x in operands[1:]]
    target = np.result_type(*(v.dtype for v in values)) if dtype is None else np.dtype(dtype)
    for value in values:
        if not np.can_cast(value.dtype, target, casting):
            raise TypeError(f"Iterator operand dtype could not be cast from {value.dtype!r} to {target!r}")
    # Half precision is multiplied and added in single, as by NumPy: sums of one operand alone would overflow.
    values = [astype(value, F32 if target == np.float16 else target) for value in values]
    labels, result = parse_subscripts(operands[0], [v.ndim for v in values])
    sizes = _sizes(labels, values)
    is_plain = out is None and dtype is None and len(values) == 1 and type(operands[1]) is TracedArray
    if is_plain and result and set(result) == set(labels[0]):
        return _view(operands[1], labels[0], result)
    values = [fitted(v, [sizes[label] for label in ls]) for v, ls in zip(values, labels)]
    terms = [_distinct(LabelledTerm(_without_ones(v, ls, sizes), _kept(ls, v, sizes))) for v, ls in zip(values, labels)]
    with nullcontext() if optimize and dot_warns() else unheard():  # NumPy does not look
        while len(terms) > 1:
            first, second, *rest = terms
            needed = set(result).union(*(t.labels for t in rest))
            terms = [
                _product(_summed(first, needed | set(second.labels)), _summed(second, needed | set(first.labels)), needed),
                *rest,
            ]
        last = _summed(terms[0], set(result))
        last = LabelledTerm(astype(last.value, target), last.labels)
    if not optimize and len(values) > 1 and set("".join(labels)) == set(result) and is_inexact(target):
        last = LabelledTerm(last.value + 0, last.labels)  # NumPy adds products to zeros: none of them is -0.0
    return finish(_arranged(last, result, sizes), None, out, len(result))


def _view(x: TracedArray, labels: str, result: str) -> TracedArray:
    """Axes in another order and diagonals are views, which may be written through."""
    while repeated := next((c for c in labels if labels.count(c) > 1), None):
        one = labels.index(repeated)
        two = labels.index(repeated, one + 1)
        insist_equal(x.sizes[one], x.sizes[two])
        x = diagonal_view(x, 0, one, two)
        labels = labels[:one] + labels[one + 1 : two] + labels[two + 1 :] + repeated
    return transposed(x, tuple(map(labels.index, result)))


def _sizes(labels: list[str], values: list[Value]) -> dict[str, int]:
    found: dict[str, list[int]] = {}
    for ls, value in zip(labels, values):
        for label, size in zip(ls, value.shape):
            found.setdefault(label, []).append(size)
    sizes: dict[str, int] = {}
    for label, given in found.items():
        try:
            (sizes[label],) = common_sizes(*((size,) for size in given))
        except ValueError:
            listed = " and ".join(dict.fromkeys(str(size) for size in given if size != 1))
            raise ShapeError(f"einsum: the label {label} stands for axes of {listed}", source=user_source()) from None
    return sizes


def _stretches(label: str, size: int, sizes: dict[str, int]) -> bool:
    """Whether an axis of one element stands for a longer one: it is dropped, and the others decide."""
    return size == 1 and sizes[label] != 1


def _kept(labels: str, value: Value, sizes: dict[str, int]) -> str:
    return "".join(label for label, size in zip(labels, value.shape) if not _stretches(label, size, sizes))


def _without_ones(value: Value, labels: str, sizes: dict[str, int]) -> Value:
    return reshape_value(value, [size for label, size in zip(labels, value.shape) if not _stretches(label, size, sizes)])


def _distinct(term: LabelledTerm) -> LabelledTerm:
    """Repeated labels of one operand as its diagonal."""
    value, labels = term.value, term.labels
    while repeated := next((c for c in labels if labels.count(c) > 1), None):
        one = labels.index(repeated)
        two = labels.index(repeated, one + 1)
        insist_equal(value.shape[one], value.shape[two])
        value = diagonal_values(value, 0, one, two)
        labels = labels[:one] + labels[one + 1 : two] + labels[two + 1 :] + repeated
    return LabelledTerm(value, labels)


def _summed(term: LabelledTerm, needed: set[str]) -> LabelledTerm:
    axes = tuple(n for n, label in enumerate(term.labels) if label not in needed)
    return (
        LabelledTerm(reduce_values(ops.reduce_sum, term.value, axes), "".join(c for c in term.labels if c in needed))
        if axes
        else term
    )


def _product(x: LabelledTerm, y: LabelledTerm, needed: set[str]) -> LabelledTerm:
    shared = [c for c in x.labels if c in y.labels]
    batch = [c for c in shared if c in needed]
    contracted = [c for c in shared if c not in needed]
    places = tuple((tuple(map(t.labels.index, batch)), tuple(map(t.labels.index, contracted))) for t in (x, y))
    value = dot_values(x.value, y.value, (places[0][1], places[1][1]), (places[0][0], places[1][0]))
    free = [c for t in (x, y) for c in t.labels if c not in shared]
    return LabelledTerm(value, "".join(batch + free))


def _arranged(term: LabelledTerm, result: str, sizes: dict[str, int]) -> Value:
    order = [c for c in result if c in term.labels]
    perm = tuple(map(term.labels.index, order))
    value = ops.transpose(term.value, perm=perm) if list(perm) != sorted(perm) else term.value
    # A label that every operand holds with one element only was never dropped, so what is missing is stretched.
    value = reshape_value(value, [sizes[c] if c in term.labels else 1 for c in result])
    return broadcast_value(value, [sizes[c] for c in result])
