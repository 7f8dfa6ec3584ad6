"""Linear algebra: products, factorizations, norms, einsum."""

from jitml.numpy.linear_algebra import einsum, factorizations, norms, products

TOPICS = (products, norms, factorizations, einsum)
