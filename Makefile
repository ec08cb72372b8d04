# Two commands: `make demo` and `make test`. Both set everything up first.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# the real data, where it lies beside the checkout; a user's machine has none and fetches what it needs
ifneq ($(wildcard ../shared/data),)
export VARITEXT_DATA ?= $(abspath ../shared/data)
endif

.PHONY: setup demo test lint docs benchmark clean

# each target installs what it needs and no more
.venv/.demo: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) -e '.[report]'
	touch $@

.venv/.all: .venv/.demo
	$(PIP) -e '.[parquet,xlsx,languages,segment,report,serve,peers,wordnet,ray,dev,docs]'
	# its dependencies (transformers and 30 more) are not needed for its ProdLDA
	$(PIP) --no-deps contextualized-topic-models
	touch $@

setup: .venv/.all

demo: .venv/.demo
	$(BIN)/varitext demo

# two test processes on two cores: one thread each
test: setup lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check src tests benchmarks docs/make examples
	$(BIN)/ruff format --check src tests benchmarks docs/make examples
	$(BIN)/mypy

# the documentation site, offline, into build/site
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# all figures of the pages of results: about an hour, and a day for the tables of the paper with all their seeds
benchmark: setup
	$(BIN)/python benchmarks/perplexity.py --json results/nvdm_perplexity.json
	$(BIN)/python benchmarks/generality.py --json results/nvdm_generality.json
	$(BIN)/python benchmarks/nvdm.py --json results/nvdm_speed.json
	$(BIN)/python benchmarks/counting.py --json > results/counting.json
	$(BIN)/python benchmarks/coherence.py --json results/coherence.json
	$(BIN)/python benchmarks/nasm.py --json results/nasm_speed.json
	$(BIN)/varitext benchmark
	$(BIN)/varitext benchmark --growth
	$(BIN)/python benchmarks/scaling_estimate.py --json results/scaling.json
	$(BIN)/varitext reproduce all
	$(BIN)/python docs/make/tables.py

clean:
	rm -rf .venv build *.egg-info src/*.egg-info
