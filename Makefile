# Everything installs into .venv with plain pip; constraints.txt pins what was tested together, and nothing but
# this project is built: what it stands on comes as wheels, or not at all.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV_READY := $(VENV)/.dev-ready

# Graph files beside the checkout are used where nobody names others; tests that need them skip where there are none.
FEDSTRUCT_DATA ?= $(wildcard ../shared/datasets)
export FEDSTRUCT_DATA

.PHONY: demo test check bench bench-scale clean

demo: $(READY)
	$(BIN)/fedstruct demo

test: $(DEV_READY)
	$(BIN)/python -m pytest -n 2

check: $(DEV_READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(DEV_READY)
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/cost.py
	$(BIN)/python benchmarks/exchange.py
	$(BIN)/python benchmarks/exposure.py
	$(BIN)/python benchmarks/choices.py

bench-scale: $(DEV_READY)
	$(BIN)/python benchmarks/scale.py --plot docs/figures/scale.svg
	$(BIN)/python benchmarks/products.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(READY): $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --only-binary :all: -c constraints.txt -e .
	touch $@

$(DEV_READY): $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --only-binary :all: -c constraints.txt -e '.[dev]'
	touch $(READY) $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
