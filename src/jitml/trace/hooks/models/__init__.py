"""Object models: how rewritten code treats the values of each kind, by Python's data model."""
