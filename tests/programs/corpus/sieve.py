import numpy as np


def sieve(n):
    """Primes below n (Eratosthenes)."""
    prime = np.ones(n, dtype=bool)
    prime[:2] = False
    i = 2
    while i * i < n:
        if prime[i]:
            prime[i * i :: i] = False
        i += 1
    return np.nonzero(prime)[0]


def make(size, rng):
    return ({"small": 60, "large": 3_000_000}[size],)
