"""Derivatives: graphs to graphs (`jvp.py`, `transpose.py`, `linearize.py`), and the functions that users call (`api/`)."""

from jitml.autograd import rules as rules
