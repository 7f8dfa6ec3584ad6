"""Traced values: arrays, numbers, texts and objects as tracers, and what is known of each."""
