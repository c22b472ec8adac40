# Everything a developer runs. Users find what they need in README.md.
VERSION  := $(shell cat VERSION)
REVISION := $(shell git rev-parse HEAD 2>/dev/null)
BRANCH   := $(shell git rev-parse --abbrev-ref HEAD 2>/dev/null)
PKG      := github.com/prometheus/common/version
LDFLAGS  := -s -w -X $(PKG).Version=$(VERSION) -X $(PKG).Revision=$(REVISION) -X $(PKG).Branch=$(BRANCH)
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
DEADCODE := golang.org/x/tools/cmd/deadcode@v0.52.0

.DEFAULT_GOAL := help
.PHONY: help build test test-short test-long race e2e lint format bench update dashboards pictures image helm helm-test helm-package clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build a static binary
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o server_rental_exporter .

test: ## run all tests that need nothing but Go
	go test ./...

test-short: ## run the tests of the inner loop
	go test -short ./...

test-long: ## run all tests in their long form: fault schedules, soak, load and memory
	CHAOS_LONG=1 go test -count=1 -timeout 30m ./alerts ./collector ./exporter ./test/chaos

race: ## run the short tests with the race detector
	go test -race -short ./...

e2e: ## test with a real Prometheus and Alertmanager (Debian: prometheus prometheus-alertmanager)
	go test -tags e2e -timeout 20m ./test/e2e

lint: ## run all linters
	go vet -tags e2e ./...
	go run $(GOLANGCI) run ./...
	@dead=$$(go run $(DEADCODE) -test -tags e2e ./...); test -z "$$dead" || { echo "$$dead"; exit 1; }

format: ## format the code
	go run $(GOLANGCI) fmt ./...

bench: ## measure the numbers of docs/performance.md
	go test -run '^$$' -bench . -benchmem ./...

update: ## rewrite all golden and generated files
	go test -count=1 -run 'TestGolden|TestLoadInvalid|TestHelp|TestMetricsDocument|TestOverview|TestLandingPage' ./collector ./config ./exporter ./web -update

dashboards: ## build dashboards/*.json from their source
	cd dashboards/generator && npm ci && npm run build

pictures: ## make docs/pictures from web/testdata (Debian: chromium-headless-shell fonts-dejavu-core)
	web/pictures.sh

image: ## build a container image
	buildah bud --format docker --build-arg REVISION=$(REVISION) --build-arg BRANCH=$(BRANCH) -t server_rental_exporter:$(VERSION) .

helm: ## rewrite the generated files of the Helm chart and deploy/kubernetes
	cd deploy/helm/test && go test -count=1 -timeout 30m -run TestGenerated . -update

helm-test: ## test the Helm chart and deploy/kubernetes
	cd deploy/helm/test && go mod tidy -diff && go vet ./... && go test -count=1 -timeout 30m ./...

helm-package: ## package the Helm chart into dist/
	cd deploy/helm/test && go tool helm package ../server-rental-exporter --destination $(CURDIR)/dist

clean: ## remove what build left
	rm -f server_rental_exporter
