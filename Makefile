# Needs Go, git, make and bash; for the race detector of the test targets also cgo with a C compiler.
# All other tools are built into bin/ from the modules below hack/tools, by hack/buildtools.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# What the binary says about itself. A checkout without tags or without git is fine.
# The date is that of the commit, so that building a commit twice gives the same binary.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
DATE    ?= $(shell git log -1 --format=%cI 2>/dev/null || echo unknown)
EPOCH   ?= $(shell git log -1 --format=%ct 2>/dev/null)

# -buildvcs=false: the version above says it, and a checkout owned by somebody else could not be built.
VERSION_FLAGS = -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)
BUILD_FLAGS   = -buildvcs=false -ldflags '$(VERSION_FLAGS)'
# The tag with which kubectl is built too: kustomize, which kubectl's libraries import, loads no Go plugins. They would make the linker keep
# all functions, and the program half as large again.
PLUGIN_FLAGS  = $(BUILD_FLAGS) -tags kustomize_disable_go_plugin_support

# All but the end-to-end specs, which ginkgo runs, the tests with hundreds of targets and of an upgrade, and the site's, which make docs runs.
# The first use makes the list.
UNIT_PACKAGES = $(eval UNIT_PACKAGES := $(shell go list ./... | grep -v -e /synchub/hack/site -e /synchub/test/e2e -e /synchub/test/scale -e /synchub/test/upgrade -e /synchub/test/compatibility -e /synchub/test/shards))$(UNIT_PACKAGES)

# Packages with nothing but thorough tests.
THOROUGH_PACKAGES := test/chart test/escapes test/ordinary test/restore test/sharded
QUICK_PACKAGES = $(filter-out $(addprefix %/synchub/,$(THOROUGH_PACKAGES)),$(UNIT_PACKAGES))

# The thorough tests are divided into PARTS that take about the same time: end-to-end specs by their labels, tests beside the
# code by their packages (a regular expression). Without PART, a commit has its own by its hash, so that CI runs all in the end.
PARTS := escapes faults placement requests tunnels others
PART  := $(or $(PART),$(word $(shell echo $$((0x0$$(git rev-parse --short=7 HEAD 2>/dev/null) % $(words $(PARTS)) + 1))),$(PARTS)))
$(if $(filter test-part,$(MAKECMDGOALS)),$(if $(filter $(PART),$(PARTS)),,$(error PART is "$(PART)", and must be one of: $(PARTS))))
specs_in_escapes      := escapes
specs_in_faults       := faults
specs_in_placement    := placement
specs_in_requests     := requests
# In the part tunnels, specs that are in other parts too run with clusters that dial the hub, except those about kubeconfigs.
all_specs_in_tunnels  := (!thorough || placement) && !direct
connection_in_tunnels := Tunnel
specs_in_others       := !(escapes || faults || placement || requests)
packages_in_escapes   := /synchub/(provider|test/escapes)
packages_in_faults    := /synchub/(controllers|test/restore)
packages_in_placement := /synchub/(cmd|test/ordinary)
packages_in_requests  := /synchub/test/sharded
packages_in_tunnels   := /synchub/test/(fixtures|framework)
packages_in_others    := /synchub/(apis|hack|test/(bench|chart|clireference|tier))
PART_PACKAGES          = $(shell printf '%s\n' $(UNIT_PACKAGES) | grep -E '$(packages_in_$(PART))')

UNIT_TIMEOUT ?= 30m
E2E_TIMEOUT  ?= 45m
# End-to-end specs wait most of the time, so several processes run them side by side, also on few cores, in any order but
# those that take long first.
E2E_PROCS    ?= 4
# Packages wait for their servers to start, so more of them run at a time than there are processors. A thorough one may take 4 GB.
UNIT_PROCS   ?= $(if $(quick),6,4)
FUZZTIME     ?= 10s
# The directories with parsers of what targets and tenants write. Their fuzz tests share PARSERS_SECONDS evenly.
PARSERS      := apis provider controllers/mailbox controllers/syncmanager/namelock controllers/plan controllers/placement
PARSERS_SECONDS ?= 60
# The version from which test-upgrade upgrades: the last release, or before the first one a commit.
UPGRADE_FROM ?= 0b33704ca2e440ff893227cdc2bd02b4d94e7970
# How many targets test-scale has, and of how many resources objects are synced.
TARGETS      ?= 300
RESOURCES    ?= 1
REPLICAS     ?= 1
SHARDED      ?= false
SCALE_TIMEOUT ?= 2h

# TOOLS says where the programs of other projects come from: source, download, or auto, which downloads them where that is possible.
TOOLS      ?= source
buildtools = go run ./hack/buildtools -from $(TOOLS)

# Fails with one sentence, before anything is built, where Go is missing or too old.
.PHONY: check-go
check-go:
	@go list -m >/dev/null 2>&1 || { echo "This needs Go $(shell sed -n 's/^go //p' go.mod) or newer on the PATH; there is $$(go version 2>/dev/null || echo none). See https://go.dev/dl" >&2; exit 1; }

##@ Try it

.PHONY: demo
demo: TOOLS = auto
# The compiler takes a fifth less time without debugging information. buildtools leaves it out too, so that programs share packages.
demo: COMPILER_FLAGS = -gcflags=all=-dwarf=false
demo: build ## Run kcp, two clusters and the hub on this machine; ONCE=1 ends by itself with status 0 or 1, TOOLS=source downloads no programs
	@$(buildtools) -for demo
	@echo "building the demo …"
	@go build -buildvcs=false $(COMPILER_FLAGS) -o bin/synchub-demo ./hack/demo
	@exec bin/synchub-demo $(if $(ONCE),-once) $(if $(RECORD),-record $(RECORD)) $(if $(PICTURES),-pictures $(PICTURES))

.PHONY: recording
recording: ## Run the demo, and draw what it shows as the animated picture of the README
	$(MAKE) demo RECORD=docs/images/demo.svg

.PHONY: dashboard-pictures
dashboard-pictures: ## Run the demo, break a cluster and a rollout, and draw what the dashboards show: about 15 minutes the first time
	$(buildtools) -for pictures
	$(MAKE) demo ONCE=1 PICTURES=docs/images

##@ Build

.PHONY: build
build: check-go ## Build the hub, the tunnel of clusters and the kubectl plugin, with its completion, into bin/
	@echo "building the hub: bin/synchub (the first time takes some minutes) …"
	@go build $(BUILD_FLAGS) $(COMPILER_FLAGS) -o bin/synchub ./cmd/synchub
	@echo "building the tunnel: bin/synchub-tunnel …"
	@go build $(BUILD_FLAGS) $(COMPILER_FLAGS) -o bin/synchub-tunnel ./cmd/synchub-tunnel
	@echo "building the kubectl plugin: bin/kubectl-synchub …"
	@go build $(PLUGIN_FLAGS) $(COMPILER_FLAGS) -o bin/kubectl-synchub ./cmd/kubectl-synchub
	@cp cmd/kubectl-synchub/kubectl_complete-synchub bin/

# The programs that have an image each.
IMAGES    := synchub synchub-tunnel
IMAGE_DIR ?= dist/image
TAG       ?= $(VERSION:v%=%)

# ko and goreleaser set what `make build` sets. Times are those of the commit, so that the same commit makes the same bytes.
release_env = VERSION='$(VERSION)' COMMIT='$(COMMIT)' DATE='$(DATE)' SOURCE_DATE_EPOCH='$(EPOCH)' TZ=UTC
image_label = --image-label=org.opencontainers.image.$(1) --image-annotation=org.opencontainers.image.$(1)
image_labels = $(call image_label,version='$(VERSION)') $(call image_label,revision='$(COMMIT)') $(call image_label,created='$(DATE)') \
	$(call image_label,description='Keeps many Kubernetes clusters in sync with kcp') $(call image_label,licenses=Apache-2.0) \
	$(call image_label,source=https://github.com/synchub-dev/synchub)

.PHONY: image
image: ## Build the container images and their SBOMs into dist/image, with the same bytes for the same commit; PLATFORMS=linux/amd64 builds one platform, PUSH=REGISTRY/PROJECT pushes, TAG is the version without v
	go run ./hack/buildtools ko
	rm -rf '$(IMAGE_DIR)' && mkdir -p '$(IMAGE_DIR)/.ko'
	cp -R hack/image/base '$(IMAGE_DIR)/.ko/img'
	for image in $(IMAGES); do \
		KOCACHE='$(abspath $(IMAGE_DIR))/.ko' KO_DOCKER_REPO='$(or $(PUSH),synchub-dev)' $(release_env) bin/ko build ./cmd/$$image \
			--base-import-paths --tags='$(TAG)' $(call image_label,title=$$image) $(image_labels) $(if $(PLATFORMS),--platform='$(PLATFORMS)') \
			--oci-layout-path='$(IMAGE_DIR)'/$$image --sbom-dir='$(IMAGE_DIR)' $(if $(PUSH),,--push=false) | tee '$(IMAGE_DIR)'/$$image.ref; \
		tar -C '$(IMAGE_DIR)'/$$image -cf '$(IMAGE_DIR)'/$$image.tar .; \
	done
	rm -rf '$(IMAGE_DIR)/.ko'

# goreleaser finds syft in bin/. Its directory is dist/release: `make image` writes beside it.
goreleaser = $(release_env) PATH='$(CURDIR)/bin':"$$PATH" goreleaser

.PHONY: release
release: release-notes ## Build the archives, checksums, SBOMs, the manifest for krew and the packaged charts of a release into dist/; PUBLISH=1 publishes those of a tag
	go run ./hack/release/checklist -version='$(VERSION)' $(if $(PUBLISH),-publish)
	go run ./hack/buildtools -for release
	$(if $(PUBLISH),GORELEASER_CURRENT_TAG='$(VERSION)') $(goreleaser) release --clean --release-notes=dist/release-notes.md $(if $(PUBLISH),,--snapshot --skip=sign --skip=publish)

# The section of the changelog for the version, or for what is not released yet.
release_section = $(if $(PUBLISH),$(TAG),Unreleased)

.PHONY: release-notes
release-notes: ## Write the section of the changelog for a release into dist/release-notes.md
	@mkdir -p dist
	@awk -v section='[$(release_section)]' '/^## / { found = $$2 == section; next } found' CHANGELOG.md >dist/release-notes.md
	@grep -q . dist/release-notes.md || { \
		echo "CHANGELOG.md has no section [$(release_section)], or nothing in it: rename [Unreleased] to it, with the date, and commit that before the tag" >&2; exit 1; }

.PHONY: tools
tools: check-go ## Build all tools that are missing or whose pin changed into bin/; TOOLS=download
	$(buildtools) -for all

# Writes the reference of values from the comments in values.yaml that begin with "# --".
helm_docs = bin/helm-docs --chart-search-root=charts --sort-values-order=file --log-level=warning --template-files=./_values.gotmpl

.PHONY: generate
generate: plots capacity diagrams ## Generate deep copies, CRDs, APIResourceSchemas and their reference from the types in apis/, charts, diagrams, and the reference of commands and values
	go run ./hack/buildtools controller-gen crd-ref-docs helm-docs
	go run ./hack/generate
	cp apis/schemas/crds/synchub.dev_publishedresources.yaml charts/synchub/files/crds/
	$(helm_docs) --template-files=README.md.gotmpl
	$(helm_docs) --chart-to-generate=charts/synchub --template-files=values.md.gotmpl --output-file=../../docs/reference/values.md
	go test ./cmd/synchub ./cmd/synchub-tunnel ./cmd/kubectl-synchub -run '^TestReference$$' -args -update

.PHONY: plots
plots: ## Draw the charts in docs/images from RESULTS.md; RUN=logs/bench.md draws those of a new run into logs/
	go run ./hack/plots $(if $(RUN),-from='$(RUN)' -out=logs)

.PHONY: capacity
capacity: ## Compute what fleets need from RESULTS.md: the tables of docs/scaling.md and their chart; FLAGS='-clusters=500 -objects=50' prints tables for another fleet
	go run ./hack/capacity $(or $(FLAGS),-page=docs/scaling.md -chart=docs/images/scaling.svg)

.PHONY: diagrams
diagrams: ## Draw the diagrams in docs/images from their text in D2
	go run ./hack/buildtools d2
	for diagram in docs/images/*.d2; do bin/d2 --layout=elk --elk-nodeNodeBetweenLayers=40 --theme=0 --dark-theme=200 --pad=8 --scale=0.8 "$$diagram" "$${diagram%.d2}.svg"; done

.PHONY: screenshots
screenshots: browser test-tools ## Take the pictures of docs/ui.md in docs/images from the page of kubectl synchub ui
	go test ./cmd/kubectl-synchub -count=1 -run '^TestUI$$' -args -update

.PHONY: docs
docs: ## Build the documentation site into dist/site, and check all links
	go run ./hack/buildtools hugo
	HUGO_PARAMS_VERSION='$(VERSION)' bin/hugo --config hack/site/hugo.yaml --destination dist/site --cleanDestinationDir --panicOnWarning --quiet
	go test -count=1 ./hack/site
	@echo "The site is in dist/site; open dist/site/index.html"

.PHONY: schemas
schemas: ## Take the schemas of Kubernetes' APIs that the hub has from the pinned kube-apiserver
	go run ./hack/buildtools kube-apiserver etcd
	go run ./hack/schemas

.PHONY: clean
clean: ## Remove what was built of the hub, logs and the demo's data, but not the tools, which take long to build
	rm -rf dist bin/synchub bin/synchub-tunnel bin/kubectl-synchub bin/synchub-race bin/synchub-tunnel-race bin/synchub-demo bin/synchub-bench logs .demo cover.out

.PHONY: clean-all
clean-all: clean ## Remove the tools too
	rm -rf bin

##@ Test

# golangci-lint vets the code, see lint. Tests that run in parallel wait for servers, so there are more of them than processors. With GOGC,
# linking and testing collect garbage less often: that saves a tenth of the processor time.
go_test    = GOGC=400 go test -race -vet=off $(1) -p $(UNIT_PROCS) -parallel 4 -timeout $(UNIT_TIMEOUT) $(2)
unit_tests = $(call go_test,,$(UNIT_PACKAGES))
e2e_tests  = CONNECTION=$(connection) go run github.com/onsi/ginkgo/v2/ginkgo -v -race -timeout=$(E2E_TIMEOUT) -procs=$(E2E_PROCS) -randomize-all $(if $(specs),-label-filter='$(specs)') -focus='$(FOCUS)' ./test/e2e

# One after the other: both together keep the processors so busy that waits time out, and take no less time.
define run_tests
	@mkdir -p logs; e2e=0; unit=0; \
	$(e2e_tests) 2>&1 | tee logs/e2e.log || e2e=$$?; \
	$(unit_tests) 2>&1 | tee logs/unit.log || unit=$$?; \
	if ((e2e)); then echo "Failed end to end:"; sed 's/\x1b\[[0-9;]*m//g' logs/e2e.log | grep -aE -A12 '^ *\[(FAILED|PANICKED|TIMEDOUT)\] |DATA RACE' | cut -c1-240 | tail -n 120 || tail -n 20 logs/e2e.log; { grep -a -A16 '^ *failed first: ' logs/e2e.log || true; } | cut -c1-400; fi; \
	if ((unit)); then echo "Failed beside the code:"; grep -aE '^(panic: |FAIL| *--- FAIL|WARNING: DATA RACE)|^ +[a-z_]+_test.go:' logs/unit.log | cut -c1-200 | tail -n 20 || tail -n 20 logs/unit.log; fi; \
	exit $$((e2e + unit > 0))
endef

# The tiers are in docs/design/0026-test-tiers.md.
.PHONY: test
test: quick = 1
test: specs = !thorough
test: unit_tests = $(call go_test,-short,$(QUICK_PACKAGES))
test: test-tools ## Run the quick tests on real servers, building what they need: for each commit, about 15 minutes on two processors
	$(run_tests)

.PHONY: test-part
test-part: quick = 1
test-part: specs = $(or $(all_specs_in_$(PART)),!thorough || $(specs_in_$(PART)))
test-part: connection = $(connection_in_$(PART))
test-part: unit_tests = { $(call go_test,-short,$(filter-out $(PART_PACKAGES),$(QUICK_PACKAGES))) && $(call go_test,,$(PART_PACKAGES)); }
test-part: test-tools ## Run the quick tests, and the thorough ones of PART: escapes, faults, placement, requests, tunnels or others; without PART the commit decides
	@echo "Of the thorough tests these run: $(PART)"
	$(run_tests)

.PHONY: test-all
test-all: test-tools ## Run all tests on real servers, also the thorough ones
	$(run_tests)

.PHONY: test-tools
test-tools: check-go
	$(buildtools) -for test
	go build -race $(BUILD_FLAGS) -o bin/synchub-race ./cmd/synchub
	go build -race $(BUILD_FLAGS) -o bin/synchub-tunnel-race ./cmd/synchub-tunnel
	go build $(PLUGIN_FLAGS) -o bin/kubectl-synchub ./cmd/kubectl-synchub

.PHONY: browser
browser: ## Install Debian's Chromium for the tests of kubectl synchub ui, unless there is a Chromium or Chrome
	@command -v chromium chromium-browser google-chrome chrome >/dev/null || { \
		sudo=$$( ((UID == 0)) || echo sudo); \
		$$sudo apt-get update && $$sudo apt-get install --yes --no-install-recommends chromium; }

.PHONY: test-unit
test-unit: test-tools ## Run all tests beside the code
	$(unit_tests)

.PHONY: test-image
test-image: ## Build the container images twice, compare, validate and push them, and run their programs
	go run ./hack/buildtools ko
	go -C hack/image test -count=1 -timeout $(UNIT_TIMEOUT) .

.PHONY: test-release
test-release: ## Check the configuration of releases, and build the plugin for this platform as a release does
	go run ./hack/buildtools goreleaser
	mkdir -p dist/test-release
	$(goreleaser) check
	$(goreleaser) build --clean --snapshot --single-target --id=kubectl-synchub --output=dist/test-release/kubectl-synchub
	dist/test-release/kubectl-synchub version --client | grep --fixed-strings '$(VERSION)'
	for os in darwin windows; do GOOS=$$os CGO_ENABLED=0 go build $(PLUGIN_FLAGS) -o dist/test-release/$$os/ ./cmd/kubectl-synchub || exit 1; done
	go test ./hack/release

.PHONY: test-escapes
test-escapes: ## Run what hostile servers and kubeconfigs try; it is part of test-unit too
	go test -race -vet=off -timeout $(UNIT_TIMEOUT) ./test/escapes

.PHONY: test-upgrade
test-upgrade: test-tools ## Upgrade from the version UPGRADE_FROM under load, and go back
	rm -rf bin/former && mkdir -p bin/former
	git archive $(UPGRADE_FROM) | tar -x -C bin/former
	cd bin/former && go build -buildvcs=false -o synchub ./cmd/synchub
	go test -race -vet=off -count=1 -timeout $(UNIT_TIMEOUT) -v ./test/upgrade -args -former='$(CURDIR)/bin/former'

.PHONY: test-compatibility
test-compatibility: test-tools ## Run a hub on the oldest and one on the newest Kubernetes, each with its own cluster as target
	go run ./hack/buildtools -for compatibility
	go test -race -vet=off -count=1 -timeout $(UNIT_TIMEOUT) -v ./test/compatibility

.PHONY: test-shards
test-shards: test-tools ## Run a hub with a kcp of two shards behind a front proxy
	go run ./hack/buildtools -for shards
	go test -race -vet=off -count=1 -timeout $(UNIT_TIMEOUT) -v ./test/shards

.PHONY: test-sharded
test-sharded: test-tools ## Run several active replicas, among which SyncTargets are divided, and kill some
	go test -race -vet=off -count=1 -timeout $(UNIT_TIMEOUT) -v ./test/sharded

.PHONY: test-e2e
test-e2e: test-tools ## Run all end-to-end tests; FOCUS=<regular expression> selects specs
	$(e2e_tests)

.PHONY: test-tunnel
test-tunnel: connection = Tunnel
test-tunnel: specs = !direct
test-tunnel: test-tools ## Run all end-to-end tests with clusters that dial the hub, except those about kubeconfigs
	$(e2e_tests)

.PHONY: test-scale
test-scale: ## Run REPLICAS (1) of the hub, which divide the targets with SHARDED=true, with TARGETS (300) targets and measure them: about half an hour; the report is logs/scale.md
	$(buildtools) -for test
	go build $(BUILD_FLAGS) -o bin/synchub ./cmd/synchub
	go test ./test/scale -count=1 -timeout $(SCALE_TIMEOUT) -v -args -targets=$(TARGETS) -resources=$(RESOURCES) -replicas=$(REPLICAS) -sharded=$(SHARDED) -commit=$(VERSION)

.PHONY: fuzz
fuzz: ## Run each fuzz test for FUZZTIME (10s)
	hack/fuzz.sh $(FUZZTIME) apis cmd controllers provider

.PHONY: fuzz-parsers
fuzz-parsers: ## Run the fuzz tests of all that reads what targets and tenants wrote, for PARSERS_SECONDS (60) in all; 3600 for an hour
	hack/fuzz.sh '$(PARSERS_SECONDS) in all' $(PARSERS)

.PHONY: bench
bench: ## Measure the hub against the same work done directly; SCENARIO=<regular expression>, QUICK=1 ends within a quarter of an hour, without the long run and the idle fleet
	$(buildtools) -for test
	go build $(BUILD_FLAGS) -o bin/synchub ./cmd/synchub
	go build $(BUILD_FLAGS) -o bin/synchub-tunnel ./cmd/synchub-tunnel
	go build -buildvcs=false -o bin/synchub-bench ./test/bench
	exec bin/synchub-bench -commit=$(VERSION) -scenario='$(SCENARIO)' $(if $(QUICK),-quick)

.PHONY: bench-steps
bench-steps: ## Run the benchmarks beside the code
	go test -run '^$$' -bench . -benchmem $(UNIT_PACKAGES)

##@ Check

.PHONY: lint
lint: ## Find mistakes and breaches of the house rules
	go run ./hack/buildtools golangci-lint
	bin/golangci-lint run ./...
	cd hack/image && ../../bin/golangci-lint run ./...

.PHONY: fmt
fmt: ## Format the code
	go run ./hack/buildtools golangci-lint
	bin/golangci-lint fmt ./...

.PHONY: headers
headers: ## Check that every Go file starts with the licence header
	go run ./hack/buildtools addlicense
	find apis cmd controllers hack provider test -name '*.go' -print0 | xargs -0 bin/addlicense -check -f hack/boilerplate.go.txt

.PHONY: words
words: ## Check names for words that hack/verifywords lists, and documentation and comments by the rules in hack/vale
	go run ./hack/verifywords
	go run ./hack/buildtools vale
	bin/vale --no-global --minAlertLevel=error README.md CONTRIBUTING.md docs
	git ls-files -z '*.go' | xargs -0 bin/vale --no-global --minAlertLevel=error

.PHONY: licences
licences: ## Check that all code that goes into the programs has a licence that permits redistribution
	go run ./hack/buildtools go-licenses
	for os in linux darwin windows; do \
		GOOS=$$os bin/go-licenses check ./cmd/... --allowed_licenses=Apache-2.0,BSD-2-Clause,BSD-3-Clause,ISC,MIT,MPL-2.0 --logtostderr=false --stderrthreshold=ERROR --log_file=/dev/null; \
	done

.PHONY: vulnerabilities
vulnerabilities: ## Check that the programs call nothing that is known to be vulnerable; says so where the database is out of reach
	go run ./hack/buildtools govulncheck
	@mkdir -p logs
	@bin/govulncheck ./cmd/... 2>logs/govulncheck || { status=$$?; \
		if ((status != 3)) && grep -q '^govulncheck: fetching vulnerabilities: ' logs/govulncheck; then \
			echo "NOT CHECKED for known vulnerabilities: the Go vulnerability database cannot be reached"; \
		else cat logs/govulncheck >&2; exit $$status; fi; }

.PHONY: verify
verify: ## Regenerate, tidy, format, lint, check words, licences and vulnerabilities; fail if that finds or changes anything
	@$(MAKE) --no-print-directory generate
	go mod tidy
	go -C hack/image mod tidy
	@$(MAKE) --no-print-directory fmt
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory headers
	@$(MAKE) --no-print-directory words
	@$(MAKE) --no-print-directory docs
	@$(MAKE) --no-print-directory licences
	@$(MAKE) --no-print-directory vulnerabilities
	@if [ -n "$$(git status --porcelain)" ]; then \
		git status --short; \
		git --no-pager diff; \
		echo "verify: the files above differ from what is committed: commit what 'make generate fmt' and 'go mod tidy' made of them"; \
		exit 1; \
	fi

##@ Help

.PHONY: help
help: ## Show this help
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z][a-z0-9-]*:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile
