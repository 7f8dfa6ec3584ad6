"""Lists that loops append to and take items from: stacks, queues, deques.

The rows are as in `region_programs.py`.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from tests.trace.regions.region_programs import Array, program_list, vector

PROGRAMS: list[Any] = []
program = program_list(PROGRAMS)


@program(vector, "w")
def the_last_item_is_taken_while_there_is_one(x: Array) -> Any:
    stack, total, seen = [0], 0.0, []
    while stack:
        u = stack.pop()
        seen.append(u)
        total += x[u % len(x)] * len(stack)
        if u < 3:
            stack.append(u + 1)
            if x[u] > 0.3:
                stack.append(u + 2)
    return total, seen, len(seen)


@program(vector, "l")
def the_next_greater_item(x: Array) -> Any:
    stack = []
    found = np.full(len(x), -1)
    before = np.full(len(x), -1)
    for i in range(len(x)):
        while stack and x[stack[-1]] < x[i]:
            j = stack.pop()
            found[j] = i
        before[i] = stack[-1] if stack else -1
        stack.append(i)
    last = stack.pop()
    return found, before, last, stack


@program(vector, "w")
def items_of_two_numbers_are_taken(x: Array) -> Any:
    pending, deepest = [(0, len(x))], 0
    sums = np.zeros(len(x))
    while len(pending) > 0:
        low, high = pending.pop()
        deepest = max(deepest, len(pending))
        if high - low < 2:
            if high > low:
                sums[low] += x[low]
            continue
        middle = (low + high) // 2
        pending.append((low, middle))
        pending.append((middle, high))
    return sums, deepest


@program(vector, "w")
def a_number_is_taken_where_a_float_may_follow(x: Array) -> Any:
    stack, y = [1], 0.0
    while stack:
        t = stack.pop()
        y = y + t * 0.5
        if y < 3:
            stack.append(y)
            stack.append(x[0])
        if not stack:
            break
    return y


@program(vector, "l")
def items_are_taken_back_under_a_condition(x: Array) -> Any:
    kept = [0.0]
    for v in x:
        kept.append(v)
        if v < 0.4 and len(kept) > 1:
            kept.pop()
    return np.array(kept), len(kept), kept


@program(vector, None)
def a_list_of_a_loop_is_emptied_in_one_inside(x: Array) -> Any:
    total = 0.0
    for i in range(len(x)):
        path = [i]
        while path[-1] > 0:
            path.append(path[-1] // 2)
        while path:
            k = path.pop()
            total = total * 0.5 + x[k]
    return total


@program(vector, "w")
def the_first_item_is_taken(x: Array) -> Any:
    n = len(x)
    steps = np.full(n, -1)
    steps[0] = 0
    queue = deque([0])
    while queue:
        u = queue.popleft()
        for v in range(n):
            if steps[v] < 0 and x[(u + v) % n] > 0.4:
                steps[v] = steps[u] + 1
                queue.append(v)
    return steps, len(queue)


@program(vector, "l")
def items_are_taken_from_both_ends_of_a_list(x: Array) -> Any:
    items, total = [0.5, 1.5], 0.0
    for v in x:
        items.append(v)
        if v > 0.5:
            first = items.pop(0)
            total = total * 0.5 + first
        elif len(items) > 1:
            last = items.pop()
            total += last * items[-1]
    return total, items, len(items)


@program(vector, "l")
def the_greatest_of_the_last_three(x: Array) -> Any:
    out = np.zeros(len(x))
    places = deque()
    for i in range(len(x)):
        while places and x[places[-1]] <= x[i]:
            places.pop()
        places.append(i)
        if places[0] <= i - 3:
            places.popleft()
        out[i] = x[places[0]]
    return out


@program(vector, "l")
def taken_where_the_first_pass_does_not_see_it(x: Array) -> Any:
    stack, out = [-1], np.zeros(len(x))
    for i in range(len(x)):
        stack.append(i)
        if x[i] > 0.5 and stack[-2] < i - 1:
            stack.pop()
        if stack[-1] < i:
            stack.pop()
        out[i] = len(stack)
        if len(stack) < 2:
            stack.append(i)
    return out, stack
