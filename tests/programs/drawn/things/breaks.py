"""Statements that a compiled run of statements has to stop at: effects on what is outside, iterators, objects made, exceptions.

Templates as in recipes.py: `$v` and `$w` are fresh names, `$c` a fresh class, `$l` a fresh counter, `$x` an array, `$n` a number,
`$e` an exact integer, BODY drawn statements.
"""

from __future__ import annotations

from programs.drawn.things.recipes import passages

ABOVE = '''
import functools
import itertools
import random
import warnings
from dataclasses import dataclass, field

import scipy.optimize

LOG = []
STATE = {'n': 0, 'tmp': 1}
ORDER = [3, 1, 2]
COUNT = 0


class Model:
    made = 0

    def __init__(self, w=1.0):
        Model.made += 1
        self.w = w
        self.best = None
        self.history = []

    def step(self, g, rate=0.5):
        self.w = self.w - rate * g
        self.history.append(self.w)
        return self.w


class Deeper(Model):
    def step(self, g, rate=0.25):
        LOG.append('deeper')
        return super().step(g, rate)

    @property
    def twice(self):
        STATE['n'] += 1
        return 2 * self.w

    @twice.setter
    def twice(self, value):
        self.w = value / 2


@dataclass
class Point:
    x: int
    y: float
    tags: list = field(default_factory=list)


MODEL = Model()
DEEPER = Deeper()
MODELS = []


class Ticks:
    def __init__(self):
        self.n = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.n += 1
        return self.n


TICKS = Ticks()


class Bar:
    """A progress bar: it wraps an iterable, and counts."""

    def __init__(self, iterable=()):
        self.iterable, self.seen = iterable, 0

    def __call__(self, iterable):
        self.iterable = iterable
        return self

    def __iter__(self):
        for value in self.iterable:
            yield value
            self.seen += 1

    def update(self, n=1):
        self.seen += n


BAR = Bar()


class Entered:
    """A context that notes when it is entered and left, and swallows a KeyError."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        LOG.append('enter')
        return self

    def __exit__(self, kind, value, traceback):
        LOG.append(kind.__name__ if kind else 'leave')
        return kind is KeyError


def batches(rows, size):
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def squares(n):
    for i in range(3):
        LOG.append(i)
        yield i * n


def averager():
    total, n = 0.0, 0
    while True:
        got = yield total / max(n, 1)
        total, n = total + got, n + 1


def noisy(value):
    LOG.append('noisy')
    return value


def bump(by=1):
    global COUNT
    COUNT += by
    return COUNT


def apply_all(function, values):
    return [function(value) for value in values]


def fact(n):
    LOG.append(n)
    return 1 if n < 2 else n * fact(n - 1)


def limited(value):
    if value > 2:
        raise ValueError('too large')
    return value + 1
'''

# Loops and branches around drawn statements, and statements alone.
BREAKS = passages("""
print('step', $e)

print(f'{$n:.3f}', $e)

LOG.append($n)

LOG.append($x.copy())

LOG.append($x)

LOG.append(($e, [$n]))

LOG.extend([$n, $e])

LOG[-1:] = [$n]

MODEL.w = $n

MODEL.w += $n
$v = MODEL.w * 2

MODEL.best = $x

MODEL.best = $x * 2
$v = MODEL.best.sum()

MODEL.history.append($n)

setattr(MODEL, 'w', $n)
$v = getattr(MODEL, 'w')

MODEL.count = getattr(MODEL, 'count', 0) + 1
$v = MODEL.count

$v = MODEL.step($n)

$v = DEEPER.step($n, rate=2)

DEEPER.twice = $n
$v = DEEPER.twice

MODEL.__dict__['late'] = $n

STATE['n'] += 1
$v = STATE['n']

STATE['last'] = $n

STATE['rows'] = $x[:1]

STATE.update(a=$n)
$v = STATE.get('a')

STATE[$e] = $x

STATE.setdefault('xs', []).append($n)

$v = STATE.pop('last', 1)

del STATE[next(iter(STATE))]

$v = next(TICKS)

$v = iter($x.tolist())
$w = next($v, 0)

$v = sum(next(TICKS) for w in range(2))

$v = next(w for w in range(9) if w >= $e)

$v = iter([1, $n, 2])
for $w in $v:
    BODY

for $l, $w in zip(range(3), TICKS):
    BODY

for $w in itertools.islice(TICKS, 2):
    BODY

for $w in itertools.chain($x[:1], [$n]):
    BODY

$v = Model($n)
MODELS.append($v)
$w = $v.w

$v = Deeper()
$w = $v.step($n)

$v = Point($e, $n)
$v.tags.append($v.x)
LOG.append($v)

$v = [Model(w) for w in range(2)]
$v[0].w = $n
$w = $v[0].w + $v[1].w

class $c(Model):
    rate = 2
    def go(self, g):
        return self.w + g * self.rate
$v = $c().go($n)

try:
    BODY
except (ValueError, IndexError):
    LOG.append('failed')

try:
    $v = $x[$e]
except IndexError:
    $v = $n

try:
    BODY
finally:
    STATE['n'] += 1

try:
    if $e > 1:
        raise KeyError($e)
    BODY
except KeyError as error:
    $v = error.args[0]
else:
    LOG.append('else')

for $l in range(3):
    try:
        if $l == 1:
            raise IndexError
        BODY
    except IndexError:
        continue
    finally:
        LOG.append($l)

try:
    $v = limited($e)
except ValueError as error:
    $v = len(str(error))

$v = 0
while True:
    $v += 1
    try:
        $w = [4, $e, 2][$v]
    except IndexError:
        break
    BODY

with Entered('a') as $v:
    BODY

with Entered('b'):
    if $e > 1:
        raise KeyError
    BODY

for $w in batches($x, 2):
    BODY

for $w in squares($e):
    BODY

$v = sum(squares($e))

$v = list(squares(2))

$v = [noisy(w) for w in (1, $n)]

$v = {w: noisy(w) for w in range(2)}

$v = [LOG.append(w) or w for w in range(3)]

$v = max((noisy(w) for w in (1, $e)), default=0)

$v = [w for w in $x.ravel() if noisy(w) > 1]

def $v():
    yield $n
    LOG.append('between')
    yield 3
$w = list($v())

$v = averager()
next($v)
$w = $v.send($n)
$w = $v.send(2)
$v.close()

$v = random.random()

$v = random.randint(0, 5)

random.shuffle(ORDER)
$v = ORDER[0]

$v = random.choice([1, $n])

if random.random() < 0.5:
    BODY

for $l in range(3):
    if random.random() < 0.5:
        continue
    BODY

$v = np.random.rand()

$v = np.random.permutation(len($x))[0]

for $l in Bar(range(3)):
    BODY

for $l in BAR(range(2)):
    BODY

for $l in range(3):
    BAR.update()
    BODY

$v = $n
del $v

$v = $x * 2
$w = $v.sum()
del $v

for $l in range(2):
    $v = $x + $l
    BODY
    del $v

$v = apply_all(lambda w: w + $n, [1, 2])

$v = sorted([3, 1, $e], key=lambda w: -w)

$v = functools.reduce(lambda a, b: a + b, [1, $n, 2])

$v = list(map(lambda w: noisy(w) + 1, [1, $e]))

$v = np.apply_along_axis(lambda row: row.max(), 0, $x)

$v = scipy.optimize.brentq(lambda t: t ** 3 - 2 - $e % 4, 0, 9)

$v = [0]
def $w(k):
    $v[0] += k
    return $v[0]
$w($n)
$w(2)

$v = 1
def $w(k):
    nonlocal $v
    $v = $v + k
$w($n)

$v = lambda w: w * $n
$w = $v(2)

bump()
$v = bump($e)

import math as $v
$w = $v.floor(2.5)

$v = 'x' in locals()

$v = sorted(locals())[0]

$v = fact($e % 4)

warnings.warn('odd')

$v, *$w = [1, $n, 2]

LOG.append($v := $n)

if hasattr(MODEL, 'late') or isinstance(MODEL.w, float):
    BODY

assert noisy($e) == $e, 'never'

$v = globals()['COUNT'] + $e

$v = $x.tolist()
$v.append($n)
$v.sort()
$w = $v[0]

$v = []
for $l in range(3):
    BODY
    $v.append($n)
    LOG.append(len($v))

$v = {}
for $l in range(3):
    $v[$l] = $x * $l
    BODY
$w = $v.pop(1)

for $l in range(4):
    if $l == 2:
        LOG.append('enough')
        break
    BODY
else:
    LOG.append('never')

$v = 0
while $v < 3:
    $v += 1
    if $v == 2:
        print('two')
        continue
    BODY
""")
