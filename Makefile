# The two commands of a newcomer: `make demo` and `make test`. Both set everything up in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test check venv format lint types contracts tests test-contract test-faults test-faults-teeth manifests clean

demo: venv
	$(BIN)/kube-pyscheduler demo

test: check

check: lint types contracts tests

venv: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,bench]'
	touch $(STAMP)

format: venv
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: venv
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: venv
	$(BIN)/mypy

contracts: venv
	$(BIN)/lint-imports

tests: venv
	$(BIN)/python -m pytest -n auto

# The API behaviour the daemon relies on, on any cluster: make test-contract KUBECONFIG=...
test-contract: venv
	KUBECONFIG=$(KUBECONFIG) $(BIN)/python -m pytest tests/contract

# Two hundred storms of faults and events; those of `make test` are the first ten.
test-faults: venv
	FAULT_SEEDS=200 $(BIN)/python -m pytest -n auto tests/faults

# Defects planted into the scheduler, one at a time: the same storms must show each of them.
test-faults-teeth: venv
	$(BIN)/python -m pytest -n auto tests/faults/teeth.py

manifests: venv
	$(BIN)/python -m deploy.render

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build *.egg-info
