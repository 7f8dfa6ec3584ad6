"""Sorts of our own as LLVM IR: long rows, and selection from them."""
