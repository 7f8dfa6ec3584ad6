"""Host calls: Python that the compiled program calls back."""
