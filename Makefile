# Two commands: `make demo` and `make test`. Both set everything up first.
PYTHON ?= python3
BIN := .venv/bin
# versions that are tested: constraints.txt, build/lowest.txt (the lower bounds), or /dev/null (the newest)
CONSTRAINTS ?= constraints.txt
# byte code is left to the first import: most modules of torch and its like are never imported
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c $(CONSTRAINTS)
# PyTorch's own index of wheels without CUDA; on Linux the package index has those with it
CPU_TORCH := https://download.pytorch.org/whl/cpu
ANSWERS := import signal, urllib.request; signal.alarm(2); urllib.request.urlopen('$(CPU_TORCH)/torch/')

# the real data, where it lies beside the checkout; a user's machine has none and fetches what it needs
ifneq ($(wildcard ../shared/data),)
export VARITEXT_DATA ?= $(abspath ../shared/data)
endif

.PHONY: setup demo test pytest test-arithmetic test-kernels style lint docs wheel benchmark peers clean

# each target installs what it needs and no more
PROJECT := pyproject.toml setup.py $(wildcard src/varitext/compiled/*.[ch])

.venv/.torch: $(CONSTRAINTS)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) 'pip>=25.1' 'setuptools>=77'  # dependency groups; what builds varitext
	@if $(BIN)/python -c "$(ANSWERS)" 2>/dev/null; then $(PIP) --no-deps --index-url $(CPU_TORCH) torch; \
	else echo "$(CPU_TORCH) does not answer: torch comes from the package index"; fi
	touch $@

.venv/.demo: .venv/.torch $(PROJECT)
	$(PIP) --no-build-isolation -e '.[report]'
	touch $@

.venv/.all: .venv/.torch $(PROJECT)
	$(PIP) --no-build-isolation -e '.[parquet,xlsx,languages,segment,report,effects,serve,minilm,ray]' --group dev
	$(BIN)/python -m pip check --disable-pip-version-check
	$(BIN)/varitext data fetch minilm >/dev/null || echo "tests of MiniLM are skipped"
	touch $@ .venv/.demo

setup: .venv/.all

# of varitext, its extras and its tests
build/lowest.txt: pyproject.toml
	mkdir -p build
	$(PYTHON) -c "import re, tomllib; told = tomllib.load(open('pyproject.toml', 'rb')); of = told['project']; \
	  listed = [of['dependencies'], *of['optional-dependencies'].values(), told['dependency-groups']['test']]; \
	  bounds = dict(re.sub(r'\[.*\]', '', one).split('>=') for each in listed for one in each); \
	  print(*map('=='.join, bounds.items()), sep='\n')" > $@

demo: .venv/.demo
	$(BIN)/varitext demo

# three test processes on two cores, one thread each: some tests wait for others to start or end. Types are checked
# beside them: by itself that would leave a core idle
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

# the kernels without vectors, as Microsoft's compiler builds them, and as a library of Windows (clang, mingw-w64)
test-kernels: setup
	mkdir -p build
	x86_64-w64-mingw32-gcc -std=c11 -Wall -Wextra -Werror -O3 -shared -o build/kernels.dll src/varitext/compiled/*.c
	CC="clang -U__GNUC__" $(BIN)/python setup.py --quiet build_ext --inplace --force
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/compiled; tested=$$?; \
	  $(BIN)/python setup.py --quiet build_ext --inplace --force && exit $$tested

style: setup
	$(BIN)/ruff check src tests lab examples
	$(BIN)/ruff format --check src tests lab examples
	$(BIN)/hadolint deploy/Containerfile

lint: style
	$(BIN)/mypy

# the documentation site, offline, into build/site
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# a wheel with the compiled kernels, into dist
wheel: .venv/.demo
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

# BERTopic with its dependencies, and contextualized-topic-models without those that ProdLDA does not need, in a folder
# that only their own processes see: VARITEXT_PEERS names it
export VARITEXT_PEERS ?= $(abspath build/peers)
peers: $(VARITEXT_PEERS)/.done
	@echo "export VARITEXT_PEERS=$(VARITEXT_PEERS)"

$(VARITEXT_PEERS)/.done: .venv/.all constraints.txt
	$(PIP) --target $(VARITEXT_PEERS) --no-deps bertopic contextualized-topic-models hdbscan llvmlite numba pynndescent \
		umap-learn turftopic sentence-transformers transformers huggingface-hub igraph texttable
	touch $@

# every figure on the pages of results: about an hour, and a day for the paper's tables with all their seeds
benchmark: setup peers
	$(BIN)/python -m lab all
	$(BIN)/python -m lab pages

clean:
	rm -rf .venv build dist *.egg-info src/*.egg-info
