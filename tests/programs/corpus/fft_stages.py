import numpy as np


def fft_stages(re, im):
    """Discrete Fourier transform of a power of two by Stockham's stages; real and imaginary parts apart."""
    n = re.size
    re, im = re.copy(), im.copy()
    half = n // 2
    block = 1
    while block < n:
        angle = -np.pi * np.arange(block) / block
        c, s = np.cos(angle), np.sin(angle)
        a_re, b_re = re[:half].reshape(-1, block), re[half:].reshape(-1, block)
        a_im, b_im = im[:half].reshape(-1, block), im[half:].reshape(-1, block)
        t_re = b_re * c - b_im * s
        t_im = b_re * s + b_im * c
        re = np.stack([a_re + t_re, a_re - t_re], axis=1).reshape(-1)
        im = np.stack([a_im + t_im, a_im - t_im], axis=1).reshape(-1)
        block *= 2
    return re, im


def make(size, rng):
    n = {"small": 32, "large": 1 << 17}[size]
    return rng.standard_normal(n), rng.standard_normal(n)
