#!/usr/bin/env bash
# Moves the project: project-home.sh REPOSITORY REGISTRY. The module path says where the project lives
# now, and REGISTRY in the Makefile where its image and chart do. Imports, links, runbooks, packages,
# chart and workflows follow.
set -euo pipefail
cd "$(dirname "$0")/.."
old=$(go list -m) old_registry=$(sed -n 's/^REGISTRY := //p' Makefile)
repository=$1 registry=$2
release() { IFS=/ read -r _ owner name <<<"$1" && echo "github: {owner: $owner, name: $name}"; } # in .goreleaser.yaml
if ! [[ $repository =~ ^[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9._-]+){2}$ && $registry =~ ^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+$ ]]; then
  echo "usage: make project-home REPOSITORY=github.com/OWNER/NAME REGISTRY=ghcr.io/OWNER" >&2
  exit 2
fi
git grep -lzIF -e "${old#*/}" -e "${old%/*}" -e "$old_registry" | xargs -0 sed -i --follow-symlinks \
  -e "s|${old//./\\.}|$repository|g" -e "s#${old%/*}\([^/[:alnum:]._-]\|\$\)#${repository%/*}\1#g" \
  -e "s|$(release "$old")|$(release "$repository")|" -e "s|${old_registry//./\\.}\b|$registry|g" -e "s|\b${old#*/}\b|${repository#*/}|g"
gofmt -w . # imports are sorted
echo "$repository, image and chart in $registry. Read the diff, and commit it."
