"""The libraries: how each is given a workload."""
