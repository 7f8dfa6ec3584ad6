"""Which public programs are measured?  Entries of `lists/*.toml`, a file for each repository."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LISTS = Path(__file__).parent / "lists"


@dataclass(frozen=True)
class Program:
    """A function or method of a repository, with the call by which it is measured.

    `make` is run before each call, with `rng` seeded by the call's number, and binds the arguments; `call` is an expression, or
    statements whose names are results. Both see the names of the file. `jit` names what is decorated, `*` is everything but
    `skip`; `setup` is run once; `directories` are on the path too.
    """

    name: str
    repository: str
    commit: str
    file: str
    jit: tuple[str, ...]
    make: str
    call: str
    setup: str = ""
    skip: tuple[str, ...] = ()
    only_definitions: bool = False
    directories: tuple[str, ...] = ()

    @property
    def directory(self) -> str:
        """Where its repository lies below the directory of checkouts."""
        return self.repository.replace("/", "+")


def read_list(path: Path) -> Iterator[Program]:
    content: dict[str, Any] = tomllib.loads(path.read_text())
    repository, commit, common = content.pop("repository"), content.pop("commit"), content.pop("common", {})
    for name, entry in content.items():
        entry = common | entry
        entry["jit"] = tuple(entry["jit"].split())
        entry["skip"] = tuple(entry.get("skip", "").split())
        entry["directories"] = tuple(entry.get("directories", "").split())
        entry.setdefault("make", "")
        yield Program(f"{path.stem}/{name}", repository, commit, **entry)


def all_programs() -> list[Program]:
    return [program for path in sorted(LISTS.glob("*.toml")) for program in read_list(path)]


def how_to_get(programs: list[Program]) -> str:
    """The commands that make the checkouts."""
    repositories = {program.directory: (program.repository, program.commit) for program in programs}
    return "\n".join(
        f"git clone https://github.com/{repository} {directory} && git -C {directory} checkout {commit}"
        for directory, (repository, commit) in sorted(repositories.items())
    )
