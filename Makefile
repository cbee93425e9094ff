# Each target sets up what it needs; `make help` lists them.

PORT ?= 8000
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

# A run starts many processes: what one has compiled, the others only read.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

.PHONY: help
help: ## Say what there is
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

# One simple command: make then runs it without a shell in between, and a signal to
# what make started reaches the demo itself.
.PHONY: run
run: .venv/run.stamp ## Start the service with a made-up hospital (PORT=8000, GROUP=a or b)
	@$(BIN)/encounters demo --port $(PORT) $(if $(GROUP),--group $(GROUP))

.PHONY: test
test: .venv/test.stamp ## Run the tests that need no process but their own (ARGS=… for pytest)
	@$(PYTEST) $(ARGS)

.PHONY: test-system
test-system: .venv/test.stamp ## Run those that start real processes and servers (ARGS=… for pytest)
	@$(PYTEST) -m system $(ARGS)

.PHONY: test-extended
test-extended: .venv/test.stamp ## Run those that take long: full products, images (ARGS=… for pytest)
	@$(PYTEST) -m extended $(ARGS)

.PHONY: prove
prove: .venv/test.stamp ## Run both in orders of chance on a busy machine (ARGS="10 3": times of each)
	@.ci/prove $(ARGS)

.PHONY: sbom
sbom: .venv/test.stamp ## Build wheel and sdist of the last commit in build/dist, and the wheel's bill of materials
	@rm -rf build/dist
	@.ci/build build/dist
	@$(BIN)/python .ci/sbom.py build/dist/*.whl requirements-tracing.lock build/dist/encounters-wheel.cdx.json

.PHONY: release
release: .venv/test.stamp ## Build in dist/ all that an operator downloads, of the last commit (BASE=…)
	@BASE="$(BASE)" .ci/release

.PHONY: image
image: sbom ## Build the image and run it where podman and debootstrap are (BASE=…)
	@BASE="$(BASE)" $(BIN)/python -m pytest -m extended tests/deploy $(ARGS)

.PHONY: fuzz
fuzz: .venv/test.stamp ## Attack the service for longer than the tests do (EXAMPLES=1000)
	@FUZZ_EXAMPLES=$(or $(EXAMPLES),1000) $(BIN)/python -m pytest --numprocesses 2 --dist loadfile -m "" \
		tests/attacks/test_made_up.py \
		$$(grep --recursive --include='*.py' --files-with-matches '^@given' tests/adapters tests/app)

.PHONY: tables
tables: .venv/test.stamp ## Write tables of the docs and recorded messages anew: read the diff
	@$(BIN)/python -m tests.docs.update tables
	@$(BIN)/python -m tests.mapping.update

.PHONY: lint
lint: .venv/test.stamp ## Check style, types, the rules of the architecture and the links of the docs
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/zensical build --clean --strict

.PHONY: docs
docs: .venv/test.stamp ## Build the site of the documentation in build/site, and check its links
	@$(BIN)/zensical build --clean --strict

.PHONY: trace
trace: .venv/test.stamp ## Show the path of a request through the code, and count files and jumps
	@$(BIN)/python -m bench.trace

.PHONY: mutate
mutate: .venv/test.stamp ## Break the code of decisions and adapters in turn: a test has to fail each time
	@$(BIN)/python -m tests.mutate $(ARGS)

.PHONY: bench
bench: .venv/test.stamp peers ## Compare with others, write bench/report.md (ARGS="--stays 100000 --rounds 3 --before REV")
	@$(BIN)/python -m bench $(ARGS)

.PHONY: bench-scale
bench-scale: .venv/test.stamp ## Fill hospitals of 1 and 10 million stays, write bench/scale.md (ARGS="--millions 1 10 50")
	@$(BIN)/python -m bench.scale $(ARGS)

.PHONY: peers
peers: bench/peers/node/node_modules bench/peers/hapi/target ## Build those whom the bench compares with: npm and Maven

bench/peers/node/node_modules: bench/peers/node/package-lock.json
	@npm ci --prefix bench/peers/node --no-audit --no-fund
	@touch $@

bench/peers/hapi/target: bench/peers/hapi/pom.xml $(wildcard bench/peers/hapi/src/main/java/bench/*.java)
	@mvn --quiet --batch-mode --file bench/peers/hapi/pom.xml package
	@touch $@

.PHONY: format
format: .venv/test.stamp ## Write the code in the one style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

.PHONY: manifests
manifests: .venv/run.stamp ## Render deploy/kubernetes from deploy/chart, with the version of setup.cfg
	@.ci/helm
	@$(BIN)/python deploy/kubernetes/generate.py

.PHONY: vendor
vendor: ## Bundle scripts and styles of others for the pages, from tools/vendor, where npm is
	@npm ci --prefix tools/vendor --no-audit --no-fund
	@npm run build --prefix tools/vendor

.PHONY: texts
texts: .venv/test.stamp ## Write new texts of the explorer into explorer/locale: translate them there
	@$(BIN)/pybabel -q extract -F tests/explorer/babel.cfg -k mark --no-location --sort-output \
		--width 100 -o build/explorer.pot explorer
	@$(BIN)/pybabel -q update -N --ignore-obsolete --width 100 -D explorer \
		-i build/explorer.pot -d explorer/locale

.PHONY: pictures
pictures: .venv/test.stamp ## Take the pictures of the docs from a running demo, where Chromium is: look at each
	@$(BIN)/python -m pytest -m "" tests/browser/pictures.py

.PHONY: lock
lock: .venv/run.stamp ## Write the lock files from setup.cfg (ARGS=--upgrade)
	@.ci/lock $(ARGS)

.PHONY: audit
audit: .venv/test.stamp ## Check licences and known weaknesses of all that is locked (ARGS="-s osv": ask OSV)
	@.ci/audit $(ARGS)

.PHONY: clean
clean: ## Remove the environment, the demo and all that tools leave
	@rm -rf .venv .demo build dist .cache .*_cache .hypothesis *.egg-info

.venv/run.stamp: requirements.lock
	@PYTHON="$(PYTHON)" .ci/environment requirements.lock
	@touch $@

.venv/test.stamp: requirements-test.lock
	@PYTHON="$(PYTHON)" .ci/environment requirements-test.lock
	@touch $@ .venv/run.stamp
