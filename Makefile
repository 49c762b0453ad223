# `make help` lists what there is. Everything works from a fresh clone: the stamp sets up .venv.

PYTHON ?= python3
BIN    := .venv/bin
READY  := .venv/.ready
REPO   ?=

.DEFAULT_GOAL := help
.PHONY: help demo test quick check format schema docs bench chaos clean

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[embedded,dev]'
	touch $@

help:  ## list the targets
	@sed -nE 's/^([a-z]+):.*## (.*)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

demo: $(READY)  ## see it work on REPO=path (default: this repository), killed three times
	$(BIN)/smithers demo $(REPO)

test: check  ## check and run every test
	$(BIN)/python -m pytest -n 2 --dist loadfile

quick: $(READY)  ## run the tests that take under three seconds each
	$(BIN)/python -m pytest -m 'not slow'

check: $(READY)  ## format, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/basedpyright
	$(BIN)/lint-imports

format: $(READY)  ## let ruff format the code and fix what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

schema: $(READY)  ## write docs/schema.sql from the migrations
	PYTHONPATH=tests $(BIN)/python -m support.schema_dump docs/schema.sql

docs: $(READY)  ## write docs/cli.md from the commands
	PYTHONPATH=tests $(BIN)/python -m support.cli_reference docs/cli.md

bench: $(READY)  ## measure, and compare with the recorded limits
	$(BIN)/python -m bench

chaos: $(READY)  ## kill processes of a fleet at random and verify what is left
	$(BIN)/python -m bench.chaos

clean:  ## remove the environment, caches and builds (never .smithers)
	rm -rf .venv dist build .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
