"""Diagnostics: what users are told while programs are compiled, beside errors."""
