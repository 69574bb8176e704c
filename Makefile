# Two commands need nothing but Python (3.11 or newer) and a package registry:
#   make demo    learn a formula
#   make test    lint, types and the quick tests
PYTHON ?= python3
WORKERS ?= 2
BIN := .venv/bin
# Tests start many processes of Python; where this is set, each of them compiles the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-quick test-slow lint types docs peers clean help

help:
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# Some distributions ship venv without ensurepip; then pip comes from the system's own pip.
$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gmeql needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	$(PYTHON) -m venv .venv || { rm -rf .venv && $(PYTHON) -m venv --without-pip .venv && $(PYTHON) -m pip --python $(BIN)/python install pip; }

.venv/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

.venv/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,web,experiments]'
	@touch $@ .venv/.installed

.venv/.installed-docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@ .venv/.installed

demo: .venv/.installed  ## Kepler's law from the planets, and a formula from noisy measurements
	$(BIN)/gmeql fit data/planets.csv --target period --max-time 3
	$(BIN)/gmeql fit data/braking.csv --target distance --max-time 12

# mypy has one thread; beside the tests it leaves no core idle. What it says may stand far above, so the end names it.
test: lint  ## lint, types, quick tests; finds or installs the browser that some of them drive
	$(MAKE) --no-print-directory -j2 types test-quick || { echo "make test failed: the tests above, or the types (make types)"; exit 1; }

# A file's tests stay with one worker: two would each make what they share. Long files come first (tests/conftest.py).
test-quick: .venv/.installed-dev  ## the quick tests alone
	$(BIN)/python tests/prepare_browser.py $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m 'not slow'

test-slow: .venv/.installed-dev  ## the tests that take longer, and all examples of properties
	GMEQL_THOROUGH=1 $(BIN)/python tests/prepare_browser.py $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m 'slow or hypothesis'

lint: .venv/.installed-dev  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.installed-dev  ## mypy
	$(BIN)/mypy

docs: .venv/.installed-docs  ## the documentation as a site, site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html is built; to search in it: $(BIN)/python -m http.server --directory site"

peers: .venv/.installed-dev  ## install other systems, run them beside gmeql on b1-b8, print the table (half an hour)
	$(BIN)/python benchmarks/peers/run.py install
	$(BIN)/python benchmarks/peers/run.py run --suite paper:20 --seeds 3 --out out/peers.jsonl
	$(BIN)/python benchmarks/peers/run.py report out/peers.jsonl --figures out

clean:  ## remove caches and the virtual environment
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist site
