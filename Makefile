# Two commands do everything, the environment included: `make figures` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# What takes long is left out: `make figures LONG=1`, `make test LONG=1`.
LONG   ?=

.PHONY: help env figures recorded test test-course test-lab test-scale lint site audit-pdf release bench lock clean holes mutants fuzz processors
help:      ## this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

env: $(READY)  ## the environment in .venv, exact versions from constraints.txt
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,course]'
	@touch $@

figures: $(READY)  ## every figure and table, offline, from what comes with the kit (LONG=1: the long ones too)
	@mkdir -p build
	$(BIN)/python -m papermill notebooks/00_regenerate_all.ipynb build/00_regenerate_all.ipynb --log-output --no-progress-bar$(if $(LONG), -p long True)

recorded: $(READY)  ## what items come to on real data: make recorded DATA=DIR, DIR with a folder for each dataset
	@test -n "$(DATA)" || { echo "make recorded DATA=DIR: DIR holds a folder for each dataset (data/recorded/README.md)"; exit 2; }
	$(BIN)/xcrepro run --record --data "$(DATA)"
	$(BIN)/python -m xcrepro.inputs.twin_statistics "$(DATA)"

test: $(READY) lint  ## unit tests, doctests, and the outputs of every notebook (LONG=1: the long ones, and all recorded numbers)
	$(if $(LONG),XCREPRO_LONG=1 )$(BIN)/python -m pytest -n 2 --dist worksteal -p no:nbval
	@# a notebook's cells belong to one worker; its figures go where they change nothing that is committed
	$(if $(LONG),XCREPRO_LONG=1 )XCREPRO_FIGURES=build/nbval $(BIN)/python -m pytest -n 2 --dist loadfile --nbval --nbval-current-env notebooks

test-course: $(READY)  ## every lesson through nbgrader: stubs, solutions, planted wrong answers (make test does one)
	XCREPRO_COURSE=1 $(BIN)/python -m pytest -n 2 tests/course

test-lab: $(READY)  ## every notebook through a Jupyter server, from a clone and from the wheel (make test does three)
	XCREPRO_LAB=1 $(BIN)/python -m pytest tests/test_jupyter_server.py

test-scale: $(READY)  ## the same bits on Dask, workers and clients killed (make test leaves out what needs Dask)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,scale]'
	$(BIN)/python -m pytest -n 2 tests/scale tests/data/test_stream.py tests/repro/test_sweep.py

processors: $(READY)  ## all notebooks on simulated processors, from empty caches: hours (ONLY="Nehalem Zen", ITEMS=jain16, AGAIN=1)
	$(BIN)/python -m tests.processors$(if $(ONLY), --only $(ONLY))$(if $(ITEMS), --items $(ITEMS))$(if $(AGAIN), --again)

mutants: $(READY)  ## planted faults, one by one: do the tests see them? (MINUTES=30: so long; it goes on where it stopped)
	$(BIN)/python -m tests.mutants$(if $(MINUTES), --minutes $(MINUTES))

fuzz: $(READY)  ## damaged files at every door (FUZZ_SECONDS=300, FUZZ_SEED=0)
	$(BIN)/python -m tests.fuzz --seconds $(or $(FUZZ_SECONDS),300) --seed $(or $(FUZZ_SEED),0)

lint: $(READY)  ## ruff
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .

site: $(READY)  ## the site in build/site/html, checked; in a browser too where Chromium is installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,docs]'
	$(BIN)/python -m docs
	$(BIN)/python -m docs.browser build/site/html

audit-pdf: $(READY)  ## docs/audit.md as a paper in build/audit.pdf, where LaTeX is installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,docs]'
	$(BIN)/python -m docs.pdf

release: $(READY)  ## what a release uploads, in build/release: the last commit with its RO-Crate; codecheck.yml anew
	$(BIN)/python -m docs.release
	$(BIN)/python -m docs.release build/release

bench: $(READY)  ## our kernels beside the peers', as ratios
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,bench,scale]'
	$(BIN)/python -m benchmarks

lock: $(READY)  ## environment.yml from pyproject.toml, constraints.txt from what is installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade -e '.[test,bench,course,formats,docs,scale]'
	$(BIN)/python -m xcrepro.repro.environment

holes:     ## known holes of the pinned versions, by pip-audit: needs a network, and an environment of its own
	$(PYTHON) -m venv build/holes
	build/holes/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	build/holes/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip

clean:  ## all that make made
	rm -rf $(VENV) build
