# Two commands do everything, the environment included: `make figures` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
TESTED := $(VENV)/.tested
# What is never imported need not be compiled to bytecode; what is, Python compiles then, once: but not where this variable
# is set, as in many containers, and then each process would compile every package anew.
unexport PYTHONDONTWRITEBYTECODE
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

# What takes long is left out: `make figures LONG=1`, `make test LONG=1`.
LONG   ?=
# A part of it: `make figures ONLY=jain16`, `make figures ONLY=jain16/table3_table4,beyond/audit`.
ONLY   ?=

.PHONY: help env figures train recorded test test-core test-course test-lab test-scale lint site web bench lock clean holes mutants fuzz processors rehearsal
help:      ## this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

env: $(TESTED)  ## the environment in .venv, exact versions from constraints.txt
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[notebooks]'
	@touch $@
$(TESTED): $(READY)
	$(PIP) -e '.[test,course,docs]'
	@touch $@

figures: $(READY)  ## every figure and table, offline (ONLY=jain16: a paper's or a notebook's; LONG=1: the long ones too)
	@mkdir -p build
	$(BIN)/python -m papermill notebooks/00_regenerate_all.ipynb build/00_regenerate_all.ipynb --log-output --no-progress-bar$(if $(LONG), -p long True)$(if $(ONLY), -p items $(ONLY))

train: $(READY)  ## train anew what notebooks read of models, compare it with data/predictions, and bring that up to date
	$(BIN)/python -m maintenance.train $(ONLY)

recorded: $(READY)  ## what items come to on real data: make recorded DATA=DIR, DIR with a folder for each dataset
	@test -n "$(DATA)" || { echo "make recorded DATA=DIR: DIR holds a folder for each dataset (data/recorded/README.md)"; exit 2; }
	$(BIN)/xcrepro run --record --data "$(DATA)"
	$(BIN)/python -m xcrepro.repro.inputs.twin_statistics "$(DATA)"

test: $(TESTED) lint  ## unit tests, doctests, every page of the site, and the outputs of every notebook (LONG=1: the long ones, and all recorded numbers)
	$(if $(LONG),XCREPRO_LONG=1 )$(BIN)/python -m pytest -n 2 --dist worksteal -p no:nbval
	@# a notebook's cells belong to one worker; its figures go where they change nothing that is committed
	@# a few models are trained all the same, others at each commit, and must give what is stored
	rm -rf build/confirm
	$(if $(LONG),XCREPRO_LONG=1 )XCREPRO_CONFIRM=some XCREPRO_FIGURES=build/nbval $(BIN)/python -m pytest -n 2 --dist loadfile --nbval --nbval-current-env --nbval-kernel-startup-timeout 900 notebooks

test-core: $(TESTED)  ## the core and the models with their tests and doctests: about two minutes once compiled
	$(BIN)/python -m pytest -n 2 --dist worksteal -p no:nbval tests/core tests/models xcrepro/core xcrepro/models

test-course: $(TESTED)  ## every lesson through nbgrader: stubs, solutions, planted wrong answers (make test does one)
	XCREPRO_COURSE=1 $(BIN)/python -m pytest -n 2 tests/tools/course

test-lab: $(TESTED)  ## every notebook through a Jupyter server, as it is and with one edit, from a clone and from the wheel (make test does a few)
	XCREPRO_LAB=1 $(BIN)/python -m pytest tests/test_jupyter_server.py

test-scale: $(TESTED)  ## the same bits on Dask, workers and clients killed (make test leaves out what needs Dask)
	$(PIP) -e '.[test,scale]'
	$(BIN)/python -m pytest -n 2 tests/tools/scale tests/core/data/test_stream.py

processors: $(TESTED)  ## all notebooks on simulated processors, from empty caches: hours (ONLY="Nehalem Zen", ITEMS=jain16, AGAIN=1)
	$(BIN)/python -m tests.processors$(if $(ONLY), --only $(ONLY))$(if $(ITEMS), --items $(ITEMS))$(if $(AGAIN), --again)

mutants: $(TESTED)  ## planted faults, one by one: do the tests see them? (MINUTES=30: so long; it goes on where it stopped)
	$(BIN)/python -m tests.mutants$(if $(MINUTES), --minutes $(MINUTES))

rehearsal: $(TESTED)  ## every notebook on stand-ins of all datasets, from the download on (MINUTES=60; it goes on where it stopped)
	$(BIN)/python -m tests.rehearsal$(if $(MINUTES), --minutes $(MINUTES))$(if $(ITEMS), $(ITEMS))

fuzz: $(TESTED)  ## damaged files at every door (FUZZ=5000 of them, in proportion)
	XCREPRO_FUZZ=$(or $(FUZZ),5000) $(BIN)/python -m pytest -n 2 --dist worksteal -p no:nbval tests/fuzz/test_doors.py

lint: $(TESTED)  ## ruff, and mypy on core, models and the public names
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

site: $(TESTED)  ## the site in build/site/html, checked; in a browser too where Chromium is installed
	$(BIN)/python -m docs
	$(BIN)/python -m docs.browser build/site/html

web: $(TESTED)  ## adds the page that makes reports in a browser's tab (needs pip's and npm's registries)
	$(BIN)/python -m docs.web

bench: $(TESTED)  ## our kernels beside the peers', as ratios
	$(PIP) -e '.[test,bench,scale]'
	$(BIN)/python -m benchmarks

lock: $(TESTED)  ## environment.yml from pyproject.toml, constraints.txt from what is installed
	@# jsonschema from 4.25 on brings a grammar that each process compiles that reads a notebook: 0.9 s of CPU
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade -e '.[test,bench,course,formats,docs,scale]' 'jsonschema<4.25'
	$(BIN)/python -m maintenance.environment

holes:     ## known holes of the pinned versions, by pip-audit: needs a network, and an environment of its own
	$(PYTHON) -m venv build/holes
	build/holes/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	build/holes/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip

clean:  ## all that make made
	rm -rf $(VENV) build
