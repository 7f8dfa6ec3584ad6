"""Library calls of kernel programs as LLVM IR: BLAS, sorts, random numbers, calls back to Python."""
