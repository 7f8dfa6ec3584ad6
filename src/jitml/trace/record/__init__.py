"""Recording: the trace under way, its guards, pytrees, and the values of this call."""
