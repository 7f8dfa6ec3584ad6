"""Pickling: jitted and transformed functions, their methods and compositions, by name and by value."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import cloudpickle
import pytest

import jitml
from programs import pickled

# Another process, which has not the file that the functions come from.
LOADED = """
import pickle, sys, warnings
warnings.simplefilter("error")
with open(sys.argv[1], "rb") as file:
    cases = pickle.load(file)
for name, (f, args, want) in cases.items():
    got = repr(pickle.loads(f)(*pickle.loads(args)))
    if got != want:
        print(name, got, want)
print("all")
"""


def ran(*arguments: str) -> tuple[str, str]:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=120)
    return done.stdout, done.stderr


def test_by_name() -> None:
    assert not pickled.unlike(lambda f: pickle.loads(pickle.dumps(f)), pickled.NAMED)
    assert pickle.loads(pickle.dumps(pickled.decorated)) is pickled.decorated
    assert pickle.loads(pickle.dumps(pickled.sloped)) is pickled.sloped
    assert len(pickle.dumps(pickled.NAMED["jit of grad"][0])) < 1000  # no source


def test_copies() -> None:
    assert not pickled.unlike(copy.copy, pickled.NAMED | pickled.NAMELESS)
    assert not pickled.unlike(copy.deepcopy, pickled.NAMED | pickled.NAMELESS)


@pytest.mark.parametrize("name", pickled.NAMELESS)
def test_what_has_no_name_is_refused_where_names_are_needed(name: str) -> None:
    with pytest.raises((pickle.PicklingError, AttributeError), match="Can't"):
        pickle.dumps(pickled.NAMELESS[name][0])


def test_by_value() -> None:
    """cloudpickle sends names of modules as names, and the rest as it is."""
    assert not pickled.unlike(lambda f: pickle.loads(cloudpickle.dumps(f)), pickled.NAMED | pickled.NAMELESS)
    assert cloudpickle.loads(cloudpickle.dumps(pickled.decorated)) is pickled.decorated
    cloudpickle.register_pickle_by_value(pickled)
    try:
        sent = cloudpickle.loads(cloudpickle.dumps(pickled.decorated))
    finally:
        cloudpickle.unregister_pickle_by_value(pickled)
    assert isinstance(sent, jitml.api.Jit) and sent is not pickled.decorated and sent.variants == ()


def test_main_is_sent_to_a_process_that_has_no_source(tmp_path: Path) -> None:
    """What `python file.py` defines, and a notebook: it is compiled there, too."""
    script = tmp_path / "script.py"
    script.write_text(Path(pickled.__file__).read_text())
    sent = str(tmp_path / "sent")
    assert ran(str(script), sent) == ("", "")
    os.remove(script)
    assert ran("-c", LOADED, sent) == ("all\n", "")
