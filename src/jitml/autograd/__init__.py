"""Derivatives: graphs to graphs, and the functions that users call."""

from jitml.autograd import rules as rules
