"""Bytes, bits, whole numbers and complex ones."""

from __future__ import annotations

import numpy as np

from workloads.workload import workload


@workload(lambda n, rng: (rng.normal(100, 20, (n, n)).clip(0, 255).astype(np.uint8),), small=12, full=1024)
def equalize(picture):
    """All grey levels as frequent as each other: a histogram, its sums, and a table."""
    counts = np.bincount(picture.ravel(), minlength=256)
    levels = np.cumsum(counts)
    table = (255 * levels // levels[-1]).astype(np.uint8)
    return table[picture]


def _codes(n, rng):
    return rng.integers(0, 2**63, (n, 4), dtype=np.uint64), rng.integers(0, 2**63, 4, dtype=np.uint64)


@workload(_codes, small=9, full=100_000)
def hamming_distances(codes, query):
    """In how many bits do codes of 256 bits differ from one of them?"""
    x = codes ^ query
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return ((x * np.uint64(0x0101010101010101)) >> np.uint64(56)).sum(axis=1)


@workload(lambda n, rng: (rng.integers(0, 2**63, n, dtype=np.uint64), 1000), small=30, full=1_000_000)
def hash_buckets(keys, buckets):
    """A bucket for each key: the mixer of SplitMix64."""
    z = keys + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) % np.uint64(buckets)).astype(np.int32)


@workload(lambda n, rng: (rng.integers(-700_000, 3_000_000, n),), small=30, full=300_000)
def dates_of_days(days):
    """Year, month and day of days since 1970-01-01."""
    shifted = days + 719468
    era = shifted // 146097
    day = shifted - era * 146097
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day = day - (365 * year + year // 4 - year // 100)
    month = (5 * day + 2) // 153
    day = day - (153 * month + 2) // 5 + 1
    month = np.where(month < 10, month + 3, month - 9)
    return year + era * 400 + (month <= 2), month, day


@workload(lambda n, rng: (rng.integers(0, 256, (n, n)).astype(np.uint8),), small=12, full=1024)
def erode(picture):
    """Each pixel becomes the darkest of the nine around it."""
    rows = np.minimum(np.minimum(picture[:-2], picture[1:-1]), picture[2:])
    return np.minimum(np.minimum(rows[:, :-2], rows[:, 1:-1]), rows[:, 2:])


def _radio(n, rng):
    return ((1 + 0.1 * rng.standard_normal(n)) * np.exp(1j * np.cumsum(rng.uniform(-1, 1, n)))).astype(np.complex64), 48.0


@workload(_radio, small=40, full=300_000, rtol=1e-4)
def fm_demodulate(signal, rate):
    """The frequency of a radio signal, from sample to sample."""
    return np.angle(signal[1:] * np.conj(signal[:-1])) * rate / (2 * np.pi)


@workload(lambda n, rng: (np.linspace(0, np.pi, n), rng.standard_normal(8), 0.1 * rng.standard_normal(8)), small=20, full=100_000)
def frequency_response(frequency, b, a):
    """Gain in decibels and phase of a digital filter."""
    z = np.exp(-1j * frequency)
    above, below = np.zeros_like(z), np.zeros_like(z)
    for k in range(len(b)):
        above = above * z + b[k]
        below = below * z + a[k]
    h = above / (1 + z * below)
    return 20 * np.log10(np.abs(h)), np.angle(h)


@workload(lambda n, rng: (rng.uniform(0, 10, 32), rng.uniform(0.5, 1, 32), np.linspace(-1.5, 1.5, n)), small=15, full=5000)
def antenna_pattern(place, weight, angle):
    """The power that a row of antennas sends in each direction."""
    phase = 2 * np.pi * place * np.sin(angle)[:, None]
    field = (weight * np.exp(1j * phase)).sum(axis=1)
    return np.abs(field) ** 2
