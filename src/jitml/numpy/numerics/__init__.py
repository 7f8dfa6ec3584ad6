"""Numerical methods: calculus, FFT, polynomials, special functions."""
