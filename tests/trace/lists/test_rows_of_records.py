"""Dataclasses in lists that loops fill are the function's own: what their fields hold changes, and is new at each call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import jitml

pytestmark = pytest.mark.filterwarnings("error::jitml.errors.UncompiledWarning")


@dataclass
class Node:
    value: Any
    links: list[Any] = field(default_factory=list)
    marks: list[Any] = field(default_factory=lambda: [0.0])
    names: dict[str, Any] = field(default_factory=dict)


def appended(x: Any) -> Any:
    nodes = [Node(v) for v in x]
    nodes[0].links.append(x[1])
    return nodes[0].links, nodes[1].links


def written(x: Any) -> Any:
    nodes = [Node(v) for v in x]
    nodes[1].marks[0] = x[2]
    nodes[2].names["a"] = x[0]
    return nodes


def in_a_loop(x: Any) -> Any:
    nodes = []
    for v in x:
        nodes.append(Node(v))
    for node in nodes:
        node.links.append(node.value)
    return nodes


def chosen(x: Any) -> Any:
    nodes = [Node(v) for v in x]
    nodes[int(np.argmax(x))].links.append(x[0])
    return [node.links for node in nodes]


def only_read(x: Any) -> Any:
    nodes = [Node(v) for v in x]
    return nodes[0].marks, nodes[1].links


@pytest.mark.parametrize("f", [appended, written, in_a_loop, chosen, only_read])
def test_fields_of_items(f: Callable[[Any], Any]) -> None:
    compiled, before = jitml.jit(f, verify="never"), []
    for call in range(3):
        x = np.arange(3.0) + call
        result = compiled(x)
        assert repr(result) == repr(f(x))
        before.append(result)
    if f is only_read:
        assert len({id(part) for result in before for part in result}) == 6


def test_fields_in_scans() -> None:
    def f(x: Any) -> Any:
        def step(total: Any, node: Node) -> Any:
            node.links.append(1.0)
            return total + node.value, Node(node.value * 2)

        total, nodes = jitml.scan(step, 0.0, Node(x, [], [], {}))
        return total, nodes.value, nodes.links

    x = np.arange(3.0)
    assert repr(jitml.jit(f, verify="never")(x)) == repr(f(x))
