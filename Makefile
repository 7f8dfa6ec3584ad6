# Everything here starts from nothing: a Python 3.11 or newer, and the package registry.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

# Tests start some hundred processes; each would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-quick test-full test-people test-all test-interpreter fuzz interrupts lint types bench bench-autodiff gpu-check gpu-compile docs release-check clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "jitml needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[demo]'
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	@touch $@

$(VENV)/.docs: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[dev,docs]'
	@touch $@

$(VENV)/.release: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet build twine
	@touch $@

$(VENV)/.bench: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[bench]'
	@touch $@

demo: $(VENV)/.demo  ## train a network, filter a photograph, price options: NumPy beside jitml
	$(BIN)/python -m jitml demo

# Parts of the suite are handed from a process that is late to one that is done; -n 0 runs it in one process.
PYTEST := $(BIN)/python -m pytest -n logical --dist worksteal
# Which rows of wide tables run is drawn by the commit (tests/support/effort.py).
TEST_TURN ?= $(shell git rev-parse --short=8 HEAD 2>/dev/null || echo 0)
test test-quick test-interpreter: export TEST_TURN := $(TEST_TURN)

test: $(VENV)/.dev  ## the tests, in as many processes as there are cores; PYTEST_ARGS="-n 1 -x" and the like
	$(PYTEST) $(PYTEST_ARGS)

test-quick: $(VENV)/.dev  ## in a minute: something of every layer (tests/quick.txt)
	$(PYTEST) $$(grep -v '^#' tests/quick.txt) $(PYTEST_ARGS)

test-full: $(VENV)/.dev  ## the tests, with tables gone through in full and more drawn
	TEST_FULL=1 $(PYTEST) $(PYTEST_ARGS)

$(VENV)/.people: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet -e '.[people]'
	@touch $@

test-people: $(VENV)/.people  ## jitted functions with pandas, polars, xarray, dask, Ray, Numba and others, which are installed for it
	$(PYTEST) tests/people $(PYTEST_ARGS)

test-all:  ## the tests on every Python from 3.11 to 3.14 on this machine
	@for v in 3.11 3.12 3.13 3.14; do \
	  if python$$v -c '' 2>/dev/null; then echo "== Python $$v"; $(MAKE) test PYTHON=python$$v VENV=.venv-$$v || exit 1; \
	  else echo "== Python $$v is not on this machine"; fi; done

# Tests of whole programs, tables of them included, but for those that are about machine code or floating-point errors, of which the interpreter hears nothing.
INTERPRETED := $(addprefix tests/programs/test_,corpus.py everyday.py programs.py python_numbers.py people.py rare_calls.py) \
  $(addprefix tests/trace/,rewrite regions carried lists effects) \
  --deselect tests/programs/test_corpus.py::test_what_all_programs_share_is_no_part_of_their_code \
  $(foreach row,an_error_state_around_functions two_names_for_the_dict,--deselect "tests/programs/test_everyday.py::test_agrees[$(row)]")

test-interpreter: $(VENV)/.dev  ## whole programs, run by the interpreter in place of machine code
	JITML_BACKEND=interpreter $(PYTEST) $(INTERPRETED) $(PYTEST_ARGS)

fuzz: $(VENV)/.dev  ## N random programs of SEED (SHAPE=numeric|people|breaks|mixed, BACKEND=llvm|cuda) against NumPy; what fails is made small and written to out/fuzz
	$(BIN)/python tests/programs/fuzz.py --programs $(or $(N),10000) --seed $(or $(SEED),0) --shape $(or $(SHAPE),mixed) --backend $(or $(BACKEND),llvm)

interrupts: $(VENV)/.dev  ## exceptions from outside, forks and starved children, at drawn moments: nothing may stay behind
	$(BIN)/python tests/programs/interrupts.py --seed $(or $(SEED),0)

lint: $(VENV)/.dev  ## style, types, spelling and import direction
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell *.md docs bench/*.md examples
	$(BIN)/python -m pytest tests/test_architecture.py

bench: $(VENV)/.bench  ## the benchmarks, beside NumPy, Numba, JAX and autograd; writes bench/results/
	$(BIN)/python -m bench.suite
	$(BIN)/python -m bench.corpus
	$(BIN)/python -m bench.cold
	$(BIN)/python -m bench.verification
	$(BIN)/python -m bench.overhead
	$(BIN)/python -m bench.bandwidth
	$(BIN)/python -m bench.derivatives

gpu-compile: $(VENV)/.dev  ## whole programs through NVRTC for three architectures, with no GPU: spills, registers, seconds (ARGS="--only NAME")
	$(BIN)/python tests/tools/gpu_compile.py $(ARGS)

# No environment is made: CUDA's packages, and the libraries beside which it is measured, are those of the machine.
gpu-check:  ## on a machine with an NVIDIA GPU: is the CUDA back end right (MODE=check), how fast is it (MODE=measure)? PYTHON has the packages
	PYTHONUNBUFFERED=1 PYTHONPATH=src:.:$$PYTHONPATH $(PYTHON) -m bench.gpu.check --mode $(or $(MODE),check) $(GPU_ARGS)

bench-autodiff: $(VENV)/.bench  ## derivatives alone, beside NumPy by hand, JAX and HIPS autograd
	$(BIN)/python -m bench.derivatives

docs: $(VENV)/.docs  ## write the pages that are made of the code, and build the site into out/site; all links are checked
	$(BIN)/python -m jitml.numpy.supported > docs/supported.md
	$(BIN)/python -m tests.trace.environment.understood_page > docs/understood.md
	$(BIN)/python -m tests.tools.settings_page > docs/reference/settings.md
	$(BIN)/python -m tests.tools.file_index
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

release-check: $(VENV)/.release  ## build sdist and wheel, look at them, and try them on each Python that is found (PYTHONS="python3.12 ...")
	$(BIN)/python -m tests.tools.release_check $(PYTHONS)

clean:  ## remove what the targets above made
	rm -rf .venv .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis out
