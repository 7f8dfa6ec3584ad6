"""The check of an NVIDIA GPU: are the CUDA back end's answers right there, and how near to the device's limits are its times?"""
