"""`%load_ext jitml`, in a kernel of Jupyter's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.jupyter import in_kernel

CELLS = {
    "setup": "import numpy as np, jitml\n%load_ext jitml\nx = np.ones(1000)",
    "of a cell": """%%jit_explain
calls = []
@jitml.jit
def doubled(x):
    return np.exp(x) * 2
class Model:
    @jitml.jit
    def scaled(self, x, by=1.0):
        return x * by
results = [doubled(y) for y in (x.astype(np.float32), x)]
Model().scaled(results[1], by=3.0)
print("ran", len(results))""",
    "of a line": "%jit_explain doubled(x)",
    "of a plain function": "%jit_explain (lambda x: np.sqrt(x) + 1)(x=x)",
    "runs nothing": "def counted(x):\n    print('it', 'ran')\n    return x\n%jit_explain counted(x)",
    "no call": "%jit_explain doubled",
    "no syntax": "%jit_explain doubled(",
    "no jitted function": "%%jit_explain\nnp.ones(3)",
    "an error": "%%jit_explain\ndoubled(x)\nraise KeyError('mine')",
    "refused": "import types\ndef odd(x):\n    return eval('x')\n%jit_explain odd(x)",
    "what is left": "print([n for n in globals() if 'jitml_' in n], get_ipython().ast_transformers)",
    "the last value": "doubled.explain(x)",
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    pytest.importorskip("ipykernel")
    folder: Path = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JITML_PROGRESS", "0")  # a bar comes after a second, which a busy machine needs: it is HTML, too
        return dict(zip(CELLS, in_kernel([*CELLS.values()], str(folder))))


def test_a_cell_runs_and_each_function_that_it_calls_is_explained(said: dict[str, str]) -> None:
    told = said["of a cell"]
    assert "ran 2" in told and told.count("text/html") == 2
    assert "ndarray, is float64[1000]" in told and "ndarray, is float32[1000]" not in told  # the last call's
    assert told.index("doubled") < told.index("Model.scaled")
    assert "]:4\\n" in told  # `In[2]:4`, the line in the cell below the magic


def test_a_line_is_explained_and_not_run(said: dict[str, str]) -> None:
    assert "kernel k0_mul" in said["of a line"] and "text/html" in said["of a line"]
    assert "sqrt" in said["of a plain function"] and "text/html" in said["of a plain function"]
    assert "host call print" in said["runs nothing"] and "it ran" not in said["runs nothing"]


@pytest.mark.parametrize("name", ["no call", "no syntax"])
def test_what_is_no_call_is_told_how_to_write_one(said: dict[str, str], name: str) -> None:
    assert "write %jit_explain f(x)" in said[name]


def test_what_there_is_nothing_to_explain_of_says_so(said: dict[str, str]) -> None:
    assert "the cell calls no jitted function" in said["no jitted function"]
    assert "KeyError" in said["an error"] and "text/html" not in said["an error"]
    assert "odd" in said["refused"] and "runs as Python" in said["refused"] and "Traceback" not in said["refused"]


def test_a_cell_leaves_nothing_behind(said: dict[str, str]) -> None:
    assert "[] []" in said["what is left"]


def test_a_report_is_shown_as_html_and_as_lines(said: dict[str, str]) -> None:
    assert "text/html" in said["the last value"]
    assert "'text/plain': '<jit doubled" in said["the last value"]  # not as a string in quotes
