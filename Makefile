# Everything below works on a fresh clone: the first target that needs .venv makes it.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test test-slow bench lint clean
.DEFAULT_GOAL := help

help:  ## this list
	@echo "make demo       install, then the main job in about two minutes"
	@echo "make test       install, lint and all fast tests"
	@echo "make test-slow  the tests that take minutes"
	@echo "make bench      speed, as ratios measured in one run"
	@echo "make lint       ruff and pyright"

$(READY): pyproject.toml constraints.txt
	@test -d .venv || $(PYTHON) -m venv .venv
	@echo "Installing spota and its dependencies into .venv (once; about a minute) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' -c constraints.txt
	@touch $@

demo: $(READY)
	@for env in ball-balancer:pd cart-pole:lqr cart-pole-swing-up:energy qube:lqr qube-swing-up:energy; do \
	  $(BIN)/spota rollout $${env%%:*} --policy $${env##*:} --domains 500 || exit 1; done
	@$(BIN)/spota play cart-pole-swing-up --policy energy --out runs/demo.html

lint: $(READY)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/pyright

test: lint
	@$(BIN)/python -m pytest -m "not slow" -n 2

test-slow: $(READY)
	@$(BIN)/python -m pytest -m slow || { test $$? -eq 5 && echo "No test is slow yet."; }

bench: $(READY)
	@$(BIN)/python -m benchmarks

clean:
	rm -rf .venv runs
