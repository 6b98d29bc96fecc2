# make run: set up and do the main job.  make test: set up and run the tests.  make bench: measure.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PYTHONDONTWRITEBYTECODE :=
# compiled files are kept: tests start hundreds of processes

.PHONY: run test fast lint bench browser clean

$(VENV)/run: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . && touch $@

$(VENV)/dev: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' && touch $@

run: $(VENV)/run
	@$(BIN)/bruit run breast-cancer

# A browser for the tests of the pages; without one, and without the right to install it, they are skipped and say so.
browser:
	@command -v chromium >/dev/null || test -n "$$BRUIT_CHROMIUM" || test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null || \
	  { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || echo "no chromium: browser tests are skipped"

test: $(VENV)/dev browser lint
	$(BIN)/python -m pytest -n 2 -m "not slow"
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow --ignore tests/e2e
	$(BIN)/python -m pytest -m slow tests/e2e

fast: $(VENV)/dev lint
	$(BIN)/python -m pytest -n 2 -m "not slow"

lint: $(VENV)/dev
	$(BIN)/ruff check bruit tests docs benchmarks
	$(BIN)/mypy

bench: $(VENV)/dev
	$(BIN)/python -m benchmarks.speed

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
