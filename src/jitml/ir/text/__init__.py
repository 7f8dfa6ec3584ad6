"""The text form of graphs, read back (`ir/printer.py` writes it)."""
