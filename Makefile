# The verbs of this project. `make book` and `make test` need git, make, and Python 3.10 or newer.
# Another Python: make PYTHON=python3.12 book

PYTHON ?= $(shell test -x .venv/bin/python && echo .venv/bin/python || echo python3)
HERE = .venv/bin/python
STEP = @$(HERE) tools/step.py
ONCE = $(STEP) --once
REPORT = --junitxml=_build/reports/$@.xml -o junit_family=xunit1
# On a GPU nbval runs every notebook once more, live; on a CPU it compares the execution that is kept.
REPLAY = $(if $(filter-out cpu,$(TRANSFORMER_LAB_DEVICE)),,-p nbval_replay)
NBVAL = PYTHONPATH=tools $(HERE) -m pytest -q -n 2 --dist loadfile --nbval --nbval-current-env --nbval-cell-timeout=300
# Small models gain nothing from a second thread, and two processes whose threads wait for one another take ten times as long.
export OMP_NUM_THREADS ?= 1
# Packages are compiled when they are first imported: where that is not kept, every process does it again, for seconds.
unexport PYTHONDONTWRITEBYTECODE
# What runs here is no learner: it must not write into the record of the one whose computer this is.
export TRANSFORMER_LAB_DATA ?= $(CURDIR)/_build/data

.PHONY: environment book test lint executed outputs live units claims device pages notebooks serve bench colab grade lock repository address site

book: environment ## build the book; notebooks that have changed are executed
	@$(HERE) tools/build_book.py

test: environment ## everything that CI runs
	$(STEP) lint $(MAKE) --no-print-directory lint
	$(STEP) executed $(MAKE) --no-print-directory executed
	$(STEP) outputs $(MAKE) --no-print-directory outputs
	$(ONCE) units $(MAKE) --no-print-directory units
	$(ONCE) device $(MAKE) --no-print-directory device QUICK=--quick
	$(STEP) book $(MAKE) --no-print-directory book
	$(ONCE) pages $(MAKE) --no-print-directory pages
	$(ONCE) grade $(MAKE) --no-print-directory grade
	@echo "All tests passed."

lint: environment ## style of the code, Python and JavaScript, form of the notebooks
	@$(HERE) -m ruff check
	@$(HERE) -m ruff format --check
	@if [ -x .venv/bin/biome ]; then .venv/bin/biome ci --error-on-warnings; else echo "JavaScript is not linted: biome has no wheel here."; fi
	@$(HERE) tools/notebooks.py --check
	@$(HERE) tools/assignments.py --check

executed: environment ## every notebook executed once, unless it was since it and the package last changed
	@$(HERE) tools/executed.py

outputs: environment ## every notebook gives the outputs that it stores
	@$(NBVAL) $(REPLAY) $(REPORT) chapters

live: environment ## the same, executed anew
	@$(NBVAL) $(REPORT) chapters

units: environment ## everything but the book
	@$(HERE) -m pytest -q -n 2 --dist worksteal $(REPORT) --ignore tests/test_book.py

claims: environment ## what the chapters say of their small models, from ten seeds
	@TRANSFORMER_LAB_ALL_SEEDS=1 $(HERE) -m pytest -q -n 2 $(REPORT) $(wildcard tests/test_chapter_*.py)

device: environment ## the mathematics' tests and every notebook on a stand-in for a GPU
	@$(HERE) tools/device.py $(QUICK)

pages: environment ## the built book, in a browser
	@$(HERE) -m pytest -q -n 2 --dist worksteal $(REPORT) tests/test_book.py

notebooks: environment ## make the assignments, run all notebooks in place and write them in their one form
	@$(HERE) tools/assignments.py
	@$(HERE) tools/notebooks.py

serve: environment ## show the book, and build it again on every change
	@$(HERE) tools/build_book.py --serve

bench: environment ## measure what is claimed about speed and size
	@for script in $$(grep -l __main__ benchmarks/*.py); do echo "$$script"; $(HERE) $$script || exit 1; done

colab: environment ## run the notebooks as Colab would
	@$(HERE) tools/colab.py

grade: environment ## hand the assignments out to a class, and grade what comes back, with nbgrader
	@$(HERE) tools/grade.py

repository: environment ## give the course its address: make repository [URL=https://github.com/you/your-fork] [BRANCH=main]
	@$(HERE) tools/repository.py $(URL) $(if $(BRANCH),--branch $(BRANCH))

address: environment ## say when the stored address is not this repository's own
	@$(HERE) tools/repository.py --warn

site: environment ## the book as it is published, which it is not without an address
	@$(HERE) tools/repository.py --demand
	@$(MAKE) --no-print-directory book

lock: environment ## pin every version anew
	@tools/lock.sh

environment:
	@command -v $(PYTHON) > /dev/null || { echo "make: Python 3.10 or newer is needed, and $(PYTHON) is not found." >&2; exit 1; }
	@$(PYTHON) tools/environment.py
