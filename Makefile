# make run: set up and do the main job.  make test: set up and run the tests.  make bench: measure.
PYTHON ?= python3
VENV := .venv
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
BIN := $(VENV)/bin
CODE := bruit papers tests docs benchmarks
export PYTHONDONTWRITEBYTECODE :=
# compiled files are kept: tests start hundreds of processes

.PHONY: run test fast lint format bench browser clean

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

# Real processes and browsers get a second chance on a loaded machine; who needed it is listed (RERUN). Nothing else does.
test: $(VENV)/dev browser lint
	$(BIN)/python -m tests.warm
	$(BIN)/python -m pytest -n 2 -m "not slow"
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow --ignore tests/e2e
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow --reruns 1 -rR tests/e2e

fast: $(VENV)/dev lint
	$(BIN)/python -m tests.warm
	$(BIN)/python -m pytest -n 2 -m "not slow"

lint: $(VENV)/dev
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/lint-imports
	$(BIN)/mypy

format: $(VENV)/dev
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

bench: $(VENV)/dev
	$(BIN)/python -m benchmarks.speed

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
