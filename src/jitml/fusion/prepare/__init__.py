"""Graph to graph, before grouping."""
