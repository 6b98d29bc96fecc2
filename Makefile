# make run: set up and do the main job.  make test: set up and run the tests.  make bench: measure.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test fast lint bench clean

$(VENV)/run: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . && touch $@

$(VENV)/dev: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' && touch $@

run: $(VENV)/run
	@$(BIN)/bruit run breast-cancer

test: $(VENV)/dev lint
	$(BIN)/python -m pytest -n 2 -m "not slow"
	$(BIN)/python -m pytest -m slow

fast: $(VENV)/dev lint
	$(BIN)/python -m pytest -n 2 -m "not slow"

lint: $(VENV)/dev
	$(BIN)/ruff check bruit tests docs benchmarks
	$(BIN)/mypy

bench: $(VENV)/dev
	$(BIN)/python -m benchmarks.speed

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
