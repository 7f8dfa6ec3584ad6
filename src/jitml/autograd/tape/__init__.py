"""The tape: derivatives of what runs as Python, operation by operation."""
