"""Arrays: methods, indexing, views, masks."""

from jitml.numpy.arrays import complex_parts, flat, indexing, iterators, methods, reshaping, sliding

TOPICS = (indexing, flat, iterators, methods, complex_parts, reshaping, sliding)
