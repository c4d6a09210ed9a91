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
.PHONY: help setup setup-torch demo check test coverage test-docs test-kubectl test-sdk test-kube test-cluster test-embedded test-long test-workloads test-faults test-mutants sbom audit bench bench-check docs test-examples generate recording screens requirements clean dist test-initializers

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-23s %s\n", $$1, $$2}'

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
	@echo
	@echo "That was one TrainJob of 2 nodes with 2 processes each; what it left is in build/demo/runs. What to do next:"
	@echo "  $(BIN)/trainwright ui --dir build/demo             its curves, logs and timeline as a page in your browser"
	@echo "  $(BIN)/trainwright runs --dir build/demo           what ran here, and how it ended"
	@echo "  $(BIN)/trainwright run train.py --nodes 2          your own script, from its own directory (docs/run.md)"
	@echo "  $(BIN)/trainwright up --detach                     a local cluster that stays, for kubectl and the Kubeflow SDK"

check: setup ## lint, types, import directions, over src, tests, bench, tools and examples
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: setup-torch ## the tests a clone alone can run: units and whole paths with real processes
	$(PYTEST) -n 2 $(OPTIONS) tests examples

coverage: setup-torch ## which lines of src `make test` runs, as build/coverage/index.html and a table
	@rm -rf build/coverage .coverage .coverage.*
	$(BIN)/coverage run -m pytest -n 2 --timeout 600 $(OPTIONS) tests examples
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet --directory build/coverage
	$(BIN)/coverage report --format=total

test-docs: setup ## every command line of README, docs and --help, as a reader types it; builds kubectl once, with Go
	TRAINWRIGHT_DOCS=1 $(PYTEST) $(OPTIONS) tests/docs

test-kubectl: setup ## real kubectl against the local cluster; builds kubectl once, with Go
	$(PYTEST) $(OPTIONS) tests/kubectl

$(VENV)-sdk/ready: $(BIN)/uv requirements/sdk.txt
	@echo "== the Kubeflow SDK into $(VENV)-sdk"
	@test -x $(VENV)-sdk/bin/python || $(PYTHON) -m venv $(VENV)-sdk
	@$(INSTALL) $(VENV)-sdk/bin/python -r requirements/sdk.txt
	@touch $@

test-sdk: setup-torch $(VENV)-sdk/ready ## the Kubeflow SDK, unmodified, against the local cluster
	TRAINWRIGHT_PYTHON=$(abspath $(BIN)/python) $(VENV)-sdk/bin/pytest -W default $(OPTIONS) tests/sdk # the SDK's warnings are not ours

$(VENV)-examples/ready: $(BIN)/uv requirements/examples.txt requirements/runtime.txt
	@echo "== JAX, XGBoost, MPI and what Trainwright needs into $(VENV)-examples"
	@test -x $(VENV)-examples/bin/python || $(PYTHON) -m venv $(VENV)-examples
	@$(INSTALL) $(VENV)-examples/bin/python -r requirements/examples.txt
	@$(INSTALL) $(VENV)-examples/bin/python -r requirements/runtime.txt
	@touch $@

test-examples: setup-torch $(VENV)-examples/ready ## every folder of examples/, as its README says
	TRAINWRIGHT_EXAMPLES=1 TRAINWRIGHT_EXAMPLES_PYTHON=$(abspath $(VENV)-examples/bin/python) $(PYTEST) --timeout 300 $(OPTIONS) tests/examples

test-long: test-examples-long
test-examples-long: setup-torch $(VENV)-training/ready
	@$(INSTALL) $(VENV)-training/bin/python -r requirements/runtime.txt
	TRAINWRIGHT_EXAMPLES=1 TRAINWRIGHT_EXAMPLES_PYTHON=$(abspath $(VENV)-training/bin/python) $(PYTEST) --timeout 300 tests/examples -k deepspeed

$(VENV)-docs/ready: $(BIN)/uv requirements/docs.txt
	@echo "== MkDocs into $(VENV)-docs"
	@test -x $(VENV)-docs/bin/python || $(PYTHON) -m venv $(VENV)-docs
	@$(INSTALL) $(VENV)-docs/bin/python -r requirements/docs.txt
	@touch $@

docs: $(VENV)-docs/ready ## the pages of docs/ as a site in build/site; a broken link fails
	$(VENV)-docs/bin/mkdocs build --strict --config-file mkdocs.yml
	@echo "build/site/index.html"

$(VENV)/initializers.ready: $(VENV)/dev.ready requirements/initializers-test.txt
	@echo "== huggingface_hub and an S3 server (moto) into $(VENV)"
	@$(INSTALL) $(BIN)/python -r requirements/initializers-test.txt
	@touch $@

test-initializers: $(VENV)/initializers.ready ## the initializers with hf:// and s3://, which `make test` leaves out
	$(PYTEST) $(OPTIONS) tests/unit/initializers tests/initializers

$(VENV)/tracing.ready: $(VENV)/dev.ready requirements/tracing.txt
	@echo "== OpenTelemetry into $(VENV)"
	@$(INSTALL) $(BIN)/python -r requirements/tracing.txt
	@touch $@

.PHONY: test-tracing
test-tracing: $(VENV)/tracing.ready ## spans of the operator's reconciles, at an OTLP collector; `make test` leaves them out
	$(PYTEST) $(OPTIONS) tests/unit/operator/test_tracing.py

$(VENV)/browser.ready: $(VENV)/dev.ready requirements/browser.txt
	@echo "== a driver for Chromium into $(VENV), and Chromium itself if it is not there (Debian's package)"
	@$(INSTALL) $(BIN)/python -r requirements/browser.txt
	@command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core)
	@touch $@

.PHONY: test-browser screenshots
test-browser: $(VENV)/browser.ready ## the live page in a real Chromium; installs Debian's chromium if there is none
	$(PYTEST) --timeout 180 $(OPTIONS) tests/browser

screenshots: $(VENV)/browser.ready ## take the pictures of docs/ui from the live page of a real cluster
	PYTHONPATH=tools:tests $(BIN)/python tools/screenshots.py

$(VENV)-%/ready: $(BIN)/uv requirements/%.txt
	@echo "== $* into $(VENV)-$*"
	@test -x $(VENV)-$*/bin/python || $(PYTHON) -m venv $(VENV)-$*
	@$(INSTALL) $(VENV)-$*/bin/python -r requirements/$*.txt
	@touch $@

.PHONY: test-training test-training-long test-examples-long
test-training: setup-torch $(VENV)-training/ready $(VENV)-mpich/ready $(VENV)-torchtune/ready ## JAX, XGBoost, TensorFlow, MLX, MPI and torchtune train here
	TRAINWRIGHT_TRAINING=1 $(PYTEST) --timeout 330 $(OPTIONS) tests/training \
	    -k "not intelmpi and not deepspeed and not survival $(if $(TRAINWRIGHT_SHORT),and not killed_node and not test_torch.py and not nodes_join)"

test-long: test-training-long
test-training-long: setup-torch $(VENV)-training/ready $(VENV)-mpich/ready $(VENV)-intelmpi/ready
	TRAINWRIGHT_TRAINING=1 TRAINWRIGHT_TRAINING_KILLS=20 $(PYTEST) --timeout 900 tests/training -k "intelmpi or deepspeed or survival"

test-kube: setup ## the operator on a real control plane; builds its programs once, with Go
	@$(KUBE_PROGRAMS) trainer trainer-manifests >/dev/null
	$(PYTEST) -n 2 --timeout 300 $(OPTIONS) tests/kube

test-cluster: setup ## the systems around the operator in a cluster; builds their programs once, with Go
	$(PYTEST) -rP --timeout 600 $(OPTIONS) tests/cluster

test-embedded: setup ## the same suite on the local control plane instead; what it cannot have is skipped by name
	@$(KUBE_PROGRAMS) >/dev/null
	$(PYTEST) -n 2 --timeout 300 $(OPTIONS) tests/kube --embedded

test-long: test-takeover-long
.PHONY: test-takeover-long
test-takeover-long: setup
	TRAINWRIGHT_REFERENCES=2.1,2.2 $(PYTEST) -rP --timeout 600 tests/cluster/test_takeover.py

.PHONY: test-long-store test-long-runs test-long-laws test-long-admission test-long-survival test-long-starters test-long-kueue
test-long: test-long-store test-long-runs test-long-laws test-long-admission test-long-survival test-long-starters test-long-kueue test-workloads test-kills test-load ## all the long counts, hours; its parts are targets of their own

test-long-store: setup ## 500 kills of the API server's store, full fuzzing
	TRAINWRIGHT_KILL_ROUNDS=500 TRAINWRIGHT_FUZZ=10 $(PYTEST) -rP --timeout 3600 $(OPTIONS) tests/embedded/apiserver

test-long-runs: setup-torch ## 100 runs whose commands, pods and control planes are killed
	TRAINWRIGHT_RUNS=100 $(PYTEST) $(OPTIONS) tests/embedded/test_many_runs.py

test-long-laws: setup ## 10,000 watch histories, every property of the schemas, 5,000 jobs of one tenant, 3,600 that come and go
	TRAINWRIGHT_HISTORIES=200 TRAINWRIGHT_TRANSITIONS=2000 TRAINWRIGHT_WATCH_HISTORIES=10000 TRAINWRIGHT_SCHEMA_SHARE=1 \
	    TRAINWRIGHT_CROWD=5000 TRAINWRIGHT_CHURN=3600 TRAINWRIGHT_OUTAGE_SECONDS=60 $(PYTEST) -rP --timeout 7200 $(OPTIONS) tests/laws

test-long-admission: setup ## 1,500 admission reviews at 50 a second; wants the machine for itself
	TRAINWRIGHT_REVIEWS=1500 $(PYTEST) -rP $(OPTIONS) tests/unit/operator/admission/test_admission_load.py

test-long-survival: setup-torch ## 50 kills of the local control plane under a training
	TRAINWRIGHT_PLANE_KILLS=50 $(PYTEST) -rP $(OPTIONS) tests/embedded/test_survival.py

test-long-starters: setup-torch ## every text of `trainwright init` trains
	TRAINWRIGHT_STARTERS=1 $(PYTEST) $(OPTIONS) tests/training/test_starters.py

test-long-kueue: setup ## the story with Kueue again, with Kueue 0.19
	TRAINWRIGHT_KUEUE=0.19 $(PYTEST) -rP --timeout 600 $(OPTIONS) tests/cluster/test_kueue.py

.PHONY: test-load test-kills test-kills-operator test-kills-faults test-kills-lifecycle test-kills-fuzz test-kills-outages
test-load: setup ## 10,000 TrainJobs on a real control plane: created at 400/s, at rest, found again
	@$(KUBE_PROGRAMS) >/dev/null
	TRAINWRIGHT_LOAD=10000 $(PYTEST) -rP --timeout 7200 $(OPTIONS) tests/kube/test_operator_load.py

test-kills: test-kills-operator test-kills-faults test-kills-lifecycle test-kills-fuzz test-kills-outages ## hundreds of kills, freezes and restarts on a real control plane; its parts are targets of their own

test-kills-operator: setup ## the operator killed at every place, kube-apiserver 20 times
	@$(KUBE_PROGRAMS) >/dev/null
	TRAINWRIGHT_SIGKILLS=0 TRAINWRIGHT_SERVER_KILLS=20 $(PYTEST) -rP --timeout 7200 $(OPTIONS) tests/kube/test_kills.py

test-kills-faults: setup ## 50 freezes of a leader, 120 restarts
	@$(KUBE_PROGRAMS) >/dev/null
	TRAINWRIGHT_FREEZES=50 TRAINWRIGHT_RESTARTS=120 $(PYTEST) -rP --timeout 7200 $(OPTIONS) tests/kube/test_operator_faults.py

test-kills-lifecycle: setup ## a namespace with 500 TrainJobs is deleted
	@$(KUBE_PROGRAMS) >/dev/null
	TRAINWRIGHT_NAMESPACE_JOBS=500 $(PYTEST) -rP --timeout 7200 $(OPTIONS) tests/kube/test_operator_lifecycle.py

test-kills-fuzz: setup ## random requests to kube-apiserver and to ours, ten times as many
	@$(KUBE_PROGRAMS) >/dev/null
	TRAINWRIGHT_FUZZ=10 $(PYTEST) -rP --timeout 7200 $(OPTIONS) tests/kube/test_fuzz_compare.py

test-kills-outages: setup ## thirty outages of the API server, the operator, nodes and the network
	@$(KUBE_PROGRAMS) >/dev/null
	TRAINWRIGHT_OUTAGES=long $(PYTEST) -rP --timeout 7200 $(OPTIONS) tests/kube/test_outages.py

test-workloads: setup ## JobSet, Job and scheduler beside the real ones, all of it; `make test-kube` runs a tenth
	@$(KUBE_PROGRAMS) >/dev/null
	TRAINWRIGHT_CRASHES=all TRAINWRIGHT_LIVES=120 TRAINWRIGHT_MORE_LIVES=3 TRAINWRIGHT_SITUATIONS=300 TRAINWRIGHT_JOBS=140 \
	    TRAINWRIGHT_MORE_JOBS=3 $(PYTEST) -rP --timeout 3600 $(OPTIONS) tests/unit/embedded/workloads \
	    tests/jobsetadmission tests/kube/test_jobset_specs.py \
	    tests/kube/test_jobset_admission_live.py tests/kube/test_jobsets_compare.py tests/kube/test_jobs_compare.py \
	    tests/kube/test_podgroups_compare.py tests/kube/test_scheduling_compare.py

test-faults: setup ## every fault plan of the operator, in virtual time; `make test` runs a thirtieth, SHARE=10 a tenth
	TRAINWRIGHT_PLANS_SHARE=$(or $(SHARE),1) $(PYTEST) -n 2 -rP --timeout 3600 $(OPTIONS) tests/faults

test-mutants: setup-torch ## 500 small changes to controlloop, pipeline and operator: does a test fail for each? takes an hour
	$(BIN)/python tools/mutants.py $(OPTIONS)

bench: setup ## the operator beside Kubeflow Trainer, three runs; takes hours and wants the machine for itself
	@$(KUBE_PROGRAMS) trainer trainer-manifests >/dev/null
	$(BIN)/python bench/compare.py $(OPTIONS)

bench-check: setup ## the short form of it, and the laptop's; fails when something got worse than bench/limits.toml
	@$(KUBE_PROGRAMS) trainer trainer-manifests >/dev/null
	$(BIN)/python bench/compare.py --check
	$(BIN)/python bench/laptop.py --check

dist: setup ## the wheel and the source archive in dist/, tried in an empty environment
	rm -rf dist
	$(BIN)/hatchling build
	$(PYTEST) $(OPTIONS) tests/dist

.PHONY: image
image: setup ## the image of the operator, with docker, podman or buildah; OPTIONS="--base debian" where no registry is reachable
	$(BIN)/python tools/image.py $(OPTIONS)

sbom: setup ## what Trainwright needs to run, with licences and hashes, as dist/sbom.json (CycloneDX)
	@mkdir -p dist
	$(BIN)/python tools/sbom.py > dist/sbom.json

audit: setup ## ask a public database for known vulnerabilities of the requirements; needs the network
	$(UV) tool run pip-audit==2.9.0 --disable-pip --require-hashes -r requirements/runtime.txt

generate: setup ## write generated files anew (CRDs, schemas)
	$(BIN)/python tools/generate.py

recording: setup ## record `trainwright run` on a real terminal, as docs/recording.svg
	PYTHONPATH=tools:tests $(BIN)/python tools/recording.py

screens: setup ## capture the screens of docs/screens from a real terminal
	PYTHONPATH=tools:tests $(BIN)/python tools/screens.py

requirements: $(BIN)/uv ## pin the requirements anew, with hashes and without any registry's address
	$(PIN) pyproject.toml -o requirements/runtime.txt
	$(PIN) --extra dev pyproject.toml -o requirements/dev.txt
	$(PIN) --extra initializers pyproject.toml -o requirements/initializers.txt
	for name in bootstrap build torch sdk initializers-test browser examples docs training mpich intelmpi torchtune tracing; do $(PIN) requirements/$$name.in -o requirements/$$name.txt; done

clean: ## remove the environment and caches
	rm -rf $(VENV) $(VENV)-sdk $(VENV)-training $(VENV)-mpich $(VENV)-intelmpi $(VENV)-torchtune $(VENV)-examples $(VENV)-docs build dist .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .hypothesis
