"""Universal functions: promotion, loops, powers, scalars."""

from jitml.numpy.ufuncs import scalars as scalars
from jitml.numpy.ufuncs import ufunc

TOPICS = (ufunc,)
