# Two commands do everything, the environment included: `make figures` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: help env figures test lint bench lock clean
help:      ## this list
	@grep -E '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

env: $(READY)  ## the environment in .venv, exact versions from constraints.txt
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	@touch $@

figures: $(READY)  ## every figure and table, offline, from the synthetic twins and the committed counts
	@mkdir -p build
	$(BIN)/python -m papermill notebooks/00_regenerate_all.ipynb build/00_regenerate_all.ipynb --log-output --no-progress-bar

test: $(READY) lint  ## unit tests, doctests, and the outputs of every notebook
	$(BIN)/python -m pytest -n 2
	@# a notebook's cells belong to one worker; its figures go where they change nothing that is committed
	XCREPRO_FIGURES=build/nbval $(BIN)/python -m pytest -n 2 --dist loadfile --nbval --nbval-current-env notebooks

lint: $(READY)  ## ruff
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .

bench: $(READY)  ## our kernels beside the peers', as ratios
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,bench]'
	$(BIN)/python -m benchmarks

lock: $(READY)  ## environment.yml from pyproject.toml, constraints.txt from what is installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade -e '.[test,bench]'
	$(BIN)/python -m xcrepro.repro.environment

clean:  ## all that make made
	rm -rf $(VENV) build
