# make run: set up and do the main job.  make test: set up and run the tests.  make bench: measure.
PYTHON ?= python3
VENV := .venv
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
BIN := $(VENV)/bin
CODE := bruit papers tests docs benchmarks release website
export PYTHONDONTWRITEBYTECODE :=
# compiled files are kept: tests start hundreds of processes

.PHONY: run test fast slowest checked lint style types warm format bench browser site release-check clean

# pip names some fifty packages; of these the ones bruit asks for are told, and errors as they are.
INSTALL = $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off --editable
TOLD = awk '/^(Collecting|Processing) .*\(from bruit/ { sub(/ \(from bruit.*/, ""); sub(/.*[ \/]/, ""); print "  " $$0; fflush() } \
  /^Installing collected packages/ { print "  unpacking " NF - 3 " packages"; fflush() }'

$(VENV)/run: pyproject.toml
	@echo "installing bruit and what it needs into $(VENV): once, about a minute"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) '.[ui]' | $(TOLD) && touch $@

$(VENV)/dev: pyproject.toml
	@echo "installing bruit and its tools into $(VENV): once, a few minutes"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) '.[dev]' | $(TOLD) && touch $@

run: $(VENV)/run
	@$(BIN)/bruit run ten-clinics
	@command -v bruit >/dev/null || printf '\nto call it by its name in this shell:\n  . $(BIN)/activate\n'

# A browser for the tests of the pages; without one, and without the right to install it, they are skipped and say so.
browser:
	@command -v chromium >/dev/null || test -n "$$BRUIT_CHROMIUM" || test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null || \
	  { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || echo "no chromium: browser tests are skipped"

# The fast and the slow set together, so that tests are collected once. No core waits at the end: who is done takes over tests.
# Slow tests of tests/e2e, real processes and browsers, get a second chance on a loaded machine; who needed it is listed (RERUN).
# Nothing else gets one.
test: $(VENV)/dev browser checked
	$(BIN)/python -m pytest -n 2 --dist worksteal --ignore tests/e2e
	$(BIN)/python -m pytest -n 2 --dist worksteal --reruns 1 -rR tests/e2e

fast: $(VENV)/dev checked
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

# What takes longest, in seconds of processor. SET is what to measure, as for pytest.
SET ?= -m "not slow"
slowest: $(VENV)/dev warm
	$(BIN)/python -m pytest -n 2 --dist worksteal -p tests.seconds $(SET)

# One core checks types while the other looks at style and compiles loops.
checked: $(VENV)/dev
	@$(MAKE) --no-print-directory -j 2 --output-sync=target types style warm

lint: types style

style: $(VENV)/dev
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/lint-imports

types: $(VENV)/dev
	$(BIN)/mypy

warm: $(VENV)/dev
	$(BIN)/python -m tests.warm

format: $(VENV)/dev
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

bench: $(VENV)/dev
	$(BIN)/python -m benchmarks.speed

# The documentation as pages for a browser, into build/site: strict, a link that leads nowhere is an error.
site: $(VENV)/dev
	$(BIN)/python -m website

# What must hold before a release: wheel and sdist are made and tried, licences and bill of materials written. Uploads nothing.
release-check: $(VENV)/dev
	$(BIN)/python -m release

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
