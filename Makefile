# The verbs of this project: `make` lists them. `make book` and `make test` need git, make, and Python 3.10 or newer.
# With a different Python: make PYTHON=python3.12 book
.DEFAULT_GOAL := help

PYTHON ?= $(shell test -x .venv/bin/python && echo .venv/bin/python || echo python3)
VENV_PYTHON = .venv/bin/python
STEP = @$(VENV_PYTHON) tools/step.py
STEP_ONCE = $(STEP) --once
REPORT = --junitxml=_build/reports/$@.xml -o junit_family=xunit1
# On a GPU nbval executes every notebook itself; on a CPU it compares the stored execution.
NBVAL_PLUGIN = -p $(if $(filter-out cpu,$(TRANSFORMER_LAB_DEVICE)),nbval_live,nbval_replay)
NBVAL = PYTHONPATH=tools $(VENV_PYTHON) -m pytest -q -n 2 --dist loadfile --nbval --nbval-current-env --nbval-cell-timeout=300
# What to run while you work: the definition of attention, the formula's parts, masks, one exercise, one lab, one page.
CORE = tests/maths/test_attention.py tests/maths/test_masks.py $(wildcard tests/maths/test_formula.py) \
	tests/checks/test_checks.py tests/labs/test_masks_lab.py tests/book/test_pages.py
CORE_TESTS = definition or test_masks.py or test_formula.py or causal_mask or drag_paints or every_stage or keyboard or 05_masks
# The tests of the built book, which visit its pages as test_book.py does.
BOOK_TESTS = tests/book/test_book.py $(shell grep -lE "^from test_book import" tests/book/test_*.py)
# The test files that run only a sample of their cases on a push (tests/helpers/sampling.py).
SAMPLED_TESTS = $(shell grep -lE "^from sampling import" tests/*/test_*.py)
# Small models gain nothing from a second thread, and two processes with two threads each wait for each other: ten times as long.
export OMP_NUM_THREADS ?= 1
# With this variable set, every process would compile the packages again, which takes seconds.
unexport PYTHONDONTWRITEBYTECODE
# Do not write into the record of this computer's user.
export TRANSFORMER_LAB_DATA ?= $(CURDIR)/_build/data

.PHONY: help environment hook book test lint executed outputs live units core everything claims device pages notebooks pictures serve bench colab clients compat grade repository address site lock

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

environment: ## make .venv with every pinned package, or bring it up to date
	@command -v $(PYTHON) > /dev/null || { echo "make: Python 3.10 or newer is needed, and $(PYTHON) is not found." >&2; exit 1; }
	@$(PYTHON) tools/environment.py

hook: ## run `make lint` before each commit
	@file=$$(git rev-parse --git-path hooks)/pre-commit; \
	[ ! -e "$$file" ] || { echo "There is a hook already: $$file" >&2; exit 1; }; \
	printf '#!/bin/sh\nexec make lint\n' > "$$file" && chmod +x "$$file"
	@echo "make lint runs before each commit; git commit --no-verify skips it."

book: environment ## build the book; notebooks that have changed are executed first
	@$(VENV_PYTHON) tools/build_book.py

test: environment ## everything that CI runs; long steps are skipped while nothing has changed
	$(STEP) lint $(MAKE) --no-print-directory lint
	$(STEP) executed $(MAKE) --no-print-directory executed
	$(STEP) outputs $(MAKE) --no-print-directory outputs
	$(STEP_ONCE) units $(MAKE) --no-print-directory units
	@# These steps run at the same time, since grading does not keep two processors busy.
	@{ $(VENV_PYTHON) tools/step.py book $(MAKE) --no-print-directory book && \
	$(VENV_PYTHON) tools/step.py --once device $(MAKE) --no-print-directory device QUICK=--quick; } & \
	$(VENV_PYTHON) tools/step.py --once grade $(MAKE) --no-print-directory grade; status=$$?; wait $$! && exit $$status
	$(STEP_ONCE) pages $(MAKE) --no-print-directory pages
	@echo "All tests passed."

lint: environment ## what can be checked in seconds: style, types, notebooks, assignments, links to Colab
	@$(VENV_PYTHON) -m ruff check
	@$(VENV_PYTHON) -m ruff format --check
	@$(VENV_PYTHON) -m ty check --quiet
	@if [ -x .venv/bin/biome ]; then .venv/bin/biome ci --error-on-warnings; else echo "JavaScript is not linted: biome has no wheel here."; fi
	@$(VENV_PYTHON) tools/script_rules.py
	@$(VENV_PYTHON) tools/notebooks.py --check
	@$(VENV_PYTHON) tools/notebook_rules.py
	@$(VENV_PYTHON) tools/assignments.py --check
	@$(VENV_PYTHON) tools/plain_words.py
	@$(VENV_PYTHON) tools/routes.py --check
	@$(VENV_PYTHON) tools/repository.py --check

executed: environment ## execute every notebook whose code, or package, has changed
	@$(VENV_PYTHON) tools/executed.py

outputs: environment ## compare the outputs that notebooks store with the last execution (nbval)
	@$(NBVAL) $(NBVAL_PLUGIN) $(REPORT) chapters

live: environment ## compare the outputs too, but let nbval execute every notebook itself
	@$(NBVAL) -p nbval_live $(REPORT) chapters

units: environment ## all tests but those of the built book
	@$(VENV_PYTHON) -m pytest -q -n 2 --dist worksteal $(REPORT) $(addprefix --ignore ,$(BOOK_TESTS) tests/clients)

core: environment ## a few tests of every kind, in half a minute: what to run while you work
	@$(VENV_PYTHON) -m pytest -q -n 2 --dist worksteal $(CORE) -k "$(CORE_TESTS)"

everything: book ## what `make test` samples, in full: every page, font, width, lab and known mistake
	@TRANSFORMER_LAB_EVERYTHING=1 $(VENV_PYTHON) -m pytest -q -n 2 --dist worksteal $(REPORT) \
		$(SAMPLED_TESTS)

claims: environment ## test with ten seeds what the chapters say about their small models
	@TRANSFORMER_LAB_ALL_SEEDS=1 $(VENV_PYTHON) -m pytest -q -n 2 $(REPORT) tests/chapters

device: environment ## the tests of the mathematics, and every notebook, on a stand-in for a GPU
	@$(VENV_PYTHON) tools/device.py $(QUICK)

pages: environment ## test the built book, as files and in a browser
	@$(VENV_PYTHON) -m pytest -q -n 2 --dist worksteal $(REPORT) $(BOOK_TESTS)

notebooks: environment ## generate the assignments, run the notebooks, write them in canonical form [ONLY=06]
	@$(VENV_PYTHON) tools/assignments.py $(ONLY)
	@$(VENV_PYTHON) tools/notebooks.py $(ONLY)

pictures: environment ## take the pictures of the labs that readers without scripts see, from the built book
	@$(VENV_PYTHON) tools/lab_pictures.py

serve: environment ## serve the book, and build it again on every change
	@$(VENV_PYTHON) tools/build_book.py --serve

bench: environment ## measure what the course claims about speed and size
	@for script in $$(grep -l __main__ benchmarks/*.py); do echo "$$script"; $(VENV_PYTHON) $$script || exit 1; done

colab: environment ## run each notebook alone, with the versions of Colab [ONLY=06]
	@$(VENV_PYTHON) tools/colab.py $(ONLY)

clients: environment ## open a chapter and an assignment in JupyterLab and Notebook 7
	@$(VENV_PYTHON) tools/clients.py

compat: environment ## test with the newest and the oldest PyTorch that pyproject.toml allows [ONLY=newest]
	@$(VENV_PYTHON) tools/compat.py $(ONLY)

grade: environment ## grade made-up students with nbgrader
	@$(VENV_PYTHON) tools/grade.py

repository: environment ## store the course's address on GitHub [URL=https://github.com/you/your-fork] [BRANCH=main]
	@$(VENV_PYTHON) tools/repository.py $(URL) $(if $(BRANCH),--branch $(BRANCH))

address: environment ## warn when the stored address is not that of this repository
	@$(VENV_PYTHON) tools/repository.py --warn

site: environment ## build the book for publishing; fails without an address
	@$(VENV_PYTHON) tools/repository.py --demand
	@$(MAKE) --no-print-directory book

lock: environment ## pin every version again in requirements.txt
	@tools/lock.sh
