# Two commands, each doing all its set-up by itself:
#   make demo   the sample invoices through the embedded model into SQLite, and the records printed
#   make test   the tests
# Both work in a virtual environment of their own (.venv), also where the system's Python is externally managed.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
DEMO_DATABASE ?= sqlite:///data/demo.db
TEST_MODEL = smollm2-135m

.PHONY: demo test check clean
.DELETE_ON_ERROR:

demo: $(VENV)/installed
	$(BIN)/extractor run invoices data/invoices --database $(DEMO_DATABASE) --max-failures 100%
	$(BIN)/extractor records invoices --database $(DEMO_DATABASE)

test: $(VENV)/installed-dev
	$(BIN)/extractor models pull $(TEST_MODEL)
	$(BIN)/python -m pytest

check: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) data/*.db data/*.db-wal data/*.db-shm

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "extractor needs Python 3.11 or later: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || $(PYTHON) -m venv --clear --without-pip $(VENV)

# Where a Python comes without ensurepip, its own pip installs into the environment from outside.
INSTALL = if $(BIN)/python -m pip --version >/dev/null 2>&1; then PIP="$(BIN)/python -m pip"; \
	else PIP="$(PYTHON) -m pip --python $(BIN)/python"; fi; \
	$$PIP install --quiet --disable-pip-version-check -c constraints.txt

$(VENV)/installed: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "installing into $(VENV)"
	@$(INSTALL) -e '.[local]'
	@touch $@

$(VENV)/installed-dev: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "installing into $(VENV)"
	@$(INSTALL) -e '.[dev]'
	@touch $@ $(VENV)/installed
