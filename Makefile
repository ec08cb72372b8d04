# Two commands: `make demo` and `make test`. Both set everything up first.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

# the real data, where it lies beside the checkout; a user's machine has none and fetches what it needs
ifneq ($(wildcard ../shared/data),)
export VARITEXT_DATA ?= $(abspath ../shared/data)
endif

.PHONY: setup demo test lint benchmark clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[parquet,report,peers,dev]'
	touch $@

demo: setup
	$(BIN)/varitext demo

test: setup lint
	$(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples

benchmark: setup
	$(BIN)/python benchmarks/nvdm.py
	$(BIN)/python benchmarks/counting.py

clean:
	rm -rf .venv build *.egg-info src/*.egg-info
