# Everything a developer runs. See README.md for users.
VERSION  := $(shell cat VERSION)
REVISION := $(shell git rev-parse HEAD 2>/dev/null)
BRANCH   := $(shell git rev-parse --abbrev-ref HEAD 2>/dev/null)
PKG      := github.com/prometheus/common/version
LDFLAGS  := -s -w -X $(PKG).Version=$(VERSION) -X $(PKG).Revision=$(REVISION) -X $(PKG).Branch=$(BRANCH)
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: all build test race e2e lint format bench docs dashboards image clean

all: lint test build

build: ## static binary
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o server_rental_exporter .

test: ## all tests that need nothing but Go
	go test ./...

race: ## the same under the race detector, without the simulated day
	go test -race -short ./...

e2e: ## with a real Prometheus and Alertmanager (Debian: prometheus prometheus-alertmanager)
	go test -tags e2e -timeout 20m ./e2e

lint:
	go vet -tags e2e ./...
	go run $(GOLANGCI) run ./...

format:
	go run $(GOLANGCI) fmt ./...

bench: ## numbers of docs/performance.md
	go test -run '^$$' -bench . -benchmem ./...

docs: ## generated references
	UPDATE_DOCS=1 go test -count=1 -run '^TestMetricsDocument$$' .

dashboards: ## dashboards/*.json from their source
	cd dashboards/generator && npm ci && npm run build

image:
	buildah bud --format docker --build-arg REVISION=$(REVISION) --build-arg BRANCH=$(BRANCH) -t server_rental_exporter:$(VERSION) .

clean:
	rm -f server_rental_exporter
