"""Numerical methods: calculus, FFT, polynomials, special functions."""

from jitml.numpy.numerics import calculus, fft, polynomials, special

TOPICS = (calculus, polynomials, fft, special)
