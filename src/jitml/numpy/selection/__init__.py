"""Selection: conditions, sets, quantiles, index helpers."""

from jitml.numpy.selection import choose, index_tricks, nonzero, quantiles, sets

TOPICS = (choose, nonzero, sets, quantiles, index_tricks)
