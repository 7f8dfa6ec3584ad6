import numpy as np


def fft_in_place(re, im):
    """Radix-2 transform in place: bit reversal, then butterflies by slices (Cooley and Tukey 1965)."""
    n = len(re)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j |= bit
        if i < j:
            re[i], re[j] = re[j], re[i]
            im[i], im[j] = im[j], im[i]
    length = 2
    while length <= n:
        half = length // 2
        angle = -2.0 * np.pi * np.arange(half) / length
        c, s = np.cos(angle), np.sin(angle)
        for start in range(0, n, length):
            low = slice(start, start + half)
            high = slice(start + half, start + length)
            t_re = re[high] * c - im[high] * s
            t_im = re[high] * s + im[high] * c
            re[high] = re[low] - t_re
            im[high] = im[low] - t_im
            re[low] += t_re
            im[low] += t_im
        length *= 2


def make(size, rng):
    n = {"small": 16, "large": 1 << 13}[size]
    return rng.standard_normal(n), rng.standard_normal(n)
