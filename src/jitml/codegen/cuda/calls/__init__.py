"""Library calls of kernel programs on a GPU: CUDA C++ of our own, functions of NVIDIA's libraries, calls back to Python."""
