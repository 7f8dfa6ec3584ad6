"""Writing CUDA C++: builder, functions of scalars, expressions, statements, launches."""
