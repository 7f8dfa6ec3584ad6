"""Do thousands of drawn programs agree with NumPy?  Counts, and a small runnable file for each way in which one does not.

    python tests/programs/fuzz.py [--programs N] [--seed S] [--shape mixed|numeric|people|breaks] [--processes P]
        [--seconds LIMIT] [--layer machine|graph|program] [--backend llvm|cuda|emulation] [--until SECONDS] [--log FILE]
        [--no-shrink]

Program n of a seed is the same one everywhere; `--only n` judges it alone and prints it. Programs run in worker processes: one
that crashes or does not come back within the limit is a failure like any other, and is made smaller like any other. The backend
"emulation" is CUDA's on the emulated GPU, whose threads run in another order for each program.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ.setdefault("JITML_CHECK", "1")
os.environ.setdefault("JITML_TRIAL", "0")  # all that can be compiled is
os.environ.setdefault("JITML_VERIFY", "never")  # what is wrong shall be found here, not repaired

from jitml.codegen.cuda.emit import launches
from programs.drawn.choices import Choices
from programs.drawn.outcomes import LAYERS, Verdict, judge
from programs.drawn.program import SHAPES, Drawn, write_program
from programs.drawn.shrinking import shrink
from support.cuda_emulation import ORDERS
from support.cuda_emulation.device import EmulatedDevice, emulated

_EMULATED = "FUZZ_EMULATED"  # whether there is an emulated GPU
_RENEW_AFTER = 250  # programs: compiled code is never given back
_parsing = threading.Lock()  # Python 3.11 loses count of its own recursion where two threads parse
_LAST_WORDS = 4000  # bytes of what a crashed process told
_SMALLEST_OF = 1  # how many failures of one kind are made smaller
FOOTER = """

if __name__ == "__main__":
    import jitml

    compiled = jitml.jit(program)
    for call in range(3):
        for name, function in (("NumPy", program), ("jitml", compiled)):
            args = arguments(call)
            try:
                print(call, name, repr(function(*args)), "arguments:", args)
            except Exception as error:
                print(call, name, repr(error), "arguments:", args)
"""


def drawn(seed: int, number: int, shape: str) -> Drawn:
    """Program `number` of a seed; those of the shape "mixed" are by turns of each other shape."""
    if shape == "mixed":
        shape = SHAPES[number % len(SHAPES)]
    with _parsing:
        return write_program(Choices.seeded(f"{seed}:{number}"), shape=shape)


class Worker:
    """A process that judges programs, one at a time."""

    def __init__(self, layer: str, seconds: float) -> None:
        self.layer, self.seconds = layer, seconds
        self.process: subprocess.Popen[str] | None = None
        self.told: IO[bytes]
        self.judged = 0

    def judge(self, program: Drawn) -> Verdict:
        """The verdict; "crash" and "hang" are found out here."""
        process = self._ready()
        assert process.stdin is not None and process.stdout is not None
        request = json.dumps({"text": program.text, "exact": program.exact, "layer": self.layer})
        try:
            process.stdin.write(request + "\n")
            process.stdin.flush()
            if not select.select([process.stdout], [], [], self.seconds)[0]:
                self.close()
                return Verdict("hang", f"no answer within {self.seconds:g} seconds")
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            status, words = process.wait(), self._last_words()
            self.close()
            return Verdict("crash", f"the process ended with status {status}{words}")
        return Verdict(**json.loads(answer))

    def _ready(self) -> subprocess.Popen[str]:
        if self.judged >= _RENEW_AFTER:
            self.close()
        if self.process is None:
            command = [sys.executable, "-X", "faulthandler", __file__, "--worker"]
            self.told = TemporaryFile()  # noqa: SIM115  # open as long as the process
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.told, text=True)
            assert self.process.stdout is not None
            self.process.stdout.readline()  # it says that it is there: what imports take on a busy machine is no program's
            self.judged = 0
        self.judged += 1
        return self.process

    def _last_words(self) -> str:
        """The end of what the process told on standard error, programs' output included."""
        self.told.seek(0)
        words = self.told.read()[-_LAST_WORDS:].decode(errors="replace").strip()
        return f": {words}" if words else ""

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.told.close()
            self.process = None


@contextmanager
def on_small_gpu() -> Iterator[EmulatedDevice]:
    """An emulated GPU, with blocks for two processors where only the run knows how long a loop is: each thread takes its time."""
    with mock.patch.object(launches, "PROCESSORS", 2), emulated(level="0") as device:
        yield device


def serve(device: EmulatedDevice | None) -> None:
    """A worker's life: programs on standard input, verdicts on standard output."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what programs print is no answer
    print("ready", file=answers, flush=True)
    for number, line in enumerate(sys.stdin):
        request = json.loads(line)
        if device is not None:
            device.order = ORDERS[number % len(ORDERS)]
        try:
            verdict = judge(request["text"], request["exact"], request["layer"])
        except Exception as error:
            verdict = Verdict("different", f"the comparison itself raised {error!r}")
        answers.write(json.dumps(asdict(verdict)) + "\n")
        answers.flush()


def kind_of(verdict: Verdict, about: str = "") -> str:
    """What failures have in common that are probably one: the words of the detail without its values, and the objects used."""
    detail = re.sub(r"^call \d+: ", "", verdict.detail)
    if detail.startswith("raised"):
        detail = re.sub(r"0x\w+|\d+|'[^']*'", "#", detail)[:110]
    elif detail.startswith("warnings"):
        detail = "warnings"
    else:
        detail = re.sub(r"[\[(].*|\d.*", "", detail, flags=re.DOTALL)[:40]
    return f"{verdict.kind}: {detail}" + (f" [{about}]" if about else "")


@dataclass
class Tally:
    """What a run has found."""

    kinds: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    failures: dict[str, list[int]] = field(default_factory=dict)
    host_calls: int = 0
    replayed: int = 0
    raised: int = 0

    def add(self, number: int, verdict: Verdict, about: str = "") -> bool:
        """Take note of a verdict; whether it is a failure to be made smaller."""
        self.kinds[verdict.kind] += 1
        self.host_calls += verdict.host_calls > 0
        self.replayed += verdict.replays > 0
        self.raised += verdict.raised > 0
        if verdict.kind in ("refused", "uncompiled"):
            self.reasons[re.sub(r"\d+", "#", verdict.detail.removeprefix("call 0: "))[:120]] += 1
        if verdict.kind in ("equal", "refused", "uncompiled", "invalid", "sensitive"):
            return False
        seen = self.failures.setdefault(kind_of(verdict, about), [])
        seen.append(number)
        return len(seen) <= _SMALLEST_OF

    def report(self) -> str:
        total = max(self.kinds.total(), 1)
        lines = [f"{self.kinds.total()} programs: " + ", ".join(f"{n} {kind}" for kind, n in self.kinds.most_common())]
        compiled = self.kinds["equal"] - self.host_calls
        lines.append(f"{100 * compiled / total:.1f} % compiled with no host call; {self.host_calls} with host calls,")
        lines.append(f"{self.replayed} with calls that NumPy answered, {self.raised} raised an exception in NumPy")
        lines += [f"  refused {n:5d}  {reason}" for reason, n in self.reasons.most_common(40)]
        lines += [f"  FAILED  {len(numbers):5d}  {kind}   {numbers[:5]}" for kind, numbers in self.failures.items()]
        return "\n".join(lines)


def write_reproducer(directory: Path, seed: int, number: int, verdict: Verdict, text: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"seed{seed}_program{number}.py"
    heading = "".join(f"# {line}\n" for line in f"{verdict.kind}: {verdict.detail}".splitlines())
    path.write_text(heading + text.rstrip("\n") + "\n" + FOOTER)
    return path


def campaign(options: argparse.Namespace) -> Tally:
    """Judge programs in several processes; make the failures small."""
    tally, lock, drawing = Tally(), threading.Lock(), threading.Lock()
    log = options.log.open("a") if options.log else None
    numbers: Iterator[int] = iter(range(options.first, options.first + options.programs))
    end = time.monotonic() + options.until

    def work() -> None:
        worker = Worker(options.layer, options.seconds)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None or time.monotonic() > end:
                break
            with drawing:  # CPython 3.11 raises SystemError where two threads parse at once
                program = drawn(options.seed, number, options.shape)
            verdict = worker.judge(program)
            with lock:
                interesting = tally.add(number, verdict, program.about)
                if (judged := tally.kinds.total()) % 1000 == 0:
                    failed = sum(map(len, tally.failures.values()))
                    print(f"{judged} of {options.programs} programs, {failed} failed", file=sys.stderr, flush=True)
                if log is not None and verdict.kind != "equal":
                    print(json.dumps({"program": f"{options.seed}:{number}", **asdict(verdict)}), file=log, flush=True)
            if interesting and options.shrink:
                text, verdict = smallest(worker, program, verdict)
                path = write_reproducer(options.directory, options.seed, number, verdict, text)
                print(f"program {number}: {verdict.kind}: {verdict.detail[:300]}\n  {path}", flush=True)
        worker.close()

    threads = [threading.Thread(target=work) for _ in range(options.processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if log is not None:
        log.close()
    return tally


def smallest(worker: Worker, program: Drawn, verdict: Verdict) -> tuple[str, Verdict]:
    """The program made small, with its own verdict."""
    kind = kind_of(verdict)
    latest = verdict

    def fails(text: str) -> bool:
        nonlocal latest
        found = worker.judge(Drawn(text, program.exact))
        if kind_of(found) != kind:
            return False
        latest = found
        return True

    return shrink(program.text, fails, 20 if verdict.kind == "hang" else 200), latest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--shape", choices=("mixed", *SHAPES), default="mixed", help="what programs are made of")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=30.0, help="limit for one program")
    parser.add_argument("--layer", choices=LAYERS, default="machine", help="what runs: machine code, or an interpreter")
    parser.add_argument("--backend", help="of the machine code, in place of the one that JITML_BACKEND names; or the emulation")
    parser.add_argument("--until", type=float, default=float("inf"), help="seconds after which no program is begun")
    parser.add_argument("--directory", type=Path, default=Path("out/fuzz"), help="for reproducers")
    parser.add_argument("--log", type=Path, help="file that gets a line of JSON for each program that is not equal")
    parser.add_argument("--shrink", action=argparse.BooleanOptionalAction, default=True, help="make failures small")
    parser.add_argument("--only", type=int, help="judge this program alone, in this process")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    settings = {"JITML_BACKEND": "cuda", _EMULATED: "1"} if options.backend == "emulation" else {"JITML_BACKEND": options.backend}
    if options.backend and not settings.items() <= os.environ.items():
        # jitml has read the environment when it was imported: once more, from the start.
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | settings)
    if options.worker or options.only is not None:
        with on_small_gpu() if os.environ.get(_EMULATED) else nullcontext() as device:
            if options.worker:
                serve(device)
                return
            program: Any = drawn(options.seed, options.only, options.shape)
            print(program.text)
            print(judge(program.text, program.exact, options.layer))
    else:
        tally = campaign(options)
        print(tally.report())
        sys.exit(bool(tally.failures))


if __name__ == "__main__":
    main()
