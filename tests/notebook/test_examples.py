"""The notebooks in examples/: each runs from top to bottom in a kernel, and lies in git without outputs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))

# What is seen when a notebook has run: in the order of its cells, with others between.
SAID = {
    "1_first_steps": ("True", "NumPy", "jitml", "5.0 [3. 0. 2.]"),
    "2_simulation": ("True True", "50 1.4585", "250 1.26342", "83"),
    "3_gradients_and_a_fit": ("0.0770037", "[1.98 0.3  3.99 0.51]", "decay      0.299 +- 0.005"),
    "4_monte_carlo": ("3.13982", "3.13982 by NumPy alone", "0.6956661", "0.41, between 0.28 and 0.53"),
    "5_reading_explain": ("<jit softmax", "<jit norm", "50.0", "runs as Python: time.time()", "<Lowered"),
}


def test_there_are_five() -> None:
    assert [path.stem for path in NOTEBOOKS] == [*SAID]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_cleared(path: Path) -> None:
    notebook = json.loads(path.read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(code) >= 3 and notebook["cells"][0]["cell_type"] == "markdown"
    assert not [cell for cell in code if cell["outputs"] or cell["execution_count"] is not None]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_runs_and_says_what_it_should(path: Path) -> None:
    outputs = outputs_of(path)
    said = "\n".join(o.get("text", "") + o.get("data", {}).get("text/plain", "") for o in outputs)
    assert not [o for o in outputs if o.get("name") == "stderr"], "a warning"
    place = 0
    for part in SAID[path.stem]:
        place = said.find(part, place)
        assert place >= 0, (part, said)
    if path.stem == "5_reading_explain":
        assert sum("text/html" in o.get("data", {}) for o in outputs) == 4


def outputs_of(path: Path) -> list[Any]:
    """What the cells of a notebook give in a kernel of this Python; an error in one is raised."""
    pytest.importorskip("ipykernel")
    nbclient = pytest.importorskip("nbclient")
    import nbformat  # which nbclient brings
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    manager = AsyncKernelManager()
    launched = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager._kernel_spec = KernelSpec(argv=launched, display_name="this Python", language="python")  # none is installed
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, km=manager).execute(cwd=str(path.parent))
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]
