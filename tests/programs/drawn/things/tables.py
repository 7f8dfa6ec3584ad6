"""Passages of real code that make lists of lists, write into them and read them.

Templates as in recipes.py; `$t` is a name that has lists of lists.
"""

from __future__ import annotations

from programs.drawn.things.recipes import passages

MAKE_TABLES = passages("""
$v = [[0] * 3 for $l in range(3)]

$v = [[$n] * 3 for $l in range(len($x))]

$v = [[0] * 3] * 3

$v = []
for $l in range(3):
    $v.append([0, $l, $n])

$v = [[$l * w for w in range(3)] for $l in range(3)]

$v = [list(r) for r in ((1, 2, 3), (4, 5, $n))]

$v = np.zeros((3, 3)).tolist()

$v = [[0, 0, 0], [1, $n, 1], [2, 2, 2]]

$w = [0, $n, 1]
$v = [$w, $w[:], $w]

$v = [[[0] * 2 for w in range(3)] for $l in range(2)]

$v = {0: [0, 0, 0], 1: [$n, 1, 1]}

$v = ([0, 0, 0], [$n, 1, 2])

$v = [[None] * 3 for $l in range(3)]

$v = [{}, {}]
$v[0][1] = $n
$v[1][0] = 2

$v = [$x.copy() for $l in range(2)]
""")

USE_TABLES = passages("""
$t[$i][$i] = $n

$t[0][1] += $n

for $l in range(2):
    for $w in range(3):
        $t[$l][$w] = $n

for $l in range(2):
    for $w in range(2):
        $t[$l][$w] = $t[$l - 1][$w - 1] + $l * $w

for $l in range(1, 3):
    $t[$l][0] = $t[$l - 1][0] + 1

for $l in range(3):
    $t[$l][$l] = $x[$l % len($x)]

$v = $t[0]
$v[1] = $n

$v = $t[$i]
$t[0] = $t[1]
$t[1] = $v

$t[0], $t[1] = $t[1], $t[0]

for $w in $t:
    $w[0] = $n

for $l, $w in enumerate($t):
    $w[1] = $l

$t.append([$n, 0, 0])

$t[0].append($n)

$t[1] = $t[0]
$t[1][0] = $n

$t[0][:2] = [$n, 1]

$v = [list(r) for r in $t]
$v[0][0] = $n

$v = $t[:]
$v[0][0] = $n

if $e > 1:
    $t[0][0] = $n
else:
    $t[1][1] = $n

for $w in $x[:2]:
    $t[0][0] = $w

for $w in $x[:3]:
    if $w > 0:
        $t[1][0] += 1

$l = 0
while $l < 2:
    $t[$l][$l] = $n
    $l += 1

$v = list(map(list, zip(*$t)))
$v[0][0] = $n

$t[$i][$e % 2] = $n

$t[0] = None

$t[0] = [$n] * 3

del $t[0]

$t.insert(0, $t[1])

$t[0] += [$n]
""")

READ_TABLES = (
    "$t[0][0]", "$t[1][$i]", "np.array($t)", "$t[0]", "$t[-1][-1]", "sum($t[0])",
    "[r[0] for r in $t]", "max(map(max, $t))", "$t[$i]", "len($t)",
    "np.sum($t)", "$t[0] is $t[1]", "sum($t, [])",
    "[[c for c in r] for r in $t]", "$t[0][1:]", "$t[:1]", "$t[0] == $t[1]", "np.array($t[0])", "min($t[0])",
)  # fmt: skip
