"""What the functions share: operands and promotion, memory order, versions of NumPy."""
