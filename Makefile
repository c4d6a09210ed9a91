# Every target sets up what it needs by itself and says what it does. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv --no-progress
INSTALL := $(UV) pip install --quiet --compile-bytecode --require-hashes --python
PIN := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header
PYTEST := $(BIN)/pytest
KUBE_PROGRAMS := $(BIN)/python tests/kube/binaries/build.py all

.DEFAULT_GOAL := help
.PHONY: help setup setup-torch demo check test test-kubectl test-sdk test-kube test-embedded test-long bench bench-check generate requirements clean test-initializers

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-18s %s\n", $$1, $$2}'

$(BIN)/uv: requirements/bootstrap.txt
	@echo "== a Python environment in $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
	@touch $@

$(VENV)/dev.ready: $(BIN)/uv requirements/dev.txt pyproject.toml
	@echo "== Trainwright and its tools into $(VENV)"
	@$(INSTALL) $(BIN)/python -r requirements/dev.txt
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q src/trainwright
	@touch $@

$(VENV)/torch.ready: $(VENV)/dev.ready requirements/torch.txt
	@echo "== PyTorch into $(VENV) (a few GB the first time)"
	@$(INSTALL) $(BIN)/python -r requirements/torch.txt
	@touch $@

setup: $(VENV)/dev.ready ## an environment in .venv with the command `trainwright` in it
	@echo "ready: $(BIN)/trainwright --help"

setup-torch: $(VENV)/torch.ready ## the same, with PyTorch for the pods of the demo and the tests

demo: setup-torch ## train a 2-node x 2-process PyTorch model on this machine
	@$(BIN)/trainwright run examples/torch-ddp/trainjob.yaml --dir build/demo

check: setup ## lint, types, import directions, over src, tests, bench, tools and examples
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: setup-torch ## the tests a clone alone can run: units and whole paths with real processes
	$(PYTEST) -n 2 $(OPTIONS) tests examples

test-kubectl: setup ## real kubectl against the local cluster; builds kubectl once, with Go
	$(PYTEST) $(OPTIONS) tests/kubectl

$(VENV)-sdk/ready: $(BIN)/uv requirements/sdk.txt
	@echo "== the Kubeflow SDK into $(VENV)-sdk"
	@test -x $(VENV)-sdk/bin/python || $(PYTHON) -m venv $(VENV)-sdk
	@$(INSTALL) $(VENV)-sdk/bin/python -r requirements/sdk.txt
	@touch $@

test-sdk: setup-torch $(VENV)-sdk/ready ## the Kubeflow SDK, unmodified, against the local cluster
	TRAINWRIGHT_PYTHON=$(abspath $(BIN)/python) $(VENV)-sdk/bin/pytest $(OPTIONS) tests/sdk

$(VENV)/initializers.ready: $(VENV)/dev.ready requirements/initializers-test.txt
	@echo "== huggingface_hub and an S3 server (moto) into $(VENV)"
	@$(INSTALL) $(BIN)/python -r requirements/initializers-test.txt
	@touch $@

test-initializers: $(VENV)/initializers.ready ## the initializers with hf:// and s3://, which `make test` leaves out
	$(PYTEST) $(OPTIONS) tests/unit/initializers tests/initializers

test-kube: setup ## the operator on a real control plane; builds its programs once, with Go
	@$(KUBE_PROGRAMS) >/dev/null
	$(PYTEST) -n 2 --timeout 300 $(OPTIONS) tests/kube

test-embedded: setup ## the same suite on the local control plane instead; what it cannot have is skipped by name
	@$(KUBE_PROGRAMS) >/dev/null
	$(PYTEST) -n 2 --timeout 300 $(OPTIONS) tests/kube --embedded

test-long: setup-torch ## the long counts: hundreds of kills, full fuzzing
	TRAINWRIGHT_KILL_ROUNDS=200 TRAINWRIGHT_FUZZ=10 $(PYTEST) -rP --timeout 3600 tests/embedded/apiserver

bench: setup ## the operator beside Kubeflow Trainer, three runs; takes hours and wants the machine for itself
	@$(KUBE_PROGRAMS) trainer trainer-manifests >/dev/null
	$(BIN)/python bench/compare.py $(OPTIONS)

bench-check: setup ## the short form of it, and the laptop's; fails when something got worse than bench/limits.toml
	@$(KUBE_PROGRAMS) trainer trainer-manifests >/dev/null
	$(BIN)/python bench/compare.py --check
	$(BIN)/python bench/laptop.py --check

generate: setup ## write generated files anew (CRDs, schemas)
	$(BIN)/python tools/generate.py

requirements: $(BIN)/uv ## pin the requirements anew, with hashes and without any registry's address
	$(PIN) pyproject.toml -o requirements/runtime.txt
	$(PIN) --extra dev pyproject.toml -o requirements/dev.txt
	$(PIN) --extra initializers pyproject.toml -o requirements/initializers.txt
	for name in bootstrap torch sdk initializers-test; do $(PIN) requirements/$$name.in -o requirements/$$name.txt; done

clean: ## remove the environment and caches
	rm -rf $(VENV) $(VENV)-sdk build .pytest_cache .mypy_cache .ruff_cache .hypothesis
