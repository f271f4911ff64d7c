# The variables of the development cluster; `make help` says what they do.
DEV_DIR ?= .dev/cluster
SERVER ?= 1
SERVER_ARGS ?=
STORAGE ?= bbolt
REPLICAS ?= 1
AUDIT ?= 1
ADMISSION ?= 1
PODS ?= 0
USER_NAME ?=
USER_GROUPS ?=
SIGNAL ?= TERM

# The race detector needs a C compiler; without one the tests run without it.
RACE := $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)
# What a package of tests may take, the first compilation not counted.
TEST_TIMEOUT ?= 45m
# make verify vets all packages, so that go test does not have to, which would take minutes.
TEST = go test -vet=off -timeout $(TEST_TIMEOUT)
# The container image: for which architectures, into which folder, and where it is pushed to (REPOSITORY:TAG; nowhere if empty).
IMAGE_ARCHES ?= amd64,arm64
IMAGE_OUTPUT ?= bin/image
IMAGE_PUSH ?=
# How many packages of tests have control planes at the same time: this many with the race detector, and as many without. They wait
# more than they compute.
CLUSTERS ?= 2
# How many packages of tests without a control plane run at the same time. Many of them wait for their controllers more than they
# compute.
PACKAGES ?= 4
# What make test-faults does: how long each loop of faults in the store runs and a remote is down, how often the server is killed, how
# many changes are made in turns, and how many changes a storm has.
FAULTS ?= 1m
OUTAGE ?= 30s
KILLS ?= 20
CHANGES ?= 2000
STORM ?= 10000
# How many objects the benchmarks mirror at most.
OBJECTS ?= 20000

# Other packages than the store's with tests that kill a process at a step.
FAILPOINT_TESTS = $(filter-out ./pkg/store/bolt/,$(sort $(dir $(shell grep -rl '^//go:build failpoints' --include='*_test.go' ./cmd ./pkg))))

.DEFAULT_GOAL := help

##@ Build

.PHONY: build
build: ## Build the programs into bin/.
	@mkdir -p bin
	go build -o bin/ ./cmd/...

.PHONY: image
image: ## Make the container image for IMAGE_ARCHES into IMAGE_OUTPUT, with its bills of materials, and push it to IMAGE_PUSH=REPOSITORY:TAG.
	go run -C hack/image . -source '$(CURDIR)' -output '$(abspath $(IMAGE_OUTPUT))' -arches '$(IMAGE_ARCHES)' -push '$(IMAGE_PUSH)'

.PHONY: sbom
sbom: ## Write only the bills of materials of the image, in CycloneDX's JSON.
	go run -C hack/image . -source '$(CURDIR)' -output '$(abspath $(IMAGE_OUTPUT))' -arches '$(IMAGE_ARCHES)' -sbom

.PHONY: generate
generate: ## Regenerate the code that comes from the types of the API.
	hack/update-codegen.sh

.PHONY: manifests
manifests: ## Render the chart to artifacts/install.yaml and to what development clusters apply.
	hack/update-manifests.sh

.PHONY: control-plane
control-plane: bin/dev ## Build etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl (minutes, once), and print their folder.
	@bin/dev control-plane

# The go command knows whether it is up to date.
.PHONY: bin/dev
bin/dev:
	@mkdir -p bin
	@go build -o bin/dev ./hack/dev

.PHONY: clean
clean: ## Remove what was built; the control plane stays in the user's cache.
	rm -rf bin

##@ Check

.PHONY: verify
verify: ## Check generated code, formatting, headers, modules, vet, lint and a clean tree.
	hack/verify.sh

.PHONY: lint
lint: ## Run the linters that .golangci.yml names.
	hack/verify-lint.sh

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities that the programs reach; needs https://vuln.go.dev, or a mirror in GOVULNDB.
	hack/vulncheck.sh

# The unit tests compute and the others wait, so that both together take less time than one after the other.
.PHONY: test
test: control-plane ## Run all tests: unit, integration on a real control plane, end to end.
	@$(MAKE) --no-print-directory --jobs=2 --keep-going test-unit test-integration

# The packages whose tests take longest come first, so that none of them is left alone at the end.
LONGEST = ./pkg/store/bolt ./pkg/mirror ./pkg/catalog ./pkg/environment/... ./pkg/mirror/gitrepo ./pkg/serving/certificates

.PHONY: test-unit
test-unit: ## Run the tests of the packages, those that kill a process at a step among them.
	$(TEST) $(RACE) -tags failpoints -p '$(PACKAGES)' $(LONGEST) ./cmd/... ./hack/... ./pkg/...
	$(TEST) -run 'TestHostile|TestServerCapabilities' ./pkg/mirror/gitrepo
	go test -C test/alerts -count=1 ./...
	go test -C hack/image -count=1 ./...

# Runs tests whose clusters note what rights the server has needed, and judges by that whether it has exactly enough. The folder has
# another name each time, so that no test that looks at the variable is taken for one that has been run.
judged = @folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && export SLIPSTREAM_RIGHTS="$$folder" && \
	$(1) && go run ./test/rights "$$folder"

# Packages that render, or have the programs do what a user reads, installs or sees in a cluster. They run without the race detector,
# which makes the server several times slower: test/e2e and test/integration run the same server with it, and the tests of pkg/ the same
# controllers.
WITHOUT_RACE = ./test/attribution ./test/catalogs ./test/chart ./test/container ./test/docs ./test/environments ./test/fidelity \
	./test/image ./test/install ./test/pipelines

.PHONY: test-integration
test-integration: control-plane ## Run the tests on real control planes, and see whether the server's roles are exactly enough for them.
	$(call judged,{ failed=0; \
	$(TEST) -p '$(CLUSTERS)' $(WITHOUT_RACE) & beside=$$!; \
	$(TEST) $(RACE) -p '$(CLUSTERS)' $$(go list ./test/... | grep -vxF "$$(go list $(WITHOUT_RACE))") || failed=1; \
	wait "$$beside" || failed=1; \
	[ "$$failed" = 0 ]; })

# Packages whose clusters need what the server's roles give, and the test that needs what the chart gives by itself.
RIGHTS_TESTS = ./test/e2e ./test/catalogs ./test/environments ./test/pipelines ./test/integration/sealing ./test/integration/serving

.PHONY: test-rights
test-rights: control-plane ## See whether the server's roles are exactly enough, with as few tests as show it.
	$(call judged,$(TEST) -p '$(CLUSTERS)' $(RIGHTS_TESTS) && go test -run TestManifests ./test/docs)

.PHONY: test-faults
test-faults: control-plane ## Kill the store and take its power away again and again, for FAULTS each way; OUTAGE, KILLS, CHANGES, STORM.
	$(TEST) $(RACE) -tags failpoints -run 'Killed|PowerLoss|CrashAtEveryStep|FaultAtEveryStep' ./pkg/store/bolt -faults '$(FAULTS)'
	$(TEST) $(RACE) -tags failpoints $(FAILPOINT_TESTS)
	$(TEST) $(RACE) -tags failpoints -run 'TestFaults/remote' ./pkg/mirror -outage '$(OUTAGE)'
	$(TEST) $(RACE) -run 'TestKilledInMidBurst' ./test/e2e -kills '$(KILLS)'
	$(TEST) $(RACE) -run '(BothSignals|Admission|LateAudit)/ConcurrentUpdates' ./test/attribution -changes '$(CHANGES)'
	$(TEST) $(RACE) -run 'TestStorm' ./test/catalogs -storm '$(STORM)'

.PHONY: bench
bench: control-plane ## Run the benchmarks (minutes) and print their figures beside the targets; OBJECTS of the largest population.
	go run ./test/bench -objects '$(OBJECTS)'

.PHONY: bench-check
bench-check: control-plane ## The same, and fail when a target is missed.
	go run ./test/bench -objects '$(OBJECTS)' -check

##@ Try

.PHONY: demo
demo: build control-plane ## Show the whole thing on a local cluster and leave it running.
	hack/demo.sh up

.PHONY: demo-down
demo-down: bin/dev ## End what the demo left running.
	hack/demo.sh down

##@ Develop: a cluster in a folder, DEV_DIR (default .dev/cluster)

.PHONY: dev-up
dev-up: bin/dev $(if $(filter-out 0,$(SERVER)),build) ## Start a cluster; SERVER=0 without the server, SERVER_ARGS its flags, STORAGE=bbolt|etcd3, REPLICAS=n (etcd3); AUDIT=0, ADMISSION=0 without the signals; PODS=1 has Pods run, by kwok. DEV_DIR/env describes it.
	@bin/dev up --dir '$(DEV_DIR)' --storage '$(STORAGE)' --replicas '$(REPLICAS)' --server=$(if $(filter-out 0,$(SERVER)),true,false) --audit=$(if $(filter-out 0,$(AUDIT)),true,false) --admission=$(if $(filter-out 0,$(ADMISSION)),true,false) --pods=$(if $(filter-out 0,$(PODS)),true,false) -- $(SERVER_ARGS)

.PHONY: dev-down
dev-down: bin/dev ## End the cluster's processes and remove what it wrote.
	@bin/dev down --dir '$(DEV_DIR)'

.PHONY: dev-user
dev-user: bin/dev ## Print the kubeconfig of an ordinary user, USER_NAME in USER_GROUPS=a,b.
	@bin/dev user --dir '$(DEV_DIR)' --name '$(USER_NAME)' --groups '$(USER_GROUPS)'

.PHONY: dev-stop-server
dev-stop-server: bin/dev ## Stop the server with SIGNAL=TERM|INT|QUIT|KILL and keep its data.
	@bin/dev stop-server --dir '$(DEV_DIR)' --signal '$(SIGNAL)'

.PHONY: dev-start-server
dev-start-server: bin/dev ## Start the server again on its data.
	@bin/dev start-server --dir '$(DEV_DIR)'

##@ Help

.PHONY: help
help: ## Print this text.
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
