import numpy as np


def crc16(data):
    """CRC-16/CCITT of bytes, bit by bit, as in the standard's shift register."""
    crc = 0xFFFF
    for byte in data:
        crc ^= int(byte) << 8
        for _ in range(8):
            if crc & 0x8000:
                crc = ((crc << 1) ^ 0x1021) & 0xFFFF
            else:
                crc = (crc << 1) & 0xFFFF
    return crc


def make(size, rng):
    n = {"small": 20, "large": 30000}[size]
    return (rng.integers(0, 256, n).astype(np.uint8),)
