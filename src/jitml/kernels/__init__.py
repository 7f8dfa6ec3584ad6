"""The kernel IR: loops over buffers, programs of kernels and library calls. The contract of all back ends."""
