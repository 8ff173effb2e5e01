# Every target sets up what it needs: a virtual environment in .venv, from pinned versions.

PYTHON ?= python3
BIN := .venv/bin
PEER := .venv-tl
PEER_4 := .venv-tl4
# In the environment, so that it also reaches the environment in which pip builds the package.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt

.PHONY: study test test-slow lint reproduce bench shipped-models notebooks screenshots clean help

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

study: .venv/installed  ## Train a 5-digit adder and see what it learned
	$(BIN)/carryscope study

test: .venv/installed-dev  ## Run the tests
	$(BIN)/pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

test-slow: .venv/installed-dev $(PEER)/installed $(PEER_4)/installed  ## Run all tests, those against TransformerLens too
	$(BIN)/pytest -m "slow or not slow"

lint: .venv/installed-dev  ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

reproduce: .venv/installed  ## Reproduce the paper: its models, its claims; takes hours
	$(BIN)/python -m paper

bench: .venv/installed $(PEER)/installed  ## Measure speed, side by side with TransformerLens
	$(BIN)/python -m benchmarks --peer $(PEER)/bin/python --out docs/speed.md

shipped-models: .venv/installed  ## Make the models that come with the package again
	for model in fast-5 exact-5 exact-7; do \
	  run=src/carryscope/shipped/$$model; rm -rf $$run; \
	  $(BIN)/carryscope train --preset $$model --out $$run || exit 1; \
	  for stage in dissect risk faithful; do $(BIN)/carryscope $$stage $$run || exit 1; done; \
	  rm -f $$run/.lock; done
	$(BIN)/carryscope certify src/carryscope/shipped/fast-5 --until 1
	for model in exact-5 exact-7; do \
	  $(BIN)/carryscope certify src/carryscope/shipped/$$model --until 1 --about float32 || exit 1; \
	  $(BIN)/carryscope certify src/carryscope/shipped/$$model --check || exit 1; done
	$(BIN)/carryscope figures src/carryscope/shipped/fast-5 --only staircase --out docs

notebooks: .venv/installed-dev  ## Run the notebooks and keep their output
	$(BIN)/python -c "import nbclient, nbformat, pathlib; [(nb := nbformat.read(p, 4), \
	nbclient.NotebookClient(nb, record_timing=False).execute(), nbformat.write(nb, p)) \
	for p in pathlib.Path('notebooks').glob('*.ipynb')]"

screenshots: .venv/installed-dev  ## Take the README's picture of the explorer, in Chromium
	PYTHONPATH=tests $(BIN)/python docs/screenshots.py

clean:  ## Remove environments and caches; runs stay
	rm -rf .venv $(PEER) $(PEER_4) .pytest_cache .mypy_cache .ruff_cache build dist
	find src tests -name __pycache__ -prune -exec rm -rf {} +

# torch comes first and by its exact version, so that nothing pulls in another build of it.
.venv/installed: pyproject.toml constraints.txt
	@echo "Installing into .venv (about 1 GB, a minute or two) ..."
	@$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet torch==2.13.0
	$(BIN)/pip install --quiet --editable ".[fast]"
	touch $@

.venv/installed-dev: .venv/installed
	$(BIN)/pip install --quiet --editable ".[fast,dev]"
	touch $@

$(PEER)/installed: export PIP_CONSTRAINT := $(CURDIR)/constraints-transformer-lens.txt
$(PEER)/installed: constraints-transformer-lens.txt
	$(PYTHON) -m venv $(PEER)
	$(PEER)/bin/pip install --quiet torch==2.13.0
	$(PEER)/bin/pip install --quiet transformer-lens==2.18.0
	touch $@

$(PEER_4)/installed: export PIP_CONSTRAINT :=
$(PEER_4)/installed:
	$(PYTHON) -m venv $(PEER_4)
	$(PEER_4)/bin/pip install --quiet torch==2.13.0
	$(PEER_4)/bin/pip install --quiet transformer-lens==4.3.0
	touch $@
