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
COMMIT_DATE := $(shell date -ud @$(COMMIT_TIME) +%FT%TZ)
BRANCH   := $(or $(shell git branch --show-current 2>/dev/null),HEAD)
LDFLAGS  := -s -w -X $(PKG).Version=$(VERSION) -X $(PKG).Revision=$(REVISION) -X $(PKG).Branch=$(BRANCH) -X $(PKG).BuildDate=$(COMMIT_DATE)
MODULE   := $(shell go list -m)
REGISTRY := ghcr.io/server-rental-exporter
# Tools have modules of their own, with their versions.
LINT     := go tool -modfile=$(CURDIR)/tools/lint/go.mod
ACTIONS  := go tool -modfile=$(CURDIR)/tools/actions/go.mod
RELEASE  := $(CURDIR)/dist/bin
BUILDAH  := buildah
IMAGE_ARCH = $(shell go env GOARCH)

.DEFAULT_GOAL := help
.PHONY: help build test test-short test-deploy race tools e2e lint scripts format bench update golden generated recipe-check pictures browser-test image image-test \
  release-tools licenses release-notes release-check release package packages packages-test package-parts helm-package project-home clean

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

# -count=1: go test does not see that a file outside the module has changed.
test-deploy: ## run the tests of faults, documents, rules, dashboards, chart, manifests, Compose, mixin and page
	cd test && go test -count=1 -timeout 30m ./...
	cd dashboards && go test -count=1 ./...

test-short: ## run the tests of the inner loop
	go test -short ./...

race: ## run the short tests with the race detector
	go test -race -short -timeout 30m ./...
	cd test && go test -race -short -timeout 30m ./chaos

tools: ## build current versions of Prometheus and other programs for the tests (minutes the first time)
	test/e2e/tools/build.sh

e2e: tools ## test with real programs, installed ones (Debian: prometheus prometheus-alertmanager) and current ones
	test/e2e/run.sh

lint: ## run all linters (minutes the first time)
	go mod tidy -diff
	$(LINT) golangci-lint run ./...
	$(ACTIONS) actionlint
	@! grep -E 'uses: [^.]' .github/workflows/*.yml | grep -vE '@[0-9a-f]{40} # v' # pinned by commit
	for module in test dashboards; do (cd $$module && go mod tidy -diff && $(LINT) golangci-lint run ./...) || exit; done
	cd test && go tool jsonnetfmt --test ../mixin/*.libsonnet && go tool jsonnet-lint ../mixin/*.libsonnet
	@dead=$$(cd test && $(LINT) deadcode -test -tags e2e -filter '^$(MODULE)' ./... $(MODULE)/...); \
	  test -z "$$dead" || { echo "$$dead"; exit 1; }

scripts: ## check scripts and YAML files (Debian: shellcheck yamllint)
	git ls-files -z '*.sh' .ci/run | xargs -0 shellcheck
	yamllint -s .

format: ## format the code
	for module in . test dashboards; do (cd $$module && $(LINT) golangci-lint fmt ./...) || exit; done

bench: ## measure the numbers of docs/limits.md
	go test -run '^$$' -bench . -benchmem ./...

update: golden ## rewrite all golden and generated files
	cd dashboards && go generate
	rm -rf deploy/helm/server-rental-exporter/files
	mkdir -p deploy/helm/server-rental-exporter/files/alerts deploy/helm/server-rental-exporter/files/dashboards
	cp alerts/*.rules.yml deploy/helm/server-rental-exporter/files/alerts
	cp dashboards/*.json deploy/helm/server-rental-exporter/files/dashboards

golden: ## rewrite the golden and generated files that follow from resources, flags and settings
	go test -count=1 -run 'TestGolden|TestMetricsDocument|TestExample|TestOverview|TestSections' \
	  ./collector ./config ./exporter ./internal/rentalapi ./web -update

generated: update ## fail if a generated file is behind
	git diff --exit-code

recipe-check: ## follow the recipes of CONTRIBUTING.md in a copy, and run the tests there
	cd test && go test -tags e2e -count=1 -timeout 40m -v ./recipe

pictures: ## make the pictures of the documents; GRAFANA=http://127.0.0.1:3000 makes those of dashboards, too (Debian: chromium-headless-shell fonts-dejavu-core)
	cd test && GRAFANA=$(GRAFANA:/=) go test -count=1 -run TestPictures ./browser -update

browser-test: ## test the landing page in a browser (Debian: chromium-headless-shell)
	cd test && go test -count=1 ./browser

image: ## build a container image (IMAGE_ARCH=arm64 for another processor)
	$(BUILDAH) bud --format docker --os linux --arch $(IMAGE_ARCH) --timestamp $(COMMIT_TIME) \
	  --build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) --build-arg COMMIT_TIME=$(COMMIT_TIME) \
	  --label org.opencontainers.image.created=$(COMMIT_DATE) \
	  $(BUILDAH_FLAGS) -t server_rental_exporter:v$(VERSION) .

image-test: ## build the images of both platforms, without a registry, and run one (root; Debian: buildah busybox-static ca-certificates)
	cd test && go test -tags e2e -count=1 -timeout 20m ./image

release-tools: # goreleaser, and syft, which it starts for a real release only
	cd tools/release && GOBIN=$(RELEASE) go install $(or $(SYFT),github.com/goreleaser/goreleaser/v2)

licenses: ## write the licences of all modules that the program is linked with
	GOOS= GOARCH= go run -buildvcs=false ./packaging/licenses >THIRD_PARTY_LICENSES

package-parts: licenses # what the packages contain and the repository does not
	packaging/parts.sh $(VERSION) $(COMMIT_TIME)

release-notes: ## print the changes of VERSION
	@awk '/^## / {on = index($$0, "[$(VERSION)]"); found += on; next} on; END {exit !found}' CHANGELOG.md

release-check: release-tools ## make a release without publishing it, and check it (Debian: unzip)
	PATH=$(RELEASE):$$PATH test/release/check.sh

release: SYFT = tool
release: release-tools ## publish the tag of this commit, as .github/workflows/release.yml does
	$(MAKE) -s release-notes >dist/notes.md
	PATH=$(RELEASE):$$PATH goreleaser release --clean --release-notes=dist/notes.md
	cd test && go tool helm push ../dist/server-rental-exporter-$(VERSION).tgz oci://$(REGISTRY)/charts

packages: ARCH = amd64, arm64
packages: ## make deb and rpm packages of all processors in dist/release
package: ARCH = $(shell go env GOARCH)
package: ## make the packages of this machine's processor in dist/release (builds goreleaser: minutes the first time)

# goreleaser wants a remote, which a copy may lack.
package packages: release-tools package-parts
	sed 's/^    goos: .*/    goos: [linux]/; s/^    goarch: .*/    goarch: [$(ARCH)]/' .goreleaser.yaml >dist/goreleaser.yaml
	PATH=$(RELEASE):$$PATH GORELEASER_CURRENT_TAG=v$(VERSION) \
	  GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.origin.url GIT_CONFIG_VALUE_0=https://$(MODULE) \
	  goreleaser release --config=dist/goreleaser.yaml --clean --skip=before,docker,publish,sbom,sign,archive,validate

packages-test: packages ## install, run, upgrade and remove the packages (root; Debian: lintian rpm systemd)
	PATH=$(RELEASE):$$PATH packaging/test.sh

helm-package: ## package the Helm chart into dist/
	rm -f dist/server-rental-exporter-*.tgz
	find deploy/helm/server-rental-exporter -exec touch --date=@$(COMMIT_TIME) {} + # the package has the times of the files
	cd test && go tool helm package ../deploy/helm/server-rental-exporter --destination ../dist

project-home: ## move the project: REPOSITORY=github.com/OWNER/NAME REGISTRY=ghcr.io/OWNER
	packaging/project-home.sh '$(REPOSITORY)' '$(REGISTRY)'

clean: ## remove what build left
	rm -rf server_rental_exporter dist
