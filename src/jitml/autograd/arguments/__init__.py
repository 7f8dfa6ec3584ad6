"""Differentiated arguments: what `argnums`, attributes and own copies of arguments are to a derivative."""
