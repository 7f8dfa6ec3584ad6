"""Program cache: what an earlier process has traced, found by function and call, and compiled for the CPU, found by graph."""
