# SPDX-License-Identifier: Apache-2.0
# The front door. Every recipe is a line or two; the work is in scripts/.
# PREFIX and DESTDIR steer install and uninstall; CI=true turns warnings into errors.

export PREFIX ?= /usr/local
export DESTDIR ?=
MAKEFLAGS += --no-print-directory
.PHONY: help build run serve test test-full bench proof replay github-live install uninstall deb fmt bare clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

build: ## build the program: build/leasehold
	@scripts/packages.sh build
	@scripts/build.sh release

run: build ## build, then show what it does
	@scripts/packages.sh show || true # the tour says what it cannot show
	@scripts/show.sh build/leasehold

serve: build ## build, then run the daemon on a temporary store, until Ctrl-C
	@scripts/packages.sh show || true # for what it says to type
	@scripts/serve.sh build/leasehold

test: ## what a newcomer runs: gates and tests; ends with "N passed, N failed"
	@scripts/packages.sh test
	@scripts/test.sh

test-full: ## the rest of the suites, each at its sample size; CI runs it after test
	@scripts/packages.sh test
	@scripts/packages.sh k8s
	@scripts/test.sh --full

bench: ## measure the optimised build
	@scripts/packages.sh bench
	@scripts/build.sh bench
	@scripts/bench.sh

proof: ## both, with every round instead of a sample (hours)
	@scripts/packages.sh test
	@scripts/packages.sh k8s
	@scripts/test.sh --proof

replay: ## run one simulated day again: make replay SEED=n [MUTANT=name]
	@scripts/replay.sh "$(SEED)" "$(MUTANT)"

github-live: build ## try github.com itself: make github-live REPO=owner/name, GITHUB_TOKEN set
	@REPO="$(REPO)" scripts/github-live.sh build/leasehold

install: build ## install below $DESTDIR$PREFIX (/usr/local)
	@scripts/install.sh

uninstall: ## remove what install put there
	@scripts/install.sh --remove

deb: ## build the Debian packages: build/*.deb
	@scripts/packages.sh deb
	@scripts/deb.sh

fmt: ## format every C file
	@scripts/packages.sh test
	@scripts/sources.sh . | xargs clang-format-14 -i

bare: ## prove that a bare Debian with git and make needs nothing more
	@scripts/bare.sh

clean: ## remove build/
	@rm -rf build
