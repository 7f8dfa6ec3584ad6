"""Verification: compiled answers are compared with plain NumPy's on the same state."""
