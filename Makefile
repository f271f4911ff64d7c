# What a release takes from its caller is passed on in the environment, quoted for no shell and read by no make: make itself would expand
# these before it does anything else.
$(foreach name,VERSION RELEASE_OUTPUT RELEASE_PUSH RELEASE_KEY SITE_OUTPUT SITE_RELEASES,$(if $(findstring $$,$(value $(name))),$(error $(name) must not have a dollar sign)))

# The variables of development clusters; `make help` describes them.
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

# Tests are compiled as the image is, statically, and the programs that they start as the tests are. -trimpath makes the compiled packages
# the same in every clone, so that clones share go's build cache.
# With RACE=1, as in CI, the unit tests and those of test/integration run with the race detector, which takes about twice as long.
# It needs a C compiler.
RACE ?= 0
with_race = $(filter 1,$(RACE))
DETECTOR := -tags failpoints $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)
# The timeout of the tests of a package, without the first compilation.
TEST_TIMEOUT ?= 60m
# go test does not run vet, which would take minutes: make lint does. Compilers and tests collect garbage less often than by
# default, which saves a sixth of their CPU.
TEST_FLAGS = GOGC=$(or $(GOGC),400) GOFLAGS='-trimpath $(GOFLAGS)'
PLAIN_FLAGS = CGO_ENABLED=0 $(TEST_FLAGS)
GO_TEST = go test -vet=off -timeout $(TEST_TIMEOUT)
TEST = $(PLAIN_FLAGS) $(GO_TEST)
RACE_TEST = $(TEST_FLAGS) $(GO_TEST) $(DETECTOR)
# The container images: which, their architectures, the output folder, and where to push the server's (REPOSITORY:TAG; nothing is pushed if
# empty). That of the page is pushed to REPOSITORY-dashboard:TAG.
IMAGES ?= slipstream,slipstream-dashboard
IMAGE_ARCHES ?= amd64,arm64
IMAGE_OUTPUT ?= bin/image
IMAGE_PUSH ?=
# The output folder of the archives of the kubectl plugin, and their platforms.
PLUGIN_OUTPUT ?= bin/plugin
PLUGIN_PLATFORMS ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64
# The output folder of the site of the documentation.
export SITE_OUTPUT ?= bin/site
# The version of a release, its output folder, the repository to push its images to (nothing is pushed if empty), and the key that signs it,
# a file or the URI of one in a KMS (nothing is signed if empty).
export VERSION ?=
export RELEASE_OUTPUT ?= dist
export RELEASE_PUSH ?=
export RELEASE_KEY ?=
# How many packages with control planes are tested at the same time: twice as many and one more; with the race detector, this many of
# test/integration. Most of their tests wait more than they compute.
CLUSTERS ?= 2
# How many packages without a control plane are tested at the same time. Many of their tests wait for controllers and use little CPU.
PACKAGES ?= 4
# The parameters of make test-faults: the duration of each loop of store faults, the duration of a remote's outage, the number of kills
# of the server, the number of concurrent changes, and the number of changes in a storm.
FAULTS ?= 1m
OUTAGE ?= 30s
KILLS ?= 20
BURST ?= 1000
CHANGES ?= 2000
STORM ?= 10000
# The parameters of make soak: its duration in minutes, and the seed of its random faults and changes, 0 for a random one.
MINUTES ?= 30
SEED ?= 0
# The control planes of make test-versions, modules in hack: the oldest and the newest version of Kubernetes.
CONTROL_PLANES ?= controlplane-oldest controlplane
# The maximum number of objects that the benchmarks mirror.
OBJECTS ?= 20000

# The packages with tests that kill a process at a failpoint, without the store.
FAILPOINT_TESTS = $(filter-out ./pkg/store/bolt/,$(sort $(dir $(shell grep -rl '^//go:build failpoints' --include='*_test.go' ./cmd ./pkg))))

.DEFAULT_GOAL := help

##@ Build

.PHONY: build
build: ## Build the programs into bin/.
	@mkdir -p bin
	go build -o bin/ ./cmd/...

.PHONY: image
image: ## Build the container images (IMAGES) for IMAGE_ARCHES into IMAGE_OUTPUT, with their SBOMs, and push them to IMAGE_PUSH=REPOSITORY:TAG, and -dashboard:TAG.
	go run -C hack/image . -source '$(CURDIR)' -output '$(abspath $(IMAGE_OUTPUT))' -images '$(IMAGES)' -arches '$(IMAGE_ARCHES)' -push '$(IMAGE_PUSH)'

.PHONY: sbom
sbom: ## Write only the SBOMs of the images, as CycloneDX JSON.
	go run -C hack/image . -source '$(CURDIR)' -output '$(abspath $(IMAGE_OUTPUT))' -images '$(IMAGES)' -arches '$(IMAGE_ARCHES)' -sbom

.PHONY: plugin-release
plugin-release: ## Build the archives of the kubectl plugin for Linux, macOS and Windows into PLUGIN_OUTPUT, with checksums and the manifest for krew.
	go run ./hack/pluginrelease -output '$(PLUGIN_OUTPUT)' -platforms '$(PLUGIN_PLATFORMS)'

.PHONY: release
release: ## Build what is published of VERSION, the tag of the commit, into RELEASE_OUTPUT, sign it with RELEASE_KEY, and push images and chart to RELEASE_PUSH=REPOSITORY (without a key only with RELEASE_UNSIGNED=1).
	hack/release.sh "$$VERSION" "$$RELEASE_OUTPUT"
	hack/publish-release.sh "$$VERSION" "$$RELEASE_OUTPUT" "$$RELEASE_PUSH" "$$RELEASE_KEY"

.PHONY: release-publish
release-publish: ## Sign and push what make release has built into RELEASE_OUTPUT, without building it again.
	hack/publish-release.sh "$$VERSION" "$$RELEASE_OUTPUT" "$$RELEASE_PUSH" "$$RELEASE_KEY"

.PHONY: site
site: ## Build the site of the documentation into SITE_OUTPUT/VERSION; without VERSION, into SITE_OUTPUT/latest.
	hack/site.sh "$${VERSION:-latest}" "$$SITE_OUTPUT"

.PHONY: site-versions
site-versions: ## Build the sites of the releases SITE_RELEASES (all tags like v1.2.3, if it is not set), and of the work tree as latest, into SITE_OUTPUT.
	hack/site-versions.sh "$$SITE_OUTPUT"

.PHONY: generate
generate: ## Regenerate the code generated from the API types.
	hack/update-codegen.sh

.PHONY: page
page: ## Build the page of the plugin's command dashboard; needs Node.js.
	hack/update-page.sh

.PHONY: pictures
pictures: control-plane ## Take the pictures of README and docs again, in docs/images; needs Node.js, Chromium, and Debian's package webp.
	$(TEST) $(UNCACHED) -run TestPictures ./test/pictures -folder '$(CURDIR)/docs/images'

.PHONY: manifests
manifests: ## Render the chart to artifacts/install.yaml and to the manifest of development clusters.
	hack/update-manifests.sh

.PHONY: control-plane
control-plane: bin/dev ## Build etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl (minutes, once), and print their folder.
	@bin/dev control-plane

# Phony, because the go command determines whether it is up to date.
.PHONY: bin/dev
bin/dev:
	@mkdir -p bin
	@$(PLAIN_FLAGS) go build -o bin/dev ./hack/dev

.PHONY: clean
clean: ## Remove build output; the control plane is kept in the user's cache.
	rm -rf bin dist

##@ Check

.PHONY: verify
verify: ## Check generated code, formatting, headers, modules, lint, workflows and a clean tree.
	hack/verify.sh

.PHONY: lint
lint: ## Run the linters configured in .golangci.yml.
	hack/verify-lint.sh

.PHONY: vulncheck
vulncheck: ## Check for known vulnerabilities in code that the programs call; needs https://vuln.go.dev, or a mirror in GOVULNDB.
	hack/vulncheck.sh

.PHONY: test
test: test-unit test-integration ## Run the tests of the code: unit, integration on a real control plane, end to end.

# The packages with the longest tests start first, so that none of them runs alone at the end.
LONGEST = ./pkg/store/bolt ./pkg/mirror ./pkg/catalog ./pkg/environment ./pkg/environment/detect ./pkg/environment/syncer \
	./pkg/mirror/gitrepo ./pkg/serving/certificates
# The packages that start no goroutine, in which the race detector cannot find anything. test/structure checks that.
SEQUENTIAL = ./pkg/access/accesspolicy ./pkg/access/egress ./pkg/access/placement \
	./pkg/apis/configbutler/install ./pkg/apis/configbutler/v1alpha1 ./pkg/apiserver/admission/placement \
	./pkg/attribution/internal/fairqueue ./pkg/catalog/capture ./pkg/catalog/commits ./pkg/controller/conditions \
	./pkg/environment/condition ./pkg/environment/ingresshost ./pkg/environment/plan ./pkg/controller/syncwindow ./pkg/kube/annotation \
	./pkg/kube/cloudevent ./pkg/kube/fieldpath ./pkg/kube/ignore ./pkg/kube/logredact ./pkg/kube/manifest ./pkg/kube/manifest/gitname ./pkg/kube/merge \
	./pkg/kube/objectcopy ./pkg/kube/patch ./pkg/kube/printable ./pkg/kube/references ./pkg/kube/texttemplate \
	./pkg/mirror/commitmessage ./pkg/mirror/sops ./pkg/notification/format ./pkg/notification/message \
	./pkg/pipeline/condition ./pkg/pipeline/format ./pkg/pipeline/item ./pkg/store/backup/archive ./pkg/store/hmac ./pkg/store/keyspace ./pkg/syncstatus ./pkg/syncstatus/summary

.PHONY: test-unit
test-unit: ## Run the unit tests of all packages, including those that kill a process at a failpoint.
ifeq ($(RACE),1)
	all=$$(go list ./cmd/... ./hack/... ./pkg/...) && sequential=$$(go list $(SEQUENTIAL)) || exit 1; \
	$(RACE_TEST) -p '$(PACKAGES)' $(LONGEST) $$(printf '%s\n' "$$all" | grep -vxF "$$sequential")
	$(TEST) -p '$(PACKAGES)' $(SEQUENTIAL)
	$(TEST) -run 'TestHostile|TestServerCapabilities' ./pkg/mirror/gitrepo
else
	$(TEST) -tags failpoints -p '$(PACKAGES)' $(LONGEST) ./cmd/... ./hack/... ./pkg/...
endif
	$(PLAIN_FLAGS) go test -C test/alerts -count=1 ./...
	$(PLAIN_FLAGS) go test -C hack/image -count=1 ./...

# Tests that start programs are never cached: go test does not see what these read, such as the chart and the server's sources, and
# with -trimpath their own programs are the same in every clone.
UNCACHED = -count=1

# Runs tests whose clusters record the permissions that the server used, and checks that its roles grant exactly these; with the option
# -denied, that they grant these. If SLIPSTREAM_RIGHTS names a folder, the records are kept there, for a check of the tests of several targets.
judged = @folder=$${SLIPSTREAM_RIGHTS:-$$(mktemp -d)} && { [ -n "$$SLIPSTREAM_RIGHTS" ] || trap 'rm -rf "$$folder"' EXIT; } && \
	export SLIPSTREAM_RIGHTS="$$folder" && $(1) && $(PLAIN_FLAGS) go run ./test/rights $(2) "$$folder"

# The packages that are always tested without the race detector, which makes the server several times slower. With RACE=1,
# test/integration runs the same server with it, and the tests of pkg/ the same controllers; test-faults always runs bursts and storms with
# it. The packages with the longest tests start first, here and below.
WITHOUT_RACE = ./test/environments ./test/e2e ./test/attribution ./test/catalogs ./test/notifications ./test/pipelines ./test/replicas \
	./test/fidelity ./test/soak ./test/devcluster
INTEGRATION = ./test/integration/apiserver ./test/integration/serving ./test/integration/encryption ./test/integration/...
# The packages that test what is published: the images, the chart, a release and the upgrade to it, the page, the site, and the commands of
# the documentation.
PUBLISHED = ./test/docs ./test/install ./test/page ./test/compatibility ./test/release ./test/image ./test/chart ./test/site ./test/container
# The folders of benchmarks, whose packages have no tests. All other packages need no control plane.
BENCHMARKS = ./test/bench/...
# The tests with real partners, which make test-partners runs.
PARTNERS = ./test/partners/...

# Builds tools, in a shell command. Compiling beside tests would take minutes of their time.
tools = for tool in $(1); do bin/dev tool "$$tool" > /dev/null || exit 1; done

# The packages on control planes and what they are built on, with the number of packages at a time. With the race detector, these are two runs.
ifeq ($(RACE),1)
cluster_tests = $(TEST) $(UNCACHED) -p $$(($(CLUSTERS) + 1)) $(WITHOUT_RACE) & beside=$$!; \
	$(RACE_TEST) $(UNCACHED) -p '$(CLUSTERS)' $(INTEGRATION) ./test/bench $$others || failed=1; \
	wait "$$beside" || failed=1
else
cluster_tests = $(TEST) $(UNCACHED) -p $$((2 * $(CLUSTERS) + 1)) $(WITHOUT_RACE) $(INTEGRATION) ./test/bench $$others || failed=1
endif

.PHONY: test-integration
test-integration: control-plane ## Run the tests on real control planes, and check that the server's roles grant what they need.
	@$(call tools,helm helm3 kwok sops)
	@# Compiling beside tests would compile some packages twice.
	@$(PLAIN_FLAGS) go list -export -deps -test ./cmd/... $(WITHOUT_RACE) $(if $(with_race),,$(INTEGRATION)) > /dev/null
	@$(if $(with_race),$(TEST_FLAGS) go list -export -deps -test $(DETECTOR) ./cmd/... $(INTEGRATION) > /dev/null)
	$(call judged,{ failed=0; all=$$(go list ./test/...) && \
	named=$$(go list $(WITHOUT_RACE) $(INTEGRATION) $(PUBLISHED) $(BENCHMARKS) $(PARTNERS)) || exit 1; \
	others=$$(printf '%s\n' "$$all" | grep -vxF "$$named"); \
	$(cluster_tests); \
	[ "$$failed" = 0 ]; },-denied)

.PHONY: test-published
test-published: control-plane ## Run the tests of what is published: images, chart, release, upgrade, page, site and the commands of the documentation.
	@$(call tools,cosign crane helm helm3 hugo kwok oauth2proxy sops)
	@$(PLAIN_FLAGS) go list -export -deps -test ./cmd/... $(PUBLISHED) > /dev/null
	@$(PLAIN_FLAGS) $(MAKE) --silent image IMAGE_ARCHES="$$(go env GOARCH)" IMAGE_OUTPUT=bin/image-of-tests IMAGE_PUSH=
	$(call judged,$(TEST) $(UNCACHED) -p $$(($(CLUSTERS) + 1)) $(PUBLISHED),-denied)

# The packages, and the tests of PUBLISHED, that together use all permissions of the server's roles.
RIGHTS_TESTS = ./test/e2e ./test/catalogs ./test/environments ./test/pipelines ./test/integration/encryption ./test/integration/serving
RIGHTS_PUBLISHED = -run 'TestManifests|TestInstall$$/^Replicas$$' ./test/docs ./test/install

.PHONY: test-rights
test-rights: control-plane ## Check that the server's roles grant exactly what it needs, with as few tests as possible.
	$(call judged,$(TEST) $(UNCACHED) -p '$(CLUSTERS)' $(RIGHTS_TESTS) && \
		$(TEST) $(UNCACHED) $(RIGHTS_PUBLISHED))

.PHONY: check-rights
check-rights: ## Check that the server's roles grant exactly what the tests needed that have written to the folder SLIPSTREAM_RIGHTS.
	@$(PLAIN_FLAGS) go run ./test/rights "$$SLIPSTREAM_RIGHTS"

.PHONY: test-faults
test-faults: control-plane ## Repeat crashes and power loss of the store, for FAULTS each, and other faults: OUTAGE, KILLS and BURST, CHANGES, STORM.
	$(RACE_TEST) -run 'Killed|PowerLoss|CrashAtEveryStep|FaultAtEveryStep' ./pkg/store/bolt -faults '$(FAULTS)'
	$(RACE_TEST) $(FAILPOINT_TESTS)
	$(RACE_TEST) -run 'TestFaults/remote' ./pkg/mirror -outage '$(OUTAGE)'
	$(RACE_TEST) -run 'TestKilledInMidBurst' ./test/e2e -kills '$(KILLS)' -burst '$(BURST)'
	$(RACE_TEST) -run '(BothSignals|Admission|LateAudit)/ConcurrentUpdates' ./test/attribution -changes '$(CHANGES)'
	$(RACE_TEST) -run 'TestStorm' ./test/catalogs -storm '$(STORM)'

# At the end, a soak waits for what failures have delayed, and checks the whole history.
.PHONY: soak
soak: control-plane ## Let users work for MINUTES while random things fail, and check at the end that everything is equal; SEED repeats the faults of a run.
	$(TEST) $(UNCACHED) -timeout "$$(($(MINUTES) + 30))m" -v -run TestSoak ./test/soak -minutes '$(MINUTES)' -seed '$(SEED)'

.PHONY: test-partners
test-partners: control-plane ## Run the tests with real partners, such as Git hosts, which are built from their Go modules (minutes, once).
	@for tool in gitea sourcecontroller kustomizecontroller; do bin/dev tool $$tool || exit 1; done
	$(TEST) $(UNCACHED) $(PARTNERS)

# The core of the end-to-end tests: the mirror, authors from both webhooks, the history, encrypted Secrets, catalogs, environments,
# pipelines and the plugin.
CORE = TestControlPlane TestMirror TestHistory TestSecrets TestBothSignals TestAdmission \
	TestCatalogs/(AllKinds|CommitsInRecords|Rollback)$$ TestEnvironments/(AllKinds|ManualSync|Plugin)$$ TestPipelines/Parallel/(Changes|Formats)$$
CORE_TESTS = ./test/devcluster ./test/e2e ./test/attribution ./test/catalogs ./test/environments ./test/pipelines

.PHONY: test-versions
test-versions: bin/dev ## Run the core of the end-to-end tests on CONTROL_PLANES, which are built from their Go modules (minutes, once).
	@for each in $(or $(strip $(CONTROL_PLANES)),$(error CONTROL_PLANES names no control plane)); do \
		export SLIPSTREAM_CONTROL_PLANE="$$each"; folder=$$(bin/dev control-plane) && echo "$$each: $$folder" && \
		$(TEST) $(UNCACHED) -p '$(CLUSTERS)' -run "$$(echo '$(CORE)' | tr ' ' '|')" $(CORE_TESTS) || exit 1; \
	done

.PHONY: bench
bench: control-plane ## Run the benchmarks (minutes) and print results and targets; OBJECTS is the maximum of mirrored objects.
	go run ./test/bench -objects '$(OBJECTS)'

.PHONY: bench-check
bench-check: control-plane ## Run the benchmarks that have targets, and fail if a figure is worse than accepted.
	go run ./test/bench -objects '$(OBJECTS)' -check

##@ Demo

.PHONY: demo
demo: build control-plane ## Run the demo on a local cluster, and leave it running.
	hack/demo.sh up

.PHONY: demo-down
demo-down: bin/dev ## Stop the demo, and remove its files.
	hack/demo.sh down

##@ Develop: a cluster in a folder, DEV_DIR (default .dev/cluster)

.PHONY: dev-up
dev-up: bin/dev $(if $(filter-out 0,$(SERVER)),build) ## Start a cluster; SERVER=0 without the server, SERVER_ARGS its flags, STORAGE=bbolt|etcd3, REPLICAS=n (etcd3); AUDIT=0, ADMISSION=0 without the webhooks; PODS=1 runs Pods, with kwok. DEV_DIR/env has its variables.
	@bin/dev up --dir '$(DEV_DIR)' --storage '$(STORAGE)' --replicas '$(REPLICAS)' --server=$(if $(filter-out 0,$(SERVER)),true,false) --audit=$(if $(filter-out 0,$(AUDIT)),true,false) --admission=$(if $(filter-out 0,$(ADMISSION)),true,false) --pods=$(if $(filter-out 0,$(PODS)),true,false) -- $(SERVER_ARGS)

.PHONY: dev-down
dev-down: bin/dev ## Stop the cluster's processes, and remove its files.
	@bin/dev down --dir '$(DEV_DIR)'

.PHONY: dev-user
dev-user: bin/dev ## Print the kubeconfig of an ordinary user, USER_NAME in USER_GROUPS=a,b.
	@bin/dev user --dir '$(DEV_DIR)' --name '$(or $(strip $(USER_NAME)),$(error USER_NAME is missing, as in: make dev-user USER_NAME=jane USER_GROUPS=a,b))' --groups '$(USER_GROUPS)'

.PHONY: dev-stop-server
dev-stop-server: bin/dev ## Stop the server with SIGNAL=TERM|INT|QUIT|KILL, and keep its data.
	@bin/dev stop-server --dir '$(DEV_DIR)' --signal '$(SIGNAL)'

.PHONY: dev-start-server
dev-start-server: bin/dev ## Start the server again with its data.
	@bin/dev start-server --dir '$(DEV_DIR)'

##@ Help

.PHONY: help
help: ## Print this help.
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
