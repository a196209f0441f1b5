# The environment is made by pip alone, in $(VENV). Try: make demo, make test.

PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3.14 python3,$(shell command -v $(name) 2>/dev/null)))
VENV ?= .venv
ARGS ?=
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test check bench docs zipapp man stubs lock

help: ## what there is to make
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(VENV)/installed ## concurrent writers race on one object; ARGS=--keep leaves the server up
	@$(BIN)/steersman demo $(ARGS)

test: $(VENV)/developing ## the whole test suite; ARGS goes to pytest
	@$(BIN)/pytest -n auto $(ARGS)

check: $(VENV)/developing ## formatting, lint, types, import contracts
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/developing ## measurements of single parts; see bench/README.md for the whole
	@for program in cel http_server managed_fields schema store; do \
	  echo "== bench/$$program.py"; $(BIN)/python bench/$$program.py || exit 1; done

docs: $(VENV)/docs/installed ## the documentation as a site, in site/; broken links are errors
	$(VENV)/docs/bin/zensical build --strict --clean

zipapp: $(VENV)/bin/pip ## the server as one file for this Python and platform: dist/steersman.pyz
	$(BIN)/python -m venv $(VENV)/zipapp
	$(VENV)/zipapp/bin/pip install --quiet 'shiv>=1.0.8'
	@mkdir -p dist
	$(VENV)/zipapp/bin/shiv --quiet --only-binary=:all: --console-script steersman --output-file dist/steersman.pyz .

man: $(VENV)/developing ## manual pages of all commands, in dist/man
	$(BIN)/python -m tools.man dist/man

stubs: $(VENV)/developing ## compile etcd's messages (src/steersman/store/etcd/rpc.proto)
	cd src/steersman/store/etcd && $(abspath $(BIN))/python -m grpc_tools.protoc -I. --descriptor_set_out=rpc.binpb rpc.proto

lock: ## pin the requirements of development and documentation anew (needs uv)
	uv pip compile --quiet --upgrade --universal --generate-hashes --no-header --python-version 3.11 \
	  --group dev pyproject.toml --output-file requirements-dev.lock
	uv pip compile --quiet --upgrade --universal --generate-hashes --no-header --python-version 3.11 \
	  --group docs --output-file requirements-docs.lock

$(VENV)/bin/pip:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed (PYTHON=/path/to/python3)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$(PYTHON) is older than Python 3.11: name another (PYTHON=...)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(VENV)/bin/pip
	@echo "installing what it needs; this takes a minute or so"
	$(BIN)/pip install --quiet --editable .
	@touch $@

$(VENV)/docs/installed: requirements-docs.lock | $(VENV)/bin/pip
	$(BIN)/python -m venv $(VENV)/docs
	$(VENV)/docs/bin/pip install --quiet --no-deps --require-hashes --requirement requirements-docs.lock
	@touch $@

$(VENV)/developing: pyproject.toml requirements-dev.lock | $(VENV)/bin/pip
	@echo "installing what the tests need; this takes a minute or so"
	$(BIN)/pip install --quiet --no-deps --require-hashes --requirement requirements-dev.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $(VENV)/installed $@
