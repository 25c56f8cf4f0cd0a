# Two commands do everything: `make demo` and `make test`. Each target carries one
# sentence after `##`, and `make help` prints them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

GO ?= go
KEEP ?=
PREFIX ?= /usr/local
DESTDIR ?=
TARGETS ?=
SEED ?=
ONLY ?=
QUICK ?=
MINUTES ?= $(if $(CI),2,5)
HOURS ?= 8
PORTABLE := windows darwin freebsd

.PHONY: help
help: ## List the targets, one sentence each.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' Makefile

.PHONY: deps
deps: ## Install PostgreSQL 15, zstd, gzip, age, iproute2, iptables and chromium when they are missing, build the S3 server of the tests, or say exactly what to install.
	@.ci/deps

.PHONY: build
build: ## Compile fencepostd, fencepost and the drivers of demo and bench into bin/, with symbols for debuggers.
	@mkdir -p bin
	$(GO) build -ldflags "-X main.version=$$(.ci/version)" -o bin/ ./cmd/...

.PHONY: packed
packed: ## Compile fencepostd and fencepost as they are installed and packed, without symbols and paths of this machine, into bin/packed/.
	@mkdir -p bin/packed
	$(GO) build -trimpath -ldflags "-s -w -X main.version=$$(.ci/version)" -o bin/packed/ ./cmd/fencepost ./cmd/fencepostd

.PHONY: install
install: packed ## Install programs, unit, manual pages and completions (PREFIX=/usr/local, DESTDIR= for another root); it starts nothing.
	@PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) .ci/install bin/packed

.PHONY: deb
deb: packed ## Make the Debian package of this machine's architecture, in bin/.
	@.ci/deb bin/packed bin

.PHONY: release
release: ## Build for linux, windows and darwin (TARGETS="linux/amd64 ..." for others), with checksums, into bin/release/.
	@.ci/release bin/release $(TARGETS)

.PHONY: demo
demo: deps build ## Kill a node in the middle of a backup and watch the backup complete (KEEP=1 leaves it up until Ctrl-C).
	@bin/fencepost-demo $(if $(KEEP),-keep)

.PHONY: test
test: deps lint ## Check the style, then run all tests.
	@$(GO) test -count=1 -timeout 20m ./...

.PHONY: test-long
test-long: deps lint ## Build for the other systems, then run all tests with the long ones, which take hours.
	@for os in $(PORTABLE); do echo "build for $$os"; GOOS=$$os CGO_ENABLED=0 $(GO) build ./...; done
	@FENCEPOST_LONG=1 $(GO) test -count=1 -timeout 4h ./...

.PHONY: chaos
chaos: deps ## Let five nodes live through faults from a seed (SEED=, MINUTES=5, or 2 where CI is set), judge what they did, and write a page into bin/chaos/.
	@FENCEPOST_SEED=$(SEED) FENCEPOST_MINUTES=$(MINUTES) FENCEPOST_REPORT=$(CURDIR)/bin/chaos \
		$(GO) test -v -count=1 -timeout 24h -run 'TestChaos$$' ./cmd/internal/chaos

.PHONY: soak
soak: deps ## The same for hours (HOURS=8), one seed after the other.
	@FENCEPOST_SEED=$(SEED) FENCEPOST_MINUTES=$(MINUTES) FENCEPOST_HOURS=$(HOURS) FENCEPOST_REPORT=$(CURDIR)/bin/chaos \
		$(GO) test -v -count=1 -timeout 240h -run 'TestChaos$$' ./cmd/internal/chaos

.PHONY: race
race: deps ## Run all tests under the race detector.
	@$(GO) test -race -count=1 -timeout 40m ./...

.PHONY: lint
lint: ## Check formatting, go vet and staticcheck.
	@unformatted=$$(gofmt -l cmd gms signals recovery pipeline configs 2>/dev/null || true); \
	if [[ -n $$unformatted ]]; then echo "run make fmt, not formatted:"; echo "$$unformatted"; exit 1; fi
	@$(GO) vet ./...
	@$(GO) tool staticcheck ./...

.PHONY: fmt
fmt: ## Format all Go files.
	@$(GO) fmt ./...

.PHONY: bench
bench: deps build ## Measure what is promised about speed, print what was kept and write it into bin/bench/ (ONLY=locks, QUICK=1 only tries); on a machine that does nothing else.
	@bin/fencepost-bench $(if $(QUICK),-quick) $(if $(ONLY),-only $(ONLY))

.PHONY: bench-peers
bench-peers: build ## The same with peers beside it: installs ZooKeeper when it is missing, builds etcd, and takes the public tools.
	@.ci/deps peers
	@bin/fencepost-bench -peers $(if $(QUICK),-quick) $(if $(ONLY),-only $(ONLY))

.PHONY: profile
profile: deps build ## Measure (ONLY=locks, QUICK=1) with profiles of processor time and allocations, for go tool pprof, in bin/profile/.
	@bin/fencepost-bench -profile bin/profile $(if $(QUICK),-quick) $(if $(ONLY),-only $(ONLY))

.PHONY: generate
generate: ## Write the protobuf code of gms/internal/wire anew, with the generators pinned in go.mod.
	@command -v protoc >/dev/null || { echo "protoc is missing: install the package protobuf-compiler"; exit 1; }
	@mkdir -p bin/tools
	@$(GO) build -o bin/tools/ google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc
	@cd gms/internal/wire && PATH="$(CURDIR)/bin/tools:$$PATH" protoc -I . \
		--go_out=. --go_opt=paths=source_relative \
		--go-grpc_out=. --go-grpc_opt=paths=source_relative *.proto

.PHONY: api
api: ## List anew what the library exports, after a change that is meant.
	@$(GO) test -count=1 -run TestExportedAPI ./cmd/internal/arch -update

.PHONY: clean
clean: ## Remove what the other targets built.
	@rm -rf bin
