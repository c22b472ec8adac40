#!/usr/bin/env bash
# Makes the packages in a directory (dist/packages). The environment gives VERSION,
# LDFLAGS, and SOURCE_DATE_EPOCH for the time of all files: the same commit gives the
# same packages.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:-dist/packages}
nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.44.1
export VERSION ARCH BUILD=$out/build

rm -rf "$out"
mkdir -p "$BUILD"
# kingpin's title would be several lines long, and its NAME lacks the description.
{
  echo '.TH server_rental_exporter 1'
  go run -buildvcs=false . --help-man |
    sed -n '/^\.SH/,$p' | sed 's/^server_rental_exporter$/& \\- Prometheus exporter for the Dedicated Server Rental API/'
} | gzip -9nc >"$BUILD/server_rental_exporter.1.gz"
for shell in bash zsh; do
  go run -buildvcs=false . --completion-script-$shell >"$BUILD/completion.$shell"
done
gzip -9nc CHANGELOG.md >"$BUILD/changelog.gz"
gzip -9nc >"$BUILD/changelog.Debian.gz" <<END
server-rental-exporter (${VERSION/-/\~}-1) stable; urgency=medium

  * Release $VERSION: changelog.gz lists the changes.

 -- $(sed -n 's/^maintainer: //p' packaging/nfpm.yaml)  $(LC_ALL=C date -uRd "@$SOURCE_DATE_EPOCH")
END

for ARCH in amd64 arm64; do
  CGO_ENABLED=0 GOOS=linux GOARCH=$ARCH go build -trimpath -buildvcs=false -ldflags "$LDFLAGS" -o "$BUILD/$ARCH/server_rental_exporter" .
  for packager in deb rpm; do
    go run "$nfpm" package --config packaging/nfpm.yaml --packager "$packager" --target "$out"
  done
done
