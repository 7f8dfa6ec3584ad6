"""Storage sharing: which buffers can live in the same storage although one is made from the other?

Updates in place and hand-overs.

A written buffer may take the storage of one that the same step reads for the last time, if no element is overwritten
before it has been read. This is decided from the kernel's accesses alone: `may_share`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from jitml.imports.late import late
from jitml.kernels.analysis.coincidence import coincide_only_together, stays_behind
from jitml.kernels.analysis.dependence import Access, Accesses, Path, accesses
from jitml.kernels.ir import Buffer, Kernel
from jitml.kernels.program import Call, KernelProgram, Region, Step
from jitml.memory.liveness import Lifetime, Uses, has_check
from jitml.memory.writeback import renamed, write_back
from jitml.records import dataclass, field, replace

if TYPE_CHECKING:
    from jitml.memory import rolling_buffers
else:
    rolling_buffers = late("jitml.memory.rolling_buffers")


def may_share(kernel: Kernel, read: str, written: str, known: Accesses | None = None) -> bool:
    """Whether the kernel computes the same if `written` is the same memory as `read`.

    True if every load of `read` stands before every store of `written`, and in each loop around both, the load and
    the store of one element happen in the same iteration, or the load in an earlier one. A load in a later nest, of a
    neighbour, or of one element for many forbids it.
    """
    known = known or accesses(kernel)
    if known.stores(read):
        return False
    stores = known.stores(written)
    return all(_comes_first(load, store, known) for load in known.loads(read) for store in stores)


def _comes_first(load: Access, store: Access, known: Accesses) -> bool:
    if load.path > store.path:
        return False
    common: list[Path] = [a for a, b in zip(load.loops, store.loops) if a == b]
    if not common or coincide_only_together(load.address, store.address, common, common, known):
        return True
    return stays_behind(load, store, known.last)


def same_layout(a: Buffer, b: Buffer) -> bool:
    """Whether element k of one lies at the same byte as element k of the other."""
    if a.dtype.itemsize != b.dtype.itemsize or a.size != b.size:
        return False
    return (a.strides is None and b.strides is None) or (a.shape == b.shape and a.element_strides == b.element_strides)


@dataclass
class StorageSharing:
    """Who lives in whose storage. `home` of a buffer is the buffer that its storage is named after."""

    program: KernelProgram
    uses: Sequence[Uses]
    lives: dict[str, Lifetime]
    in_place: list[tuple[str, str, int]] = field(default_factory=list)
    copies_before: dict[int, list[tuple[str, str]]] = field(default_factory=dict)  # step -> (from, to)
    copies_after: list[tuple[str, str]] = field(default_factory=list)
    write_backs: dict[str, Kernel] = field(default_factory=dict)  # outputs that need no more than their changes copied
    detours: dict[int, tuple[Kernel, ...]] = field(default_factory=dict)  # step -> what does the same in place
    returned: list[str] = field(default_factory=list)  # what detours store apart first
    temporaries: dict[str, Buffer] = field(default_factory=dict)  # that detours need
    dropped: set[int] = field(default_factory=set)  # copies that sharing has made needless

    def __post_init__(self) -> None:
        self._home = {name: name for name in self.program.buffers}
        self._together = {name: frozenset((name,)) for name in self.program.buffers}  # by their home
        self._known: dict[int, Accesses] = {}
        self._given: set[str] = set()
        written_back = set(self.program.aliases)
        self._own_memory = set(self.program.outputs) - written_back
        self._callers = {*self.program.inputs, *self.program.constants}
        self._bound_for: dict[str, str] = {}  # what becomes an aliased output by updates -> where that output must end up

    def home(self, name: str) -> str:
        while self._home[name] != name:
            name = self._home[name]
        return name

    def may_share(self, n: int, read: str, written: str) -> bool:
        """`may_share` for step n. Of the calls into libraries, a copy and a sort may run in place."""
        match self.program.steps[n]:
            case Kernel() as kernel:
                if n not in self._known:
                    self._known[n] = accesses(kernel)
                is_read_again = any(read in later.reads for later in self.detours.get(n, ())[1:])
                return not is_read_again and may_share(kernel, read, written, self._known[n])
            case Call(name) as call:
                return name in ("copy", "sort") or (call.updates.get(written) == read and read not in call.reads)
            case Region(updates=updates) as region:
                # The initial value is gone with the first iteration, so no body may read it under its own name.
                return updates.get(written) == read and read not in region.reads

    def give(self, n: int, read: str, written: str) -> None:
        """Let `written` live where `read` lived. Memory of the caller keeps its name."""
        before, after = self.home(read), self.home(written)
        if after in self._own_memory:
            before, after = after, before
        self._home[after] = before
        self._together[before] |= self._together[after]
        self._given.add(read)
        self.in_place.append((written, read, n))
        step = self.program.steps[n]
        if isinstance(step, Call) and step.name == "copy" and read in step.reads:
            self.dropped.add(n)  # a copy onto itself

    def has_room(self, memory: str, other: str) -> bool:
        """Whether `other` fits where `memory` is: of one layout, with as many elements that count, or in memory for the most.

        Outputs with memory of their own, and arrays of the caller, have no more than their true extents.
        """
        buffers, extents = self.program.buffers, self.program.extents
        if not same_layout(buffers[memory], buffers[other]):
            return False
        if not extents:
            return True
        homes = self.home(memory), self.home(other)
        if not any(home in self._own_memory or (home in self._callers and home in extents) for home in homes):
            return memory not in extents or extents.get(memory) == extents.get(other)
        together = self._together[homes[0]] | self._together[homes[1]]  # all that would lie there
        return len({extents.get(name) for name in together}) == 1

    def is_free(self, n: int, read: str, written: str) -> bool:
        """Whether `read` ends and `written` begins in step n, and their storages could be one."""
        if self.lives[read].last != n or self.lives[written].first != n or read in self._given:
            return False
        if not self.has_room(read, written):
            return False
        homes = {self.home(read), self.home(written)}
        callers = homes & self._callers
        if len(homes) != 2 or homes <= self._own_memory:
            return False
        return not callers or callers == {self.home(read)} == {self._bound_for.get(written)}

    def update(self, n: int, read: str, written: str) -> bool:
        """Let an update happen in place: as it is, or on a detour. False if neither can be."""
        if not self.may_share(n, read, written) and not self.detour(n, read, written):
            return False
        self.give(n, read, written)
        return True

    def detour(self, n: int, read: str, written: str) -> bool:
        """Store rows a little later, or all of what changes apart first."""
        kernel = self.program.steps[n]
        if not isinstance(kernel, Kernel) or n in self.detours or kernel.updates.get(written) != read:
            return False
        if written in kernel.reads:  # where nothing is yet
            return False
        apart = replace(self.program.buffers[written], name=f"{written}_new")
        delayed = rolling_buffers.delay(kernel, read, written, apart.name)
        if delayed is not None and delayed.rest is None:
            self.detours[n] = (delayed.update,)
            return True
        first, back = (None, None) if delayed is None else (delayed.update, delayed.rest)
        if first is None or back is None:
            first = renamed(kernel, written, apart.name)
            (target,) = (b for b in kernel.params if b.name == written)
            back = write_back(first, apart.name, target)
        if back is None or any(step == n and given in back.reads for _, given, step in self.in_place):
            return False
        self.temporaries[apart.name] = apart
        self._home[apart.name] = apart.name
        self._together[apart.name] = frozenset((apart.name,))
        self.lives[apart.name] = Lifetime(n, n)
        self.detours[n] = (first, replace(back, updates={written: read}))
        self.returned.append(written)
        return True

    def live_in(self, output: str, source: str, *, may_fail: bool) -> bool:
        """Compute an output right in the caller's array that it must end up in, if that can be.

        Not if a later step still reads the old contents, and not if a check could fail once they are half gone.

        Args:
            may_fail: whether it matters that a check fails after the array has changed.
        """
        chain = self.chain(output, source)
        start, first = chain[0], self.lives[chain[0]].first
        steps = self.program.steps
        if first >= len(steps) or not self.has_room(source, start):
            return False
        if self.lives[source].last > first or (may_fail and any(has_check(step) for step in steps[first:])):
            return False
        base = steps[first].updates.get(start)
        if source not in self.uses[first].reads:
            self.give(first, source, start)
        elif base not in (None, source) or not self.update(first, source, start):  # else the base is copied in before
            return False
        self._bound_for |= dict.fromkeys(chain, source)
        return True

    def write_later(self, output: str, back: Kernel) -> None:
        """Let a kernel write an output into the caller's array after the last step; what else it reads lives until then."""
        self.write_backs[output] = back
        for b in back.params:
            self.lives[b.name] = replace(self.lives[b.name], last=len(self.program.steps))

    def is_overwritten(self, name: str) -> bool:
        """Whether an output has been given the memory of this input, so that it holds something else at the end."""
        return self.home(name) in self._bound_for.values() or name in self.program.aliases.values()

    def chain(self, output: str, source: str) -> list[str]:
        """The buffers that become the output by updates, oldest first; one that becomes several outputs goes with the first."""
        names = [output]
        while (n := self.lives[names[0]].first) < len(self.program.steps):
            base = self.program.steps[n].updates.get(names[0])
            if base is None or base in self._callers or base in self.program.outputs or base in self._bound_for:
                break
            names.insert(0, base)
        return names


def share(program: KernelProgram, uses: Sequence[Uses], lives: dict[str, Lifetime], *, may_fail: bool = True) -> StorageSharing:
    """Decide every sharing and every copy that the program needs.

    Args:
        may_fail: whether the caller may see its arrays after a check has failed.
    """
    sharing = StorageSharing(program, uses, lives)
    for output, source in program.aliases.items():
        if not sharing.live_in(output, source, may_fail=may_fail) and (kernel := changed_part(sharing, output, source)):
            sharing.write_later(output, kernel)
    for n, step in enumerate(program.steps):
        _share_step(sharing, n, step)
    for output, source in program.aliases.items():
        if output not in sharing.write_backs and sharing.home(output) != source:
            sharing.copies_after.append((output, source))
    return sharing


def changed_part(sharing: StorageSharing, output: str, source: str) -> Kernel | None:
    """The kernel that writes an output back where it differs from the input: if one kernel updates a part, unread."""
    program = sharing.program
    writers = [n for n, uses in enumerate(sharing.uses) if output in uses.writes]
    if len(writers) != 1 or any(output in uses.reads for uses in sharing.uses):
        return None
    kernel = program.steps[writers[0]]
    if not isinstance(kernel, Kernel) or kernel.updates.get(output) != source:
        return None
    if any(sharing.is_overwritten(b.name) for b in kernel.params if b.name not in (output, source)):
        return None
    shape = next(b.shape for b in kernel.params if b.name == output)
    seen = [b for b in (*kernel.params, program.buffers[source]) if b.name == source and b.shape == shape]
    return write_back(kernel, output, seen[0]) if seen else None


def _share_step(sharing: StorageSharing, n: int, step: Step) -> None:
    for written, read in step.updates.items():
        if sharing.home(written) == sharing.home(read) or written in sharing.write_backs:
            continue
        if not (sharing.is_free(n, read, written) and sharing.update(n, read, written)):
            sharing.copies_before.setdefault(n, []).append((read, written))
    ending = [read for read in sharing.uses[n].reads if sharing.lives[read].first < sharing.lives[read].last == n]
    for written in sharing.uses[n].writes:
        if written not in step.updates and sharing.lives[written].first == n:
            _take_over(sharing, n, written, ending)


def _take_over(sharing: StorageSharing, n: int, written: str, candidates: Iterable[str]) -> None:
    for read in candidates:
        if sharing.is_free(n, read, written) and sharing.may_share(n, read, written):
            sharing.give(n, read, written)
            return
