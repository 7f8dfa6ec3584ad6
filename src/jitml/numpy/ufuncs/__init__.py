"""Universal functions: promotion, loops, powers, scalars."""

from jitml.numpy.ufuncs import scalars, ufunc

TOPICS = (ufunc, scalars)
