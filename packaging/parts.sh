#!/usr/bin/env bash
# Writes what packages contain beside the files of the repository to dist/parts: the man page, the
# completions of shells and the compressed changelogs, for a version and the time of its commit.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1 time=$2 parts=dist/parts
rm -rf $parts
mkdir -p $parts
go build -buildvcs=false -o $parts/server_rental_exporter .

# kingpin's title would be several lines long, and its NAME lacks the description.
{
  echo '.TH server_rental_exporter 1'
  $parts/server_rental_exporter --help-man | sed -n '/^\.SH/,$p' | sed 's/^server_rental_exporter$/& \\- Prometheus exporter for the Dedicated Server Rental API/'
} | gzip -9nc >$parts/server_rental_exporter.1.gz
$parts/server_rental_exporter --completion-script-bash >$parts/completion.bash
$parts/server_rental_exporter --completion-script-zsh >$parts/completion.zsh
gzip -9nc CHANGELOG.md >$parts/changelog.gz
gzip -9nc >$parts/changelog.Debian.gz <<END
server-rental-exporter (${version/-/\~}-1) stable; urgency=medium

  * Release $version: changelog.gz lists the changes.

 -- $(sed -n 's/^ *maintainer: //p' .goreleaser.yaml)  $(LC_ALL=C date -uRd "@$time")
END
rm $parts/server_rental_exporter
