"""Building arrays: creation, grids, joining, padding."""

from jitml.numpy.building import creation, grids, joining, padding, ranges

TOPICS = (creation, ranges, grids, joining, padding)
