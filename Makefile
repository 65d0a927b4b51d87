# Two commands do all on a fresh machine with Python 3.11 or newer:
#   make demo    sets up .venv, runs the suite "quickstart", prints the leaderboard and writes report.html
#   make test    sets up .venv and runs linter, types, tests, doctests and examples
# While you work: make check, the linter, types and the quick tests of the core
# Others: make setup, make lint, make test-only, make border, make faults, make bench, make docs (the documentation site in site/, with its reports)
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
# the versions to install, and the extra with the test requirements
CONSTRAINTS ?= constraints.txt
EXTRA  ?= dev
# what make check runs: arrays, files and definitions; no processes, servers or browsers
QUICK_TESTS := tests/core tests/stats tests/metrics tests/config tests/results \
	tests/test_snapshots.py
# where it is set, every process of the tests would compile all modules again
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo setup lint check quick test test-only border faults bench docs clean

demo: $(VENV)/.stamp-demo
	$(BIN)/karat run quickstart
	$(BIN)/karat report results

setup: $(VENV)/.stamp-$(EXTRA)

lint: $(VENV)/.stamp-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# both at once: mypy uses one core
check: $(VENV)/.stamp-dev
	$(MAKE) -j2 lint quick

quick: $(VENV)/.stamp-dev
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not slow and not network" $(QUICK_TESTS)

test: lint test-only

# three processes on two cores: many tests wait for a browser, a server or a worker
test-only: $(VENV)/.stamp-$(EXTRA)
	$(BIN)/python -m pytest -q -n 3 --dist loadfile

# the core without extensions, with its own tests, and without each extension in turn
border: $(VENV)/.stamp-dev
	KARAT_BORDER=full $(BIN)/python -m pytest -q -n 2 tests/border

# kills, full disks, damaged files, endpoints and models that misbehave; ends in KARAT_FAULTS_MINUTES (10)
faults: $(VENV)/.stamp-dev
	KARAT_FAULTS=full $(BIN)/python -m pytest -q -rfEs -n 2 --dist loadfile tests/faults

bench: $(VENV)/.stamp-dev
	$(BIN)/python benchmarks/run.py

docs: $(VENV)/.stamp-docs $(VENV)/.stamp-demo
	$(BIN)/python scripts/check_pages.py
	$(BIN)/python scripts/landing.py
	$(BIN)/zensical build --clean

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Karat needs Python 3.11 or newer. Choose one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.stamp-%: $(BIN)/python pyproject.toml $(CONSTRAINTS)
	$(PIP) install -c $(CONSTRAINTS) -e ".[$*]"
	@touch $@

clean:
	rm -rf $(VENV) results report.html site docs/reports .pytest_cache .mypy_cache .ruff_cache
