#!/usr/bin/env bash
# Builds current versions of the programs that the exporter works with into bin/, from
# the modules beside this script. Each module pins its own dependencies: together they do
# not fit.
set -euo pipefail
cd "$(dirname "$0")"
export CGO_ENABLED=0

# build MODULE SOURCE RELEASE VARIABLE PACKAGE... builds packages of a source module.
# RELEASE is a sed script that makes the version, which the programs print, of the
# module's version; VARIABLE is the Go variable that holds it.
build() (
  cd "$1"
  version=$(go list -m -f '{{.Version}}' "$2" | sed "$3")
  echo "$2 $version: ${*:5}"
  # Without the clients of cloud providers, which service discovery is not tested with.
  go build -trimpath -tags remove_all_sd -ldflags "-s -w -X $4=$version" -o ../bin/ "${@:5}"
)

prometheus=github.com/prometheus/prometheus
alertmanager=github.com/prometheus/alertmanager
victoriametrics=github.com/VictoriaMetrics/VictoriaMetrics
common=github.com/prometheus/common/version.Version

mkdir -p bin
build prometheus $prometheus 's/^v0[.]3/3./' $common $prometheus/cmd/prometheus $prometheus/cmd/promtool

# Alertmanager embeds the files of its user interface, which its module lacks: a copy of the
# module gets one in their place.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
go -C prometheus mod download $alertmanager
cp -r "$(go -C prometheus list -m -f '{{.Dir}}' $alertmanager)" "$copy/alertmanager"
chmod -R u+w "$copy/alertmanager"
mkdir "$copy/alertmanager/ui/app/dist"
touch "$copy/alertmanager/ui/app/dist/index.html"
cp prometheus/go.mod prometheus/go.sum "$copy"
go mod edit -replace "$alertmanager=$copy/alertmanager" "$copy/go.mod"
GOFLAGS="${GOFLAGS-} -modfile=$copy/go.mod" \
  build prometheus $alertmanager 's/^v//' $common $alertmanager/cmd/{alertmanager,amtool}

build victoriametrics $victoriametrics '' $victoriametrics/lib/buildinfo.Version $victoriametrics/app/{victoria-metrics,vmagent,vmalert,vmalert-tool}
ln -sf alertmanager bin/prometheus-alertmanager # as Debian names it
