# Everything below works on a fresh clone: the first target that needs .venv makes it.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
READY := .venv/.ready
RIVAL := .bench-venv/.ready

.PHONY: demo test test-slow bench lint docs browser clean
.DEFAULT_GOAL := help

help:  ## this list
	@echo "make demo       install, then train and certify a policy for the Cart-Pole in two to four minutes"
	@echo "make test       install, lint and all fast tests"
	@echo "make test-slow  the tests that take minutes"
	@echo "make bench      speed, as ratios measured in one run"
	@echo "make lint       ruff and pyright"
	@echo "make docs       the documentation as pages, in site/"
	@echo "make browser    Debian's chromium, for the tests of pages (as root)"

$(INSTALLED): pyproject.toml constraints.txt
	@test -d .venv || $(PYTHON) -m venv .venv
	@echo "Installing spota and its dependencies into .venv (once; about a minute) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e . -c constraints.txt
	@touch $@

$(READY): $(INSTALLED)
	@echo "Installing what tests, lint and docs need (once; about a minute) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' -c constraints.txt
	@touch $@

demo: $(INSTALLED)
	@$(BIN)/spota train cart-pole --preset quick --out runs/demo

lint: $(READY)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/pyright

docs: $(READY)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet && echo "Wrote site/: open site/index.html in a browser."

# Most of the fast tests' time is compilation: LLVM's costly passes are left to the slow ones and to users.
FAST_COMPILATION := --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true
test: lint
	@XLA_FLAGS="$(FAST_COMPILATION)" $(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile

test-slow: $(READY)
	@$(BIN)/python -m pytest -m slow || { test $$? -eq 5 && echo "No test is slow yet."; }

# Stable-Baselines3, to compare with, has an environment of its own. torch comes first, as a command of its own.
$(RIVAL): benchmarks/sb3-requirements.txt
	@test -d .bench-venv || $(PYTHON) -m venv .bench-venv
	@echo "Installing Stable-Baselines3 into .bench-venv (once; about two minutes) …"
	@.bench-venv/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	@.bench-venv/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/sb3-requirements.txt
	@touch $@

bench: $(READY) $(RIVAL)
	@$(BIN)/python -m benchmarks

browser:
	@if command -v chromium >/dev/null; then echo "chromium is there already."; \
	elif [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
	  echo "This needs Debian's apt-get and root: sudo make browser. Elsewhere install chromium in your system's way."; exit 1; \
	else apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; fi

clean:
	rm -rf .venv .bench-venv runs site
