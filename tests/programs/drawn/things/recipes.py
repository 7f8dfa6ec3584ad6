"""Passages of real code: printing, exceptions as control flow, classes made inside, worklists.

Templates as in things.py; `$v`, `$w` and `$c` are fresh names, `$l` is a fresh counter. `BODY` stands for drawn statements.
"""

from __future__ import annotations

BODY = "BODY"


def passages(text: str) -> tuple[str, ...]:
    """Passages that blank lines keep apart."""
    return tuple(text.strip("\n").split("\n\n"))


PRINTS = passages("""
print('step', $e)

print($n, $e)

print('size', $x.size, end='; ')

print(f'{$e:3d}|{$n}')

for $l in range(3):
    print('turn', $l)
    BODY

for $l in range(3):
    print('turn', $l)
    if $e > $l:
        print('stop')
        break
    BODY

$v = None
for $l in range(3):
    print('turn', $l)
    if $n < 0:
        break
    $v = $x

$v, $l = None, 0
while $l < 3:
    $l += 1
    print('turn', $l)
    $v = $n if $v is None else $v + 1
    if $e < 2:
        print('done')
        break

if $e > 1:
    print('large')
    BODY
else:
    print('small')

$v, $l = None, 0
$w = 9.0
while $w > 1:
    $l += 1
    $w = $w * 0.5
    print('step', $l)
    $v = $x if $v is None else $v + $x
    if $w < 2:
        print('converged')
        break
    elif $l > 50:
        break

for $v in $x[:3]:
    if $v > 0:
        print('positive')
    else:
        print('not')

for $l in range(2):
    try:
        BODY
    finally:
        print('finally', $l)
""")

EXCEPTIONS = passages("""
try:
    $v = {1: 2}[$e]
except KeyError:
    $v = $n

try:
    $v = [1, 2, 3][$e]
except IndexError as error:
    $v = -1

try:
    $v = 1 // $e
except ZeroDivisionError:
    $v = 0

try:
    for $l in range(3):
        if $n > $l:
            raise Found($l)
    $v = 9
except Found as found:
    $v = found.args[0]

try:
    $v = checked($n)
except (ValueError, TypeError) as error:
    $v = len(str(error))
else:
    $v = 7

try:
    BODY
    raise Found($n)
except Found as found:
    $v = found.args

for $l in range(4):
    try:
        if $l == $e:
            raise StopIteration
        $v = $l
    except StopIteration:
        break

$v = 0
for $w in $x[:3]:
    try:
        checked($w)
    except ValueError:
        $v += 1
        continue
    $v += 10

try:
    $v = $x[$e, $e]
except IndexError:
    $v = $x[:1]

try:
    np.ones(3) @ np.ones($e)
except ValueError:
    $v = 1
else:
    $v = 2

$v = next((w for w in range(5) if w > $e), None)

with Noted($e) as $v:
    BODY
$v = $v.seen
""")

MADE_INSIDE = passages("""
class $c:
    nodes = []
$c.nodes.append($n)
$v = len($c.nodes)

class $c:
    count = {'n': 0}
    def go(self):
        $c.count['n'] += 1
$c().go()
$v = $c.count['n']

$c = type('C', (), {'rows': []})
$c.rows.append(1)
$v = len($c.rows)

class $c:
    total = 0
    def __init__(self, v):
        self.v = v
        $c.total += 1
$v = [$c(w) for w in range(3)]
$v = $c.total + $v[1].v

class $c(Exception):
    pass
try:
    if $n > 1:
        raise $c($n)
    $v = 0
except $c as found:
    $v = found.args[0]

def $c(a, seen=[]):
    seen.append(a)
    return len(seen)
$v = $c(1) + $c(2)

$v = []
for $l in range(3):
    $v.append(lambda a, b=$l: a + b)
$v = [f($n) for f in $v]

$v = []
for $l in range(3):
    $v.append(lambda: $l)
$v = [f() for f in $v]

$w = [0]
def $c(a):
    $w[0] += a
    return $w[0]
$v = $c($n) + $c(1)

def $c(n):
    return n if n < 2 else $c(n - 1) + $c(n - 2)
$v = $c(6)

$c = {}
def ${c}_(n):
    if n not in $c:
        $c[n] = n if n < 2 else ${c}_(n - 1) + ${c}_(n - 2)
    return $c[n]
$v = ${c}_(6)
""")

WORKLISTS = passages("""
$v, $w = [0], []
while $v:
    $l = $v.pop()
    $w.append($l)
    if $l + 1 < 4:
        $v.append($l + 1)

$w, $l = queue.Queue(), 0
$w.put(0)
while not $w.empty():
    $l += $w.get_nowait()
    if $l < 3:
        $w.put($l + 1)
$v = $l

$w = queue.Queue()
for $v in $x[:3]:
    $w.put($v)
$v = $w.qsize()

$w = collections.deque([(0, $n)])
$v = 0
while $w:
    $l, $c = $w.popleft()
    $v += $l
    if $l < 3:
        $w.append(($l + 1, $c))

$w = [(0, 0)]
$v = {}
while $w:
    $c, $l = heapq.heappop($w)
    if $l in $v:
        continue
    $v[$l] = $c
    for k in (1, 2):
        if $l + k < 5:
            heapq.heappush($w, ($c + k * k, $l + k))

$v = {}
for $w in np.ravel($x)[:4]:
    $c = (int($w > 0), 1)
    $v[$c] = $v.get($c, 0) + 1

$v = {}
for $l in range(3):
    for $w in range(2):
        $v[$l, $w] = $v.get(($l - 1, $w), 0) + $l

$w = set()
for $l in range(3):
    $w.add(($l % 2, 1))
$v = len($w)
""")

PLACES = passages("""
$v = 1.0 if np.geterr()['divide'] == 'warn' else 2.0

with np.errstate(divide='ignore'):
    BODY

$v = np.digitize($x, [np.nan, 1.0])

$v = np.digitize($x, [1.0, 2.0, np.nan])

$v = np.searchsorted([0.0, 1.0, 3.0], $x)

$v = $x[$e::2**63 - 1].copy()

$v = 0
for $l in range(-1, sys.maxsize):
    if $l > 2:
        $v = $l
        break

$v = [b for b in itertools.product(range(2), repeat=2)]

$v = list(itertools.accumulate([1, 2, $n]))

$v = sorted([3, $e, 2], key=lambda a: -a)

$v = slice($e, None)
$v = np.arange(5)[$v]

$v = np.flatnonzero($x > 0)
$v = slice($v[0], $v[-1] + 1)

$v = {(int(a), int(b)): 1.0 for a, b in np.argwhere(np.atleast_2d($x) > 0)}

$v = {(a, b): 1.0 for a, b in np.argwhere(np.atleast_2d($x) > 0)}

$v = array.array('d')
for $w in $x[:3]:
    $v.extend([1.0])
$v = len($v)

$w = contextvars.ContextVar('w', default=0)
for $v in $x[:3]:
    $w.set($w.get() + 1)
$v = $w.get()

$v = ET.Element('a')
if $n > 0:
    ET.SubElement($v, 'b')
$v = len($v)

SEEN[$x.shape] = SEEN.get($x.shape, 0) + 1
$v = SEEN[$x.shape]

if $x.shape not in SEEN:
    SEEN[$x.shape] = np.arange($x.size) * 1.0
$v = SEEN[$x.shape]

HISTORY.append($n)
$v = len(HISTORY)

if STATE['cached'] is None:
    STATE['cached'] = $n
$v = STATE['cached']

STATE['cached'] = None
STATE['calls'] += 1
$v = STATE['calls']

$v = LAST[0]
LAST[0] = $x
""")

GENERATORS = passages("""
for $v in parts_of($x, 2):
    $w = $v.sum() * $n
    $v += 1

$v = sum(w * $n for w in parts_of($x.ravel(), 1))

for $v in told_parts($i + 1):
    if $v == $n:
        break
    BODY

$v = next(told_parts(2)) + len(list(told_parts($i)))

def $c(k):
    for $l in range(k):
        yield $l * $n
$v = list($c(3))

$v = [w for w in parts_of(list($x.ravel()), 2)]

with told($n) as $v:
    BODY

for $l in range(3):
    with told($l) as $v:
        $w = $v * 2

if $x.sum() > $n:
    with told(1) as $v:
        BODY

$v = Place($i)
$w = $x[$v:]

$v = [Place(1), Place($i)]
$w = $x.ravel()[$v[0] : 3]
for $l in range($v[1]):
    BODY

$v = sorted([3, 1, 2], key=Place($i).distance)
""")

PASSAGES = (*PRINTS, *EXCEPTIONS, *MADE_INSIDE, *WORKLISTS, *PLACES, *GENERATORS)

KEPT = ("SEEN", "LAST")  # globals that hold arrays from one call to the next

ABOVE = """import array
import collections
import contextlib
import contextvars
import heapq
import itertools
import queue
import sys
import xml.etree.ElementTree as ET

SEEN = {}
HISTORY = []
STATE = {"cached": None, "calls": 0}
LAST = [None]


class Found(Exception):
    pass


def checked(v):
    if v < 1:
        raise ValueError("too small")
    return v


def parts_of(items, n):
    for k in range(0, len(items), n):
        yield items[k : k + n]


def told_parts(n):
    try:
        for k in range(n):
            print('part', k)
            yield k
    finally:
        print('no more')


@contextlib.contextmanager
def told(v):
    print('in')
    STATE['calls'] += 1
    try:
        yield v
    finally:
        print('out')


class Place:
    def __init__(self, at):
        self.at = at

    def __index__(self):
        return self.at

    def distance(self, v):
        return (v - self.at) ** 2


class Noted:
    def __init__(self, v):
        self.v, self.seen = v, []

    def __enter__(self):
        self.seen.append("in")
        return self

    def __exit__(self, *error):
        self.seen.append(error[0] is None)
        return False
"""
