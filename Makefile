# fleetplan: everything that a newcomer or CI runs. Needs make and Python >= 3.11, nothing else.
#
#   make plan                   install into .venv, plan scenarios/quarterly.yaml, write out/
#   make plan FLEET=my.yaml     the same for a fleet of one's own; ARGS="--gap 0.1% -s growth" for options
#   make test                   install with the test tools, run the tests in parallel
#   make test-more              the tests of `make test` on further models, fleets, limits and random examples
#   make lint types contracts   what CI checks besides
#   make slow                   the tests that take minutes, and every example of those that `make test` tries on a few
#   make structure              measure the layout of the code, draw docs/structure.svg
#   make site                   build the documentation site into build/site, every link checked
#   make interop                vLLM's and SGLang's own parsers on what every scenario exports (an environment of 5 GB)
#   make interop-benchmarks     load generators' own files against what a server saw (environments of 3 GB more)
#   make soak                   10,000 random fleets, planned, verified and questioned (days); HOURS=2 FIRST=1000
#   make soak-independent       the same against a second formulation of the documentation
#
# Another interpreter: make plan PYTHON=python3.12. Nothing is installed twice unless pyproject.toml changed.

PYTHON ?= python3
VENV   ?= .venv
FLEET  ?= scenarios/quarterly.yaml
OUT    ?= out
# A plan proven within 1 % of the least cost; on two cores the packaged fleet takes some ten seconds for it. The
# limit holds for the first evaluation of its candidates as well, which takes minutes where other work has the cores.
ARGS   ?= --gap 1% --time-limit 180

# The kernels of `plan optables measure` are tested with torch. Its build for CPUs alone (some 200 MB) is taken from
# the indexes that pip knows, or from PyTorch's own; never that of PyPI, which brings gigabytes of CUDA libraries.
# Where there is none for a platform, or with TORCH= (empty), those tests are skipped and say so.
TORCH       ?= torch==2.13.0+cpu
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

.PHONY: help plan test test-more slow site interop interop-benchmarks soak soak-independent lint format types contracts structure clean
.DEFAULT_GOAL := help

help:
	@sed -n '3,16s/^# *//p' Makefile

# The stamps carry the date of the last install; a newer pyproject.toml or Makefile makes it happen again.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "fleetplan needs Python >= 3.11: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "creating $(VENV) with $$($(PYTHON) --version)" >&2
	@$(PYTHON) -m venv $(VENV)

# Says what is missing where aiconfigurator-core has no wheel (Python 3.14, other platforms than Linux on x86-64).
SAY_TABLES := $(BIN)/python -c 'from importlib.util import find_spec as f; import sys; f("aiconfigurator_core") or print( \
	"no measured operator tables for this Python and platform: times come from the roofline (plan optables use DIR)", \
	file=sys.stderr)'

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	@echo "installing fleetplan and its dependencies into $(VENV) (a minute or two, once)" >&2
	@$(PIP) --editable '.[serve]'
	@$(SAY_TABLES)
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	@echo "installing fleetplan with its test tools into $(VENV) (a minute or two, once)" >&2
	@$(PIP) --editable '.[dev]'
	@if [ -n '$(TORCH)' ]; then \
		$(PIP) '$(TORCH)' 2>/dev/null \
		|| $(PIP) --retries 1 --extra-index-url $(TORCH_INDEX) '$(TORCH)' 2>/dev/null \
		|| echo "no $(TORCH) for this Python and platform: the tests that need torch are skipped" >&2; \
	fi
	@touch $@ $(VENV)/.installed

# A set-up with the test tools serves `plan` as well.
plan: $(VENV)/.installed
	@$(BIN)/plan $(FLEET) --out $(OUT) $(ARGS)

# Compiled modules are kept, whatever the environment says: dozens of tests start a process of their own.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal

test: $(VENV)/.installed-dev
	@$(PYTEST) -m "not slow and not more" -rs

test-more: $(VENV)/.installed-dev
	@FLEETPLAN_TEST_EXAMPLES=more $(PYTEST) -m "more and not slow" -rs

slow: $(VENV)/.installed-dev
	@FLEETPLAN_TEST_EXAMPLES=all $(PYTEST) -m slow -rs

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/.installed
	@echo "installing what builds the site into $(VENV)" >&2
	@$(PIP) --editable '.[docs]'
	@touch $@

# The pictures of the gallery are drawn by the commands that the page names. The gap ends the search; the limit is for a
# machine with other work.
build/gallery/report.html: $(VENV)/.installed scenarios/quarterly.yaml
	@mkdir -p build/gallery
	@$(BIN)/plan scenarios/quarterly.yaml --gap 1% --time-limit 600 --out build/plan > build/plan.txt 2>&1
	@$(BIN)/plan landscape scenarios/quarterly.yaml --service assistant --plot build/gallery > build/landscape.txt 2>&1
	@cp build/plan/report.html $@

# Not --quiet: a strict build counts the warnings that it logs, and would pass over a broken link.
site: $(VENV)/.installed-docs build/gallery/report.html
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build > build/site.txt 2>&1 || { cat build/site.txt; exit 1; }
	@echo "build/site/index.html"

# Frameworks without their GPU libraries: what parsers and checks of options import, and no more.
INTEROP ?= .venv-interop

$(INTEROP)/.installed: tests/interop/requirements.txt tests/interop/frameworks.txt | $(VENV)/bin/python
	@echo "installing vLLM and SGLang without CUDA into $(INTEROP) (some minutes, once)" >&2
	@$(PYTHON) -m venv $(INTEROP)
	@$(INTEROP)/bin/python -m pip --disable-pip-version-check install --quiet '$(TORCH)' \
		|| $(INTEROP)/bin/python -m pip install --quiet --extra-index-url $(TORCH_INDEX) '$(TORCH)'
	@$(INTEROP)/bin/python -m pip --disable-pip-version-check install --quiet -r tests/interop/requirements.txt
	@$(INTEROP)/bin/python -m pip --disable-pip-version-check install --quiet --no-deps -r tests/interop/frameworks.txt
	@touch $@

# A folder of CustomResourceDefinitions (Kueue, Karpenter, ...) to hold objects to besides, rules in CEL too.
CRDS ?=

interop: $(VENV)/.installed-dev $(INTEROP)/.installed
	@$(BIN)/python -m tests.interop $(INTEROP)/bin/python $(if $(CRDS),--crds $(CRDS))

# Load generators, each in an environment of its own: they ask for different versions of the same libraries.
# inference-perf needs Python 3.12: without one it is left out.
PYTHON312 ?= python3.12

$(INTEROP)-%/.installed: tests/interop/benchmarks/%.txt
	@echo "installing $* into $(INTEROP)-$* (a minute or two, once)" >&2
	@$(if $(filter inference-perf,$*),$(PYTHON312),$(PYTHON)) -m venv $(INTEROP)-$*
	@if [ $* = guidellm ]; then \
		$(INTEROP)-$*/bin/python -m pip install --quiet '$(TORCH)' \
		|| $(INTEROP)-$*/bin/python -m pip install --quiet --extra-index-url $(TORCH_INDEX) '$(TORCH)'; \
	fi
	@$(INTEROP)-$*/bin/python -m pip --disable-pip-version-check install --quiet -r $<
	@touch $@

GENERATORS := aiperf guidellm $(if $(shell command -v $(PYTHON312)),inference-perf)

interop-benchmarks: $(VENV)/.installed-dev $(INTEROP)/.installed $(GENERATORS:%=$(INTEROP)-%/.installed)
	@$(BIN)/python -m tests.interop.benchmarks vllm=$(INTEROP)/bin sglang=$(INTEROP)/bin \
		$(foreach each,$(GENERATORS),$(each)=$(INTEROP)-$(each)/bin)

# Fleets, the seed of the first one, and the hours after which no more begin.
FLEETS ?= 10000
FIRST  ?= 0
HOURS  ?= inf

soak: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.fuzz.soak --fleets $(FLEETS) --first $(FIRST) --hours $(HOURS)

soak-independent: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.oracles.independent.soak --fleets $(FLEETS) --first $(FIRST)

lint: $(VENV)/.installed-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: $(VENV)/.installed-dev
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: $(VENV)/.installed-dev
	@$(BIN)/mypy -p fleetplan

contracts: $(VENV)/.installed-dev
	@$(BIN)/lint-imports

structure: $(VENV)/.installed-dev
	@$(BIN)/python benchmarks/structure.py --draw docs/structure.svg

clean:
	@rm -rf $(VENV) $(OUT) build dist
