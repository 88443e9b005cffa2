# The commands of the project. Everything they make is in .venv/ and build/.
# Paths are relative and tools run as "python -m", so a folder with spaces in its name works.

PYTHON ?= python3
export PYTHON

VENV_PYTHON := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup venv spark preflight demo test lint bench bench-worker docs test-long test-ecosystem pins clean

help: ## Show this list.
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -e 's/:.*## /\t/' | while IFS="$$(printf '\t')" read -r name text; do printf '  make %-16s %s\n' "$$name" "$$text"; done

setup: preflight ## Make .venv (plain, editable) and build/compiled (compiled). Repeats in a second.
	@"$(PYTHON)" tools/setup.py venv compiled

venv: preflight ## Make .venv only.
	@"$(PYTHON)" tools/setup.py venv

spark: preflight ## Add Spark, and a Java for it, to .venv.
	@"$(PYTHON)" tools/setup.py spark

preflight:
	@tools/preflight.sh

demo: setup ## Watch workers bill each order once though one is killed; then archive it all with Spark.
	@"$$("$(PYTHON)" tools/setup.py python)" examples/demo.py

test: ## Lint, all tests on the plain build, core tests again on the compiled build.
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory spark
	@"$(PYTHON)" tools/run_tests.py

lint: venv ## Check style (ruff), types (mypy, strict) and that the command pages are current.
	@$(VENV_PYTHON) -m ruff check .
	@$(VENV_PYTHON) -m ruff format --check .
	@$(VENV_PYTHON) -m mypy
	@$(VENV_PYTHON) tools/command_pages.py --check

bench: setup ## Measure the broker beside a real server, plain and compiled.
	@$(VENV_PYTHON) bench/broker.py

bench-worker: setup ## Measure workers and publishing beside Dramatiq, FastStream, taskiq and redis-py.
	@"$(PYTHON)" tools/setup.py peers
	@$(VENV_PYTHON) bench/worker.py

docs: venv ## Write the documentation site to build/docs-site.
	@"$(PYTHON)" tools/setup.py docs
	@$(VENV_PYTHON) tools/command_pages.py
	@build/docs-env/bin/python -m zensical build --clean --strict

test-long: spark ## The large counts. Needs a Redis 7.0 and a Redis 8.6 server.
	@$(VENV_PYTHON) tools/long_servers.py
	@$(VENV_PYTHON) -m pytest -m long

test-ecosystem: venv ## Other people's libraries on our broker.
	@"$(PYTHON)" tools/setup.py ecosystem
	@$(VENV_PYTHON) -m pytest -m ecosystem tests/ecosystem

pins: venv ## Pin the newest versions of all requirements, with hashes.
	@$(VENV_PYTHON) tools/pins.py

clean: ## Remove both environments and everything built.
	@rm -rf .venv build dist .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis src/*.egg-info
	@find src -name '*.so' -exec rm -f {} +
	@find src tests tools examples bench -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
