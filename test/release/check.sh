#!/usr/bin/env bash
# Makes a release of the newest commit without publishing it, twice, and checks what
# is in it. It stays in dist. Images and SBOMs are not made: see make image-test.
# (Debian: unzip)
set -euo pipefail
export LC_ALL=C # for sort and patterns
cd "$(dirname "$0")/../.."

fail() { printf 'release-check: %s\n' "$*" >&2; exit 1; }

# The checksums of all files of a release.
sums() { (cd "$1/dist" && sha256sum -- release/*.tar.gz release/*.zip release/*.deb release/*.rpm release/sha256sums.txt ./*.tgz); }

goreleaser check

# An image that goreleaser makes is built from the same files as any other.
diff <(sed -n 's/^!//p' .dockerignore | sort) \
  <(tr -d ' \n' <.goreleaser.yaml | grep -o 'extra_files:\[\.dockerignore,[^]]*' | cut -d , -f 2- | tr ',' '\n' | sort) ||
  fail ".goreleaser.yaml: dockers_v2: extra_files differ from .dockerignore"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for clone in first second-in-another-directory; do
  git clone -q . "$work/$clone"
  git -C "$work/$clone" tag -f "v$(cat VERSION)"
  (cd "$work/$clone" && goreleaser release --clean --skip=docker,publish,sbom,sign)
done
diff <(sums "$work/first") <(sums "$work/second-in-another-directory") || fail "two builds of one commit differ"
mkdir -p dist
rm -rf dist/release dist/*.tgz
cp -r "$work/first/dist"/{release,*.tgz} dist

version=$(cat VERSION)
mkdir "$work/published"
cp dist/release/*.tar.gz dist/release/*.zip dist/release/*.deb dist/release/*.rpm dist/*.tgz "$work/published"
(cd "$work/published" && sha256sum --quiet --strict -c) <dist/release/sha256sums.txt
[ "$(wc -l <dist/release/sha256sums.txt)" = "$(find "$work/published" -type f | wc -l)" ] || fail "sha256sums.txt is not complete"

content=$({
  printf '%s\n' server_rental_exporter THIRD_PARTY_LICENSES
  git ls-files {README,CHANGELOG,alerts/README}.md 'docs/*.md' LICENSE example.yml 'alerts/*.yml' 'dashboards/*.json' \
    deploy/systemd packaging/config.yml ':!alerts/tests'
} | sort)
for platform in {linux,darwin,freebsd,windows}-{amd64,arm64}; do
  name=server_rental_exporter-$version.$platform
  case $platform in
    windows-*) files=$(unzip -Z1 "dist/release/$name.zip" | sed 's/\.exe$//') ;;
    *) files=$(tar -tzf "dist/release/$name.tar.gz") ;;
  esac
  diff <(echo "$content") <(grep -v '/$' <<<"$files" | cut -d / -f 2- | sort) || fail "$name holds other files"
done

# The documented commands find the files, and the checksums are right.
repository=$(sed -n 's|^  - images: \[ghcr.io/\(.*\)\]$|\1|p' .goreleaser.yaml)
documented() { sed -n '/^## Install a release$/,/^## Contents of a release$/p' packaging/README.md | grep -o "$1"; }
[ "$(documented '^repository=.*')" = "repository=$repository version=$version" ] || fail "packaging/README.md: other variables"
cp dist/release/sha256sums.txt "$work/published"
documented '[$]release/[^ "]*' | while read -r file; do
  file=${file#?release/}
  [ -f "$work/published/${file//\$version/$version}" ] || fail "packaging/README.md: $file is not published"
done
mkdir "$work/installed"
documented '^\(curl\|tar\) .*' >"$work/commands"
(cd "$work/installed" && release=file://$work/published version=$version bash -e ../commands)

# All addresses begin with that repository.
others=$(git grep --text -hoE '(github\.com|ghcr\.io)/server-rental-exporter/[[:alnum:]_-]+' | sort -u | grep -vx "github.com/$repository\|ghcr.io/$repository\|ghcr.io/${repository%/*}/charts" || true)
[ -z "$others" ] || fail "addresses of other repositories: $others"

# Archive and package have the same program. A clone in which somebody works, and a tarball,
# build one of the same version.
name=server_rental_exporter-$version.linux-amd64
mkdir "$work/tarball"
git archive HEAD | tar -x -C "$work/tarball"
touch "$work/first/untracked"
dpkg-deb --fsys-tarfile dist/release/*_amd64.deb | tar -xO ./usr/bin/server_rental_exporter >"$work/packaged"
released=$work/installed/$name/server_rental_exporter
version_of() { "$1" --version | sed 's/branch: [^,]*/branch: HEAD/'; } # of a tag, as in a release
[[ $(version_of "$released") == *"version $version (branch: HEAD, revision: $(git rev-parse HEAD))"* ]] || fail "the version is incomplete: $("$released" --version)"
cmp "$released" "$work/packaged" || fail "archive and package differ"
for tree in first tarball; do
  GOOS=linux GOARCH=amd64 make -s -C "$work/$tree" build
  diff <(version_of "$released") <(version_of "$work/$tree/server_rental_exporter") || fail "another version of archive and $tree"
done
echo "release-check: version $version OK"
