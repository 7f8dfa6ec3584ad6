"""The text form of kernels and kernel programs."""
