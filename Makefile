# Every target sets itself up: only Python 3.11 or newer and make are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= auto

.PHONY: help setup reproduce test quick test-all portable wheel fuzz mutants bench check lint types contracts doctest format figures clean
.DEFAULT_GOAL := help

help:            ## list the commands
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */make \1\t/' | expand -t 18

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("stoic needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; run make PYTHON=python3.11") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

setup: $(VENV)/.installed    ## make .venv and install stoic with its tools

reproduce: setup ## the paper's experiment, a quick version: tables, figures and a report in reproduced/
	$(BIN)/stoic reproduce --quick --out reproduced

# There is a worker for each core: BLAS with threads of its own would wait for itself. Compiled modules are kept.
test quick test-all: export OPENBLAS_NUM_THREADS ?= 1
test quick test-all: export PYTHONDONTWRITEBYTECODE =

test: setup      ## run the test suite
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

quick: setup     ## run one case of each test but slow ones, in a minute or so
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --quick

test-all: setup  ## run the test suite with every combination of engine options
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m ''

portable: setup  ## run the tests that could depend on the processor as other processors would run them
	$(BIN)/python tests/portable.py -n $(WORKERS)

wheel: setup     ## build the wheel, and try it in a new environment without the optional packages
	$(BIN)/python -m pytest -q -m wheel tests/package/test_wheel.py

fuzz: setup      ## read 100,000 damaged LIBSVM files
	STOIC_FUZZ_FILES=100000 $(BIN)/python -m pytest -q -n $(WORKERS) tests/datasets/test_libsvm_fuzz.py

mutants: setup   ## put errors into copies of the sources, one at a time, and see whether a test notices
	PYTHONPATH=tests $(BIN)/python -m mutants $(MUTANTS)

bench: setup     ## time the engines against rivals on this machine (use it when nothing else runs)
	$(BIN)/stoic bench

check: lint types contracts doctest    ## lint, types, import contracts, doctests

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

contracts: setup
	$(BIN)/lint-imports

doctest: setup
	$(BIN)/python -m pytest -q --doctest-modules src/stoic

format: setup    ## rewrite the code in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

figures: reproduce    ## redraw the figures of the docs
	$(BIN)/python docs/figures/lemma_1.py
	cp reproduced/figure_l1.png docs/figures/quick_l1.png
	cp reproduced/figure_l2.png docs/figures/quick_l2.png

clean:           ## remove what make has installed and cached, but no results
	rm -rf $(VENV) .mutants.json build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
