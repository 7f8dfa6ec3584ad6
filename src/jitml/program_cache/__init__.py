"""Program cache: programs for the CPU that an earlier process has compiled, found on disk by the graph they were made from."""
