"""Regions: `if`, `for` and `while` captured into the graph, and the joins behind them."""
