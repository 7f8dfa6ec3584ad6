"""The other compilers: how each is given a workload."""
