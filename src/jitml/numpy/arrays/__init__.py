"""Arrays: methods, indexing, views, masks."""
