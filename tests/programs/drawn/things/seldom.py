"""Objects that jitml mostly refuses: iterators and generators from outside, structured and masked arrays, and other rare ones."""

from __future__ import annotations

from programs.drawn.things.functions import CLOSURES, MEMOISED
from programs.drawn.things.thing import Thing

SELDOM = (
    Thing(
        "objects",
        ("np.array([None, $k, 'a'], dtype=object)",),
        ("$o[1]", "$o.size", "$o[1] * $x"),
        ("$o[0] = $n", "$o[1] = $e"),
        ("$o[1] = $k",),
    ),
    Thing(
        "masked",
        ("np.ma.array([1.0, 2.0, 3.0], mask=[$k % 2, 0, 1])",),
        ("$o.sum()", "$o.filled(0)", "$o.mask", "$o.count()"),
        (),
        ("$o[0] = $k",),
    ),
    Thing(
        "structured",
        ("np.array([($k, 0.5), (1, 1.5)], dtype=[('a', int), ('b', float)])",),
        ("$o['a']", "$o['b'] * 2", "$o[0]['a']", "$o['a'].sum()"),
        ("$o['a'] = $e", "$o['b'][0] = $n"),
        ("$o['a'] = $k",),
    ),
    Thing(
        "date", ("datetime.timedelta(days=$k)",), ("$o.days", "$o.total_seconds()", "($o * 2).days"), (), (), "import datetime\n"
    ),
    Thing(
        "random",
        ("random.Random($k)",),
        ("$o.random()", "$o.randint(0, 5)", "$o.choice([1, 2, 3])"),
        ("$o.seed($e)", "$o.random()"),
        ("$o.seed($k)",),
        "import random\n",
    ),
    Thing(
        "count",
        ("itertools.count($k)", "itertools.cycle([$k, 1])", "iter([$k, 2, 3])", "enumerate([$k, 5])", "zip([$k, 1], [2, 3])"),
        ("next($o)", "next($o) + next($o)"),
        ("next($o)", "for $v in $o:\n    if $v > 1:\n        break", "for $v in zip($o, range(2)):\n    pass"),
        (),
        "import itertools\n",
    ),
    Thing(
        "array",
        ("array.array('d', [$k, 1])", "array.array('l')", "bytearray([$k])"),
        ("$o[0]", "len($o)", "sum($o)", "np.array($o)", "$o"),
        ("$o.append($e)", "$o.extend([1, 2])", "$o[0] = $e", "for $v in range(3):\n    $o.extend([$v])"),
        ("$o[0] = $k", "$o.append($k)"),
        "import array\n",
    ),
    Thing(
        "cached",
        ("CACHED",),
        ("cached_square($e)", "cached_square(2)", "cached_square.cache_info().currsize"),
        ("cached_square.cache_clear()",),
        ("cached_square.cache_clear()", "CACHED[0] = $k"),
        MEMOISED,
    ),
    Thing("method caller", ("operator.methodcaller('clip', 0, $k)",), ("$o($x)",), (), (), "import operator\n"),
    Thing("attribute getter", ("operator.attrgetter('size' if $k % 2 else 'ndim')",), ("$o($x)",), (), (), "import operator\n"),
    Thing("builtin method", ("[$k, 7].__getitem__", "[$k, 7].index"), ("$o(0 if $e else 1)", "$o(7)"), ()),
    Thing("frompyfunc", ("np.frompyfunc(lambda v: v * $k, 1, 1)",), ("$o($x).astype(float)", "$o($n)"), ()),
    Thing("teller", ("made_teller($k)",), ("$o($n)", "$o(1)"), ("$o($n)",), (), CLOSURES),
)
