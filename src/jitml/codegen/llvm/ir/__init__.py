"""Writing LLVM IR: builder, declarations, conversions, floating-point flags."""
