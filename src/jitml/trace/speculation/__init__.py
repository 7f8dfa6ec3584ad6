"""Speculation: what the program assumes of a call, and what earlier attempts to trace have taught."""
