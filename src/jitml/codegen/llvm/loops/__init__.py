"""Kernels as LLVM IR: loops, vectors, memory access, safepoints."""
