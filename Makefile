# The two commands of the README, and what they need. Only Python 3.11+ and make must be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint types layers unit second servers bench serve clean

demo: $(READY)
	$(BIN)/bardo demo

test: lint types layers unit second

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports

unit: $(READY)
	$(BIN)/python -m pytest -n auto

# The same tests on the other of 3.11 and 3.13, where this machine has both.
second: $(READY)
	@tools/second-python.sh

bench: $(READY)
	$(BIN)/python -m benchmarks

serve: $(READY)
	$(BIN)/bardo serve

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	touch $(READY)

clean:
	rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
