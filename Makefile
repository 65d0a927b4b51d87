# Two commands do all on a fresh machine with Python 3.11 or newer:
#   make demo    sets up .venv, runs the suite "quickstart" to a printed board and report.html
#   make test    sets up .venv and runs linter, types, tests, doctests and examples
# and besides: make bench, and make docs (the documentation as a site, in site/)
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test bench docs clean

demo: $(VENV)/.stamp-demo
	$(BIN)/karat run quickstart
	$(BIN)/karat report results

test: $(VENV)/.stamp-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -n 2 --dist loadfile

bench: $(VENV)/.stamp-dev
	$(BIN)/python benchmarks/run.py

docs: $(VENV)/.stamp-docs
	$(BIN)/zensical build --clean

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Karat needs Python 3.11 or newer; say which: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.stamp-%: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e ".[$*]"
	@touch $@

clean:
	rm -rf $(VENV) results report.html site .pytest_cache .mypy_cache .ruff_cache
