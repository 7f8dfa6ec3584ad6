"""Containers of the standard library and handles of them: queues, heaps, keys that are tuples, slices, live views."""

from __future__ import annotations

from programs.drawn.things.thing import Thing

_VIEWS = """import types
import weakref
import contextvars


class Owner:
    def __init__(self, k):
        self.k = k
        self.table = {'a': k}
        self.proxy = types.MappingProxyType(self.table)
        self.get = self.table.get
        self.values = self.table.values()
        self.items = [k]
        self.first = self.items.__getitem__


OWNERS = [Owner(1)]
REF = weakref.ref(OWNERS[0])
VAR = contextvars.ContextVar('VAR', default=1)
TABLE = {'a': 1, 'b': 2}
PROXY = types.MappingProxyType(TABLE)
VALUES = TABLE.values()
KEYS = TABLE.keys()
PAIRS = TABLE.items()
GET = TABLE.get
ROW = [1, 2]
FIRST = ROW.__getitem__
APPEND = ROW.append
"""

CONTAINERS = (
    Thing(
        "keyed by tuples",
        ("{(0, 1): $k, (1, 0): 2}", "{(0, 0): $k}", "{}"),
        (
            "$o.get((0, 1), 0)",
            "$o[0, 1]",
            "len($o)",
            "sum($o.values())",
            "((0, $e) in $o)",
            "max($o, key=$o.get)",
            "sorted($o)[0][0]",
            "$o",
            "{(int(v), 1): 1 for v in np.ravel($x)[:3] if v == v and abs(v) < 99}",
            "{p: 1 for p in zip([$e, 2], [1, $e])}",
        ),
        (
            "$o[$e, 0] = $n",
            "$o[(1, $e)] = $o.get((1, $e), 0) + 1",
            "$o.pop((0, 1), None)",
            "$o.setdefault(($e, $e), []).append($n)",
            "$o[$x.shape] = $n",
            "$o[tuple($x.shape), 1] = 2",
            "for $v in range(3):\n    $o[$v, $v % 2] = $n",
            "$o[frozenset([$e, 1])] = $n",
        ),
        ("$o[0, 1] = $k", "$o[$k, $k] = 1", "$o.clear()"),
    ),
    Thing(
        "dict",
        ("{'a': $k, 'b': [1, $k]}", "{$k: 1, 'a': $k}", "dict(a=$k)"),
        (
            "$o['a']",
            "$o.get('c')",
            "$o.get('c', $n)",
            "list($o)[0]",
            "'b' in $o",
            "$o['b'][0]",
            "[v for v in $o.values()]",
            "$o",
            "dict($o)",
            "{**$o, 'z': $n}",
        ),
        (
            "$o['a'] = $n",
            "$o['c'] = $x",
            "$o.update(a=$n)",
            "del $o['a']",
            "$o['b'].append($n)",
            "$o['b'] = None",
            "$o.pop('a', 0)",
            "for $v in list($o):\n    $o[$v] = $n",
            "$o[$e] = $n",
        ),
        ("$o['a'] = $k", "$o['c'] = $k", "$o.pop('b', 0)"),
    ),
    Thing(
        "deque",
        ("collections.deque([$k, 2])", "collections.deque([$k, 1, 2], maxlen=3)", "collections.deque()"),
        ("$o[0]", "len($o)", "$o.popleft()", "sum($o)", "list($o)", "$o[-1]", "$o"),
        (
            "$o.append($n)",
            "$o.appendleft($n)",
            "$o.rotate(1)",
            "$o.extend([$n, 1])",
            "$o.popleft()",
            "$o[0] = $n",
            "while $o:\n    $v = $o.popleft()",
            "$o.append(($n, $e))",
        ),
        ("$o.append($k)", "$o[0] = $k"),
        "import collections\n",
    ),
    Thing(
        "queue",
        ("queue.Queue()", "queue.PriorityQueue()", "queue.LifoQueue()", "filled_queue($k)"),
        ("$o.qsize()", "$o.empty()", "$o.get_nowait()"),
        (
            "$o.put($e)",
            "$o.put($n)",
            "$o.put($e)\n$v = $o.get_nowait()",
            "while not $o.empty():\n    $v = $o.get_nowait()",
            "for $v in range(3):\n    $o.put($v)",
            "if not $o.empty():\n    $v = $o.get_nowait()",
        ),
        ("$o.put($k)",),
        "import queue\n\n\ndef filled_queue(k):\n    q = queue.Queue()\n    q.put(k)\n    q.put(k + 1)\n    return q\n",
    ),
    Thing(
        "heap",
        ("[$k]", "[1, $k + 1]"),
        ("heapq.heappop($o)", "$o[0]", "len($o)", "heapq.nsmallest(1, $o)", "sorted($o)[-1]"),
        (
            "heapq.heappush($o, $n)",
            "heapq.heappush($o, $e)",
            "heapq.heapify($o)",
            "while $o:\n    $v = heapq.heappop($o)",
            "for $v in range(3):\n    heapq.heappush($o, -$v)",
            "bisect.insort($o, $e)",
        ),
        ("$o[0] = $k", "$o.append($k)"),
        "import bisect\nimport heapq\n",
    ),
    Thing(
        "set",
        ("{$k, 1}", "set()"),
        ("len($o)", "$e in $o", "sorted($o)", "$o | {$e}", "sum($o)", "$o"),
        ("$o.add($e)", "$o.discard(1)", "for $v in range(3):\n    $o.add($v * 2)", "$o |= {$e}", "$o.add(($e, 1))"),
        ("$o.add($k)", "$o.clear()"),
    ),
    Thing(
        "frozen set", ("frozenset([$k])",), ("len($o)", "$e in $o", "$o | {$e}", "sum($o)", "$o", "{$o: $n}"), ("$v = $o | {2}",)
    ),
    Thing(
        "default dict",
        (
            "collections.defaultdict(int)",
            "collections.defaultdict(list, {0: [$k]})",
            "collections.Counter([$k, 1, 1])",
            "collections.OrderedDict(a=$k)",
        ),
        ("$o[0]", "len($o)", "list($o.items())", "$o['a']", "$o"),
        (
            "$o[$e] += 1",
            "$o[1].append($n)",
            "$o[$e, 1] = 2",
            "$o['a'] = $n",
            "for $v in range(4):\n    $o[$v % 2] += 1",
            "$o.update([1, 2])",
        ),
        ("$o[0] = $k", "$o['a'] = $k"),
        "import collections\n",
    ),
    Thing(
        "slice",
        ("slice($k)", "np.s_[$k:]", "slice(0, $k, 2)", "(slice(1), $k)"),
        (
            "np.arange(6.0)[$o]",
            "$o.stop",
            "$o",
            "slice(1, $e)",
            "np.s_[$e:$e + 2, 0]",
            "slice(int($x.max()), None)",
            "[slice($e, 3)]",
            "np.arange(9)[slice($e, $o.stop)]",
            "range(9)[$o]",
        ),
        (),
    ),
    Thing(
        "range",
        ("range($k)", "range(1, $k + 1)", "range($k, 0, -1)"),
        ("sum($o)", "len($o)", "next($o)", "next($o, 0)", "list($o)", "$o[0]", "$e in $o"),
        ("for $v in $o:\n    pass", "for $v in $o:\n    break"),
    ),
    Thing(
        "string",
        ("'abc'[:$k]", "'a,b' * $k", "b'abc'[:$k]"),
        (
            "len($o)",
            "$o.count('a')",
            "$o + 'x'",
            "$o[0]",
            "$o.split(',')",
            "$o == 'ab'",
            "f'{$o}{$e}'",
            "$o * 2",
            "[ord(c) for c in $o][0]",
        ),
        (),
    ),
    Thing(
        "boxes",
        ("[[$k], {'a': [$k]}]", "([$k, [2]], 3)", "{'a': {'b': [$k]}}", "[None, $k]", "[$x, $k]", "[($k, [1]), ($k, [2])]"),
        (
            "$o[0]",
            "$o[0][0]",
            "$o[1]",
            "$o['a']['b'][0]",
            "$o[1]['a']",
            "$o",
            "[b for b in $o]",
            "list(reversed($o))[0]",
            "$o[:1]",
        ),
        (
            "$o[0].append($n)",
            "$o[0][0] = $n",
            "$o[1]['a'].append($n)",
            "$o['a']['b'] = $n",
            "$o[0] = None",
            "$o.append($o[0])",
            "$o[0][1].append($n)",
            "$o['c'] = $o['a']",
            "$o[1] = $n",
            "$o[:1] = [$n]",
            "$v, $v_ = $o\n$v_ = $v",
        ),
        ("$o[0].append($k)", "$o[1] = $k", "$o['a']['b'][0] = $k", "$o[0] = [$k]"),
    ),
    Thing(
        "copied",
        ("copy.copy([[$k], 1])", "copy.deepcopy([[$k], 1])", "[[$k], 1]"),
        ("$o[0][0]", "copy.copy($o)", "copy.deepcopy($o)[0]", "list($o)", "$o[:]", "len($o[0])"),
        (
            "$v = copy.copy($o)\n$v[0].append($n)",
            "$v = copy.deepcopy($o)\n$v[0][0] = $n",
            "$v = $o[:]\n$v[0].append($n)\n$v.append(1)",
            "$v = $o\n$v[1] = $n",
            "$v = list($o)\n$v[0][0] = $n",
        ),
        ("$o[0][0] = $k",),
        "import copy\n",
    ),
    Thing(
        "live view",
        ("Owner($k)",),
        (
            "PROXY['a']",
            "sum(VALUES)",
            "len(KEYS)",
            "list(PAIRS)[0][1]",
            "GET('a')",
            "GET('c', 0)",
            "FIRST(0)",
            "VAR.get()",
            "(0 if REF() is None else REF().k)",
            "$o.proxy['a']",
            "$o.get('a')",
            "sum($o.values)",
            "$o.first(0)",
            "len(ROW)",
            "PROXY.get('c', $n)",
            "'c' in KEYS",
        ),
        (
            "TABLE['a'] = $n",
            "TABLE['c'] = $n",
            "APPEND($n)",
            "VAR.set($n)",
            "$o.table['a'] = $n",
            "ROW[0] = $n",
            "REF().k = $n",
            "$o.items[0] = $n",
            "VAR.set(VAR.get() + 1)",
        ),
        (
            "TABLE['a'] = $k",
            "ROW[0] = $k",
            "VAR.set($k)",
            "OWNERS[0].k = $k",
            "OWNERS[0].table['a'] = $k",
            "$o.table['a'] = $k",
            "$o.items[0] = $k",
            "OWNERS.clear()",
            "TABLE['c'] = $k",
            "APPEND($k)",
        ),
        _VIEWS,
    ),
    Thing(
        "view",
        ("types.MappingProxyType({'a': $k})", "{'a': $k}.values()", "{$k: 2}.keys()", "{'a': $k}.get"),
        ("$o['a']", "sum($o)", "$o('a')", "len($o)", "list($o)[0]", "$o[0]"),
        (),
        (),
        "import types\n",
    ),
)
