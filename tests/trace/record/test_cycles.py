"""Dataclasses that hold each other without end (a node and its parent), and containers that hold themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import UnsupportedError


@dataclass
class Node:
    value: float
    array: Any = None
    children: list[Any] = field(default_factory=list)
    parent: Node | None = None


def chain(n: int) -> Node:
    """A node with a child, which has a child, and so on."""
    root = last = Node(1.0, np.ones(2))
    for i in range(n):
        last.children.append(Node(i + 2.0, np.ones(2) * i, parent=last))
        last = last.children[0]
    return root


def shown(node: Node, seen: dict[int, int] | None = None) -> Any:
    seen = {} if seen is None else seen
    if id(node) in seen:
        return seen[id(node)]
    seen[id(node)] = len(seen)
    array = None if node.array is None else node.array.tolist()
    parent = None if node.parent is None else shown(node.parent, seen)
    return float(node.value), array, parent, [shown(child, seen) for child in node.children]


def walks_down(node: Node, x: Any) -> Any:
    node.value += 1
    node.array += x
    return node.value * x + sum((walks_down(child, x) for child in node.children), np.zeros(2))


def walks_up(node: Node, x: Any) -> Any:
    last = node.children[-1]
    return x if last.parent is None else last.parent.value * x + last.value


def grows(node: Node, x: Any) -> Any:
    node.children.append(Node(float(x[0]), parent=node))
    node.children[0].parent = node.children[-1]
    return len(node.children)


def exchanges(node: Node, x: Any) -> Any:
    node.children, node.parent = [node.children[-1]], node.children[0]
    node.value = x.sum()
    return node.parent.parent.value if node.parent.parent is not None else x


@pytest.mark.parametrize("f", [walks_down, walks_up, grows, exchanges])
def test_dataclasses_that_hold_each_other_are_objects(f: Callable[..., Any]) -> None:
    compiled = jitml.jit(f)
    for n in (2, 1, 2, 3):
        plain, mine = chain(n), chain(n)
        for k in range(2):
            x = np.ones(2) * k
            np.testing.assert_array_equal(compiled(mine, x), f(plain, x))
            assert shown(mine) == shown(plain)
    assert compiled.variants


def test_each_of_a_list_is_the_one_of_the_call() -> None:
    def f(nodes: list[Node]) -> Any:
        for node in nodes:
            if node.parent is not None:
                node.value += node.parent.value
        return [node.value for node in nodes]

    def ring(shift: int) -> list[Node]:
        nodes = [Node(1.0), Node(2.0), Node(4.0)]
        for i, node in enumerate(nodes):
            node.parent = nodes[(i + shift) % 3]
        return nodes

    compiled = jitml.jit(f)
    for shift in (0, 1, 2, 1):
        assert compiled(ring(shift)) == f(ring(shift))


def test_what_is_made_and_kept_beside_them_is_taken_apart() -> None:
    def f(nodes: list[Node], step: float) -> int:
        made = []
        for node in nodes:
            node.value += step
            if node.parent is not None:
                node.value += 0.5 * (node.parent.value - node.value)
            if node.value > 1.0:
                made.append(Node(node.value / 2))
        nodes.extend(made)
        return len(made)

    def ring() -> list[Node]:
        nodes = [Node(0.25), Node(0.5), Node(1.0)]
        nodes[0].parent = nodes[2].parent = nodes[2]
        return nodes

    compiled = jitml.jit(f)
    plain, mine = ring(), ring()
    for _ in range(4):
        assert compiled(mine, 0.25) == f(plain, 0.25)
        assert [*map(shown, mine)] == [*map(shown, plain)]


def test_transforms_take_them_too() -> None:
    node = chain(1)

    def f(x: Any, node: Node) -> Any:
        parent = node.children[0].parent
        return (node.children[0].value * x * (1 if parent is None else parent.value)).sum()

    for value in (1.0, 3.0):
        node.value = value
        slope = np.full(2, 2 * value)
        np.testing.assert_array_equal(jitml.grad(f)(np.ones(2), node), slope)
        np.testing.assert_array_equal(jitml.jit(jitml.grad(f))(np.ones(2), node), slope)
        np.testing.assert_array_equal(jitml.vmap(f, in_axes=(0, None))(np.ones((3, 2)), node), np.full(3, 4 * value))


def test_containers_that_hold_themselves_are_refused_with_the_line() -> None:
    held: list[Any] = [1.0]
    held.append(held)
    named: dict[str, Any] = {"x": 1.0}
    named["self"] = named
    for function in (jitml.jit(lambda x: x), jitml.grad(lambda x: 1.0), jitml.vmap(lambda x: x)):
        for given in (held, named):
            with pytest.raises(UnsupportedError, match=r"holds itself(.|\n)*test_cycles.py"):
                function(given)
