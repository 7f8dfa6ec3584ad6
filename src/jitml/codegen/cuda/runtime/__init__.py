"""The runtime of the CUDA back end: devices, and programs that run on them."""
