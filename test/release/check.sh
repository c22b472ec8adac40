#!/usr/bin/env bash
# Makes a release of the newest commit without publishing it, twice, and checks what
# is in it. It stays in dist. Images and SBOMs are not made: see make image-test and
# make sbom. (Debian: unzip)
set -euo pipefail
export LC_ALL=C # for sort and patterns
cd "$(dirname "$0")/../.."

goreleaser=github.com/goreleaser/goreleaser/v2@v2.13.3

fail() { printf 'release-check: %s\n' "$*" >&2; exit 1; }

# The checksums of all files of a release.
sums() { (cd "$1/dist" && sha256sum -- release/*.tar.gz release/*.zip release/sha256sums.txt packages/*.deb packages/*.rpm ./*.tgz); }

go run "$goreleaser" check

# An image that goreleaser makes is built from the same files as any other.
diff <(sed -n 's/^!//p' .dockerignore | sort) \
  <(sed -n 's/.*extra_files: \[\.dockerignore, \(.*\)\]/\1/p' .goreleaser.yaml | tr -d ' ' | tr ',' '\n' | sort) ||
  fail ".goreleaser.yaml: dockers_v2: extra_files differ from .dockerignore"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for clone in first second-in-another-directory; do
  git clone -q . "$work/$clone"
  (cd "$work/$clone" && go run "$goreleaser" release --snapshot --clean --skip=docker,publish,sbom)
done
diff <(sums "$work/first") <(sums "$work/second-in-another-directory") || fail "two builds of one commit differ"
rm -rf dist
cp -r "$work/first/dist" dist

version=$(sed 's/.*"version":"\([^"]*\)".*/\1/' dist/release/metadata.json)
mkdir "$work/published"
cp dist/release/*.tar.gz dist/release/*.zip dist/packages/*.deb dist/packages/*.rpm dist/*.tgz "$work/published"
(cd "$work/published" && sha256sum --quiet --strict -c) <dist/release/sha256sums.txt
[ "$(wc -l <dist/release/sha256sums.txt)" = "$(find "$work/published" -type f | wc -l)" ] || fail "sha256sums.txt is not complete"

content='CHANGELOG.md LICENSE README.md THIRD_PARTY_LICENSES alerts dashboards example.yml server_rental_exporter '
for platform in {linux,darwin,freebsd,windows}-{amd64,arm64}; do
  name=server_rental_exporter-$version.$platform
  case $platform in
    windows-*) files=$(unzip -Z1 "dist/release/$name.zip" | sed 's/\.exe$//') ;;
    *) files=$(tar -tzf "dist/release/$name.tar.gz") ;;
  esac
  got=$(sed "s|^$name/||; s|/.*||" <<<"$files" | sort -u | tr '\n' ' ')
  [ "$got" = "$content" ] || fail "$name holds $got"
done

# Archive, package and make build have the same program.
name=server_rental_exporter-$version.linux-amd64
tar -xzf "dist/release/$name.tar.gz" -C "$work"
GOOS=linux GOARCH=amd64 make -s -C "$work/first" build VERSION="$version"
cmp "$work/$name/server_rental_exporter" "$work/first/server_rental_exporter" || fail "archive and make build differ"
dpkg-deb --fsys-tarfile "dist/packages/"*_amd64.deb | tar -xO ./usr/bin/server_rental_exporter | cmp - "$work/first/server_rental_exporter" ||
  fail "package and make build differ"
echo "release-check: version $version OK"
