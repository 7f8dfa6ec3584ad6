"""Cubins: machine code of a GPU, and the registers, memory and parameters of its kernels, read from the ELF file that it is."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from jitml.records import dataclass, field

# Attributes of the sections .nv.info, of the whole file and of a kernel each.
_REGISTERS, _FRAME, _PARAMETER = 0x2F, 0x11, 0x17
_BYTES = 4  # the format of records whose payload follows; others have two bytes of value at most
_RESERVED = 1024  # bytes of shared memory that are the system's; the section of each kernel that has one counts them in
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


@dataclass(frozen=True, slots=True)
class Resources:
    """What a kernel takes.

    Args:
        registers: of each thread.
        frame: bytes of local memory of each thread: registers that are spilled, and arrays that are indexed at run time.
        shared: bytes of static shared memory of each block; from sm_90 on the system takes 1024 more.
        parameters: bytes of each parameter.
    """

    registers: int
    frame: int
    shared: int
    parameters: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cubin:
    """
    Args:
        arch: what it is for: `sm_90`.
        log: of the compiler; empty if the code has been kept from before.
        resources: of each kernel, by its name.
    """

    code: bytes = field(repr=False)
    arch: str
    log: str = ""
    resources: Mapping[str, Resources] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "resources", read_resources(self.code))


def read_resources(code: bytes) -> dict[str, Resources]:
    """Of each kernel, in the order of the file.

    Raises:
        ValueError: it is no ELF file of 64 bits, or not a whole one.
    """
    try:
        return _read_resources(code)
    except (struct.error, IndexError) as error:
        raise ValueError(f"not a whole ELF file: {error}") from error


def _read_resources(code: bytes) -> dict[str, Resources]:
    sections = _sections(code)
    symbols = _symbols(code, sections)
    registers, frames = dict[str, int](), dict[str, int]()
    for attribute, payload in _records(code, *sections[".nv.info"][:2]) if ".nv.info" in sections else ():
        if attribute in (_REGISTERS, _FRAME):
            symbol, value = struct.unpack_from("<II", payload)
            (registers if attribute == _REGISTERS else frames)[symbols[symbol]] = value
    reserved = _RESERVED if ".nv.shared.reserved.0" in sections else 0
    found = {}
    for name, (offset, size) in sections.items():
        kernel = name.removeprefix(".nv.info.")
        if name.startswith(".nv.info.") and f".text.{kernel}" in sections:
            parameters = dict(
                _parameter(payload) for attribute, payload in _records(code, offset, size) if attribute == _PARAMETER
            )
            shared = max(sections.get(f".nv.shared.{kernel}", (0, 0))[1] - reserved, 0)
            sizes = tuple(parameters[n] for n in sorted(parameters))
            found[kernel] = Resources(registers.get(kernel, 0), frames.get(kernel, 0), shared, sizes)
    return found


def _sections(code: bytes) -> dict[str, tuple[int, int]]:
    """Offset and size of each section; those of what is in no file, such as shared memory, are no places in it."""
    if code[:5] != b"\x7fELF\x02":
        raise ValueError("no ELF file of 64 bits")
    (table,) = struct.unpack_from("<Q", code, 40)
    entry, count, names = struct.unpack_from("<HHH", code, 58)
    headers = [_SECTION.unpack_from(code, table + n * entry) for n in range(count)]
    return {_text(code, headers[names][4] + header[0]): (header[4], header[5]) for header in headers}


def _symbols(code: bytes, sections: Mapping[str, tuple[int, int]]) -> list[str]:
    offset, size = sections[".symtab"]
    strings = sections[".strtab"][0]
    return [_text(code, strings + entry[0]) for entry in _SYMBOL.iter_unpack(code[offset : offset + size])]


def _text(code: bytes, start: int) -> str:
    return code[start : code.index(b"\0", start)].decode()


def _records(code: bytes, offset: int, size: int) -> Iterator[tuple[int, bytes]]:
    """The records of a section .nv.info: attribute and payload."""
    end = offset + size
    while offset < end:
        form, attribute, value = struct.unpack_from("<BBH", code, offset)
        offset += 4
        if form == _BYTES:
            yield attribute, code[offset : offset + value]
            offset += value


def _parameter(payload: bytes) -> tuple[int, int]:
    """Which one, and its size in bytes."""
    _, ordinal, _, packed = struct.unpack_from("<IHHI", payload)
    return ordinal, packed >> 18
