"""Hooks: what rewritten code calls at run time, by Python's data model."""
