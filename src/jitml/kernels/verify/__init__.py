"""What makes kernels and kernel programs valid."""
