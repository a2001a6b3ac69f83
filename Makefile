# `make` alone says what there is. Everything runs in .venv, which the first target that needs
# it sets up, and which is brought up to date whenever pyproject.toml changes.

PYTHON ?=
PYTHONS ?=
WORKERS ?= auto
ARGS ?=
VERSION ?=
SECONDS ?= 60

# Hundreds of processes of the tests load the package: they share what one of them has compiled.
export PYTHONPYCACHEPREFIX ?= $(CURDIR)/build/pycache
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
READY := .venv/ready
STARTED := .venv/started
# Two fifths of the time of these tests pass in waiting for processes and terms, so that half again as
# many of them run at a time as there are cores.
BUSY_WORKERS = $(or $(filter-out auto,$(WORKERS)),$$(( $$(getconf _NPROCESSORS_ONLN) * 3 / 2 )))
FAILOVER := tests/integration/failover
SIMULATION := tests/simulation
QUICK := $(addprefix tests/unit/,base protocol wire owned_state)
CODE := src tests benchmarks tools lab $(if $(wildcard examples/*.py examples/*/*.py),examples)

.DEFAULT_GOAL := help
.PHONY: help setup install chat busy demo test test-simulation test-failover outages test-others test-floors lint types format canaries fuzz hunt histories kills exhaustive same-answers bench bench-quick docs pictures lock audit dist-check release clean

help:  ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' Makefile
	@echo
	@echo 'Pass more with ARGS, as in: make test ARGS="tests/unit -k lease"'

$(READY): pyproject.toml locks/ci.txt tools/setup
	@PYTHON="$(PYTHON)" tools/setup
	@touch $@ $(STARTED)

# What users see first waits for what it needs, and for nothing that only developers do.
$(STARTED): pyproject.toml locks/start.txt tools/setup
	@PYTHON="$(PYTHON)" tools/setup start
	@touch $@

setup: $(READY)  ## make .venv for developers, or bring it up to date

install: $(STARTED)  ## install tenure into .venv, without the tools of its developers

chat: $(STARTED)  ## run a chat room with two workers, at http://127.0.0.1:8000
	@mkdir -p build/chat && cd build/chat && PATH="$(CURDIR)/$(BIN):$$PATH" tenure run -- \
		uvicorn --app-dir ../../examples chat:app --workers 2 $(ARGS)

busy: $(READY)  ## keep a pool busy to look at on the dashboard: a hot key, crashes, deploys, a store, a gateway
	@mkdir -p build && PATH="$(CURDIR)/$(BIN):$$PATH" tenure run --store --data build/busy --gateway --sockets rooms \
		--rest http://127.0.0.1:8001 -- python -m lab demo busy $(ARGS)

demo: $(STARTED)  ## run the demo: a manager, owners and frontends, live in the terminal
	@$(BIN)/tenure demo $(ARGS)

quick: $(READY)  ## run what needs no process, socket or wait: the protocol and what it stands on (a minute)
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal $(QUICK) $(ARGS)

test: $(READY)  ## run the tests on all cores (WORKERS=n for fewer)
	@$(BIN)/python -m pytest -q -n $(BUSY_WORKERS) --dist worksteal --ignore $(FAILOVER) --ignore $(SIMULATION) $(ARGS)

test-simulation: $(READY)  ## the protocols under all faults: seeds, schedules, canaries (minutes)
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -o faulthandler_timeout=0 $(SIMULATION) $(ARGS)

test-failover: $(READY)  ## real managers, owners and etcd through every fault (minutes)
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal $(FAILOVER) $(ARGS)

outages: $(READY)  ## etcd away for 40 and 120 s, at full length (minutes)
	@TENURE_TEST_OUTAGES=1 $(BIN)/python -m pytest -q $(FAILOVER)/test_etcd_faults.py -k long_outage \
		-o faulthandler_timeout=300 $(ARGS)

test-others: $(READY)  ## run the unit tests with the other Pythons (PYTHONS=paths for some)
	@PYTHONS="$(PYTHONS)" WORKERS="$(WORKERS)" tools/test-others $(ARGS)

test-floors: $(READY)  ## run some tests with the oldest dependencies that pyproject.toml admits
	@tools/test-floors $(ARGS)

lint: $(READY)  ## check style and formatting
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .

types: $(READY)  ## check types, strictly
	@$(BIN)/mypy $(CODE)

format: $(READY)  ## format the code, and mend what can be mended
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format .

canaries: $(READY)  ## hunt every mutant, from three first seeds (minutes)
	@$(BIN)/python -m lab hunt

fuzz: $(READY)  ## fuzz every decoder, guided by what is reached (SECONDS=60, SEED=1 to repeat)
	@$(BIN)/python -m tests.hostile.fuzz $(SECONDS) $(SEED)

hunt: $(READY)  ## hunt every mutant once, from one first seed (as CI does)
	@$(BIN)/python -m lab hunt --short

histories: $(READY)  ## record real nodes under all faults, and judge twice (SECONDS=60, OPERATIONS=0, SEED=1)
	@$(BIN)/python -m lab histories --seconds $(SECONDS) --operations $(or $(OPERATIONS),0) \
		$(if $(SEED),--seed $(SEED)) $(ARGS)

kills: $(READY)  ## kill and stop whatever keeps entities, and judge what clients were told (COUNT=200, SEED=1)
	@$(BIN)/python -m lab kills --count $(or $(COUNT),200) $(if $(SEED),--seed $(SEED))

exhaustive: $(READY)  ## search every story of small worlds, in scopes that take minutes
	@$(BIN)/python -m tests.simulation.exhaustive

same-answers: $(READY)  ## compare 100,000 writes to each store with a real Cassandra 1.2.0 (minutes)
	@TENURE_TEST_WRITES=100000 $(BIN)/python -m pytest -q -n 2 -o faulthandler_timeout=0 \
		tests/integration/cassandra/test_same_answers.py $(ARGS)

bench: $(READY)  ## run the benchmarks (ARGS=name for one, with its options; ARGS=--quick for seconds)
	@$(if $(findstring --quick,$(ARGS)),,.ci/peers || echo "bench: without all peers")
	@$(BIN)/python -m benchmarks $(ARGS)

bench-quick: $(READY)  ## measure beside the peers, and write benchmarks/RESULTS.md (minutes)
	@.ci/peers || echo "bench-quick: without all peers"
	@$(BIN)/python -m benchmarks --quick results $(ARGS)

docs: $(READY)  ## build the site of the documents into build/site (VERSION=0.1.0 for a release)
	@VERSION="$(VERSION)" tools/docs

pictures: $(READY)  ## draw the pictures of the documents again: the demo's screen, and the diagrams
	@$(BIN)/python -m tools.site.pictures docs/pictures --demo

lock: $(READY)  ## write locks/*.txt anew (ARGS=--upgrade for the newest of everything)
	@tools/lock $(ARGS)

audit: $(READY)  ## look for known weaknesses in what is installed; fails where they cannot be looked up
	@tools/audit

dist-check: $(READY)  ## build the sdist and the wheel, and run the demo from them in an empty environment
	@tools/dist-check

release: $(READY)  ## check, build, sign and tag VERSION (DRY_RUN=1 keeps nothing)
	@VERSION="$(VERSION)" DRY_RUN="$(DRY_RUN)" tools/make-release

clean:  ## remove .venv and everything the tools left
	@rm -rf .venv .venv-others .venv-docs .venv-floors .venv-release .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
