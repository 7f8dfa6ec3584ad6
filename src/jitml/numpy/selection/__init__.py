"""Selection: conditions, sets, quantiles, index helpers."""
