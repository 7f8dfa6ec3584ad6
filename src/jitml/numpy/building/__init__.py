"""Building arrays: creation, grids, joining, padding."""
