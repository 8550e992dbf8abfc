# The two commands a reader needs are `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test lint pycuda clean

demo: $(STAMP)
	$(BIN)/plait run examples/conv_bn_relu.py --check

test: demo
	$(BIN)/pytest -n auto tests

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

# PyCUDA without a GPU, and the simulated driver that `pytest -m pycuda` runs it on.
pycuda: $(STAMP)
	$(BIN)/python tests/cuda_driver/build.py

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "plait needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV)
