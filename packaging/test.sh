#!/usr/bin/env bash
# Tests the packages of dist/release: contents, and their life on a machine. Needs
# root or sudo.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=dist/release
test=dist/packages-test
rm -rf $test
mkdir -p $test

step() { printf -- '-- %s\n' "$*"; }

step lintian
lintian --allow-root --fail-on error,warning $dir/*.deb

step "contents of the rpm"
contents=$(
  for file in docs/*.md alerts/README.md; do echo "/usr/share/doc/server-rental-exporter/$file"; done
  for file in alerts/*.rules.yml; do echo "/usr/share/server_rental_exporter/rules/${file##*/}"; done
  for file in alerts/{alertmanager,receivers}*.yml; do [ -f "$file" ] || continue; echo "/usr/share/server_rental_exporter/${file##*/}"; done
  for file in dashboards/*.json; do echo "/usr/share/server_rental_exporter/dashboards/${file##*/}"; done
  cat <<END
/etc/server_rental_exporter
/etc/server_rental_exporter/config.yml
/etc/server_rental_exporter/tokens
/etc/sysconfig/server_rental_exporter
/usr/bin/server_rental_exporter
/usr/lib/systemd/system/server_rental_exporter.service
/usr/lib/systemd/system/server_rental_exporter.socket
/usr/share/bash-completion/completions/server_rental_exporter
/usr/share/doc/server-rental-exporter/changelog.gz
/usr/share/doc/server-rental-exporter/examples/example.yml
/usr/share/licenses/server-rental-exporter/LICENSE
/usr/share/licenses/server-rental-exporter/THIRD_PARTY_LICENSES
/usr/share/man/man1/server_rental_exporter.1.gz
/usr/share/server_rental_exporter
/usr/share/server_rental_exporter/dashboards
/usr/share/server_rental_exporter/rules
/usr/share/zsh/site-functions/_server_rental_exporter
END
)
for package in "$dir"/*.rpm; do
  diff <(sort <<<"$contents") <(rpm --query --list --package "$package" | sort)
  rpm --query --configfiles --package "$package" | diff <(printf '%s\n' /etc/server_rental_exporter/config.yml /etc/sysconfig/server_rental_exporter) -
done

step "completions"
bash -n dist/parts/completion.bash
zsh -n dist/parts/completion.zsh

step "licences of what the program is linked with"
dpkg-deb --fsys-tarfile $dir/*_amd64.deb | tar -xO ./usr/share/doc/server-rental-exporter/THIRD_PARTY_LICENSES >$test/licenses
go version -m $dir/*linux_amd64*/server_rental_exporter | awk '$1 == "dep" { print $2 }' | while read -r module; do
  grep --quiet --line-regexp "  $module" $test/licenses || { echo "no licence of $module" && exit 1; }
done

step "the next version, which has another configuration file"
next=$test/next
git clone --quiet . $next
cp Makefile .goreleaser.yaml $next
sed '1s/.*/# Configuration of the next version./' packaging/config.yml >$next/packaging/config.yml
make -C $next package VERSION=9999.0.0 RELEASE="$PWD/dist/bin" >$test/log 2>&1 || { cat $test/log && exit 1; }
CGO_ENABLED=0 go build -buildvcs=false -o $test/simulator ./cmd/simulator

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
for script in source.sh deb.sh rpm.sh; do
  step "$script"
  "${as_root[@]}" packaging/test/boot.sh "$script"
done
