"""Linear algebra: products, factorizations, norms, einsum."""
