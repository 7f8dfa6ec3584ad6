"""NVIDIA's libraries: how each is found, and what it is told, through ctypes."""
