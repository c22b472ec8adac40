# Everything a developer runs. Users find what they need in README.md.
VERSION  := $(shell cat VERSION)
# The commit and its time. git archive writes them here, so a tarball builds the same version.
COMMIT   := $Format:%H %ct$
ifneq ($(findstring %H,$(COMMIT)),)
COMMIT   := $(shell git log -1 --format='%H %ct' 2>/dev/null)
endif
REVISION := $(word 1,$(COMMIT))
COMMIT_TIME := $(or $(word 2,$(COMMIT)),0)
PKG      := github.com/prometheus/common/version
LDFLAGS  := -s -w -X $(PKG).Version=$(VERSION) -X $(PKG).Revision=$(REVISION)
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
DEADCODE := golang.org/x/tools/cmd/deadcode@v0.52.0
SYFT     := github.com/anchore/syft/cmd/syft@v1.38.0
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
export GORELEASER := github.com/goreleaser/goreleaser/v2@v2.13.3
BUILDAH  := buildah
IMAGE_ARCH = $(shell go env GOARCH)

.DEFAULT_GOAL := help
.PHONY: help build test test-short test-deploy race tools e2e lint format bench update golden recipe-check picture browser-test image image-test packages packages-test \
  sbom release-notes release-check release helm-package clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Without flags that change how packages are compiled, so that it takes what go run . has compiled.
build: ## build the binary
	go build -buildvcs=false -ldflags '$(LDFLAGS)' -o server_rental_exporter .

# The tests of documents, rules and deployment, and those with real programs, are a
# module of their own: what they need is not listed in the program's go.mod, and takes
# minutes to compile the first time.
test: ## run the tests that need nothing but the program's own modules
	go test -timeout 30m ./...
	cd test && go test -timeout 30m ./chaos

# -count=1: go test does not see that a file outside the module has changed.
test-deploy: ## run the tests of documents, rules, dashboards, chart, manifests, Compose and mixin
	cd test && go test -count=1 -timeout 30m ./...

test-short: ## run the tests of the inner loop
	go test -short ./...

race: ## run the short tests with the race detector
	go test -race -short -timeout 30m ./...
	cd test && go test -race -short -timeout 30m ./chaos

tools: ## build current versions of Prometheus and other programs for the tests (minutes the first time)
	test/e2e/tools/build.sh

e2e: tools ## test with real programs, installed ones (Debian: prometheus prometheus-alertmanager) and current ones
	test/e2e/run.sh

lint: ## run all linters
	go mod tidy -diff
	go vet ./...
	go run $(GOLANGCI) run ./...
	go run $(ACTIONLINT)
	@! grep -E 'uses: [^.]' .github/workflows/*.yml | grep -vE '@[0-9a-f]{40} # v' # pinned by commit
	cd test && go mod tidy -diff
	cd test && go vet -tags e2e ./...
	cd test && go run $(GOLANGCI) run ./...
	@dead=$$(cd test && go run $(DEADCODE) -test -tags e2e -filter ^github.com/server-rental-exporter/server_rental_exporter ./... github.com/server-rental-exporter/server_rental_exporter/...); \
	  test -z "$$dead" || { echo "$$dead"; exit 1; }

format: ## format the code
	go run $(GOLANGCI) fmt ./...
	cd test && go run $(GOLANGCI) fmt ./...

bench: ## measure the numbers of docs/limits.md
	go test -run '^$$' -bench . -benchmem ./...

update: ## rewrite all golden and generated files (Node and npm for those of dashboards)
	cd dashboards/generator && npm ci --silent && npm run --silent build
	$(MAKE) golden
	packaging/licenses.sh >THIRD_PARTY_LICENSES

golden: ## rewrite the golden and generated files that need nothing but Go
	go test -count=1 -run 'TestGolden|TestMetricsDocument|TestConfigurationDocument|TestExample|TestOverview|TestLandingPage' \
	  ./collector ./config ./exporter ./internal/rentalapi ./web -update

recipe-check: ## add an endpoint to a copy as CONTRIBUTING.md says, and run the tests there
	test/recipe/check.sh

picture: ## make the picture of the landing page from web/testdata (Debian: chromium-headless-shell fonts-dejavu-core)
	chromium-headless-shell --no-sandbox --disable-gpu --hide-scrollbars --blink-settings=preferredColorScheme=1 --window-size=1280,1500 \
	  --screenshot=docs/pictures/overview.png file://$(CURDIR)/web/testdata/overview.html

browser-test: ## test the landing page in a browser (Node, npm; Debian: chromium-headless-shell)
	cd web/browser && npm ci --silent && npm run --silent test

image: ## build a container image (IMAGE_ARCH=arm64 for another processor)
	$(BUILDAH) bud --format docker --os linux --arch $(IMAGE_ARCH) --timestamp $(COMMIT_TIME) \
	  --build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) \
	  --label org.opencontainers.image.created=$$(date -ud @$(COMMIT_TIME) +%FT%TZ) \
	  $(BUILDAH_FLAGS) -t server_rental_exporter:v$(VERSION) .

image-test: ## build the images of both platforms, without a registry, and run one (root; Debian: buildah busybox-static ca-certificates)
	cd test && go test -tags e2e -count=1 -timeout 20m ./image

sbom: build ## list what the binary is made of (SPDX)
	mkdir -p dist
	go run $(SYFT) scan file:server_rental_exporter -o spdx-json=dist/server_rental_exporter.sbom.json

release-notes: ## print the changes of VERSION
	@awk '/^## / {on = index($$0, "[$(VERSION)]"); found += on; next} on; END {exit !found}' CHANGELOG.md

release-check: ## make a release without publishing it, and check it (Debian: unzip)
	test/release/check.sh

release: ## publish the tag of this commit, as .github/workflows/release.yml does
	GOBIN=$(CURDIR)/dist/bin go install $(SYFT)
	$(MAKE) -s release-notes >dist/notes.md
	PATH=$(CURDIR)/dist/bin:$$PATH go run $(GORELEASER) release --clean --release-notes=dist/notes.md
	cd test && go tool helm push ../dist/server-rental-exporter-$(VERSION).tgz oci://ghcr.io/server-rental-exporter/charts

packages packages-test: PACKAGING = VERSION='$(VERSION)' LDFLAGS='$(LDFLAGS)' SOURCE_DATE_EPOCH=$(COMMIT_TIME)

packages: ## make deb and rpm packages in dist/packages
	$(PACKAGING) packaging/build.sh

packages-test: packages ## install, run, upgrade and remove the packages (root; Debian: lintian rpm systemd)
	$(PACKAGING) packaging/test.sh

helm-package: ## package the Helm chart into dist/
	rm -f dist/server-rental-exporter-*.tgz
	find -L deploy/helm/server-rental-exporter -name node_modules -prune -o -exec touch --date=@$(COMMIT_TIME) {} + # the package has the times of the files
	cd test && go tool helm package ../deploy/helm/server-rental-exporter --destination ../dist

clean: ## remove what build left
	rm -rf server_rental_exporter dist
