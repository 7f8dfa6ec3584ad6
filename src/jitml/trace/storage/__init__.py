"""The memory model: arrays as views of storages, strides, index maps."""
