#!/usr/bin/env bash
# Tests the packages of dist/packages: contents, and their life on a machine. Needs
# root or sudo.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=dist/packages
nfpm=$(sed -n 's/^nfpm=//p' packaging/build.sh)
mkdir -p $dir/build/next

step() { printf -- '-- %s\n' "$*"; }

step lintian
lintian --allow-root --fail-on error,warning $dir/*.deb

step "architecture of the programs"
# machine ARCHITECTURE reads the machine of an ELF header from standard input.
machine() { [ "$(od -An -tx2 --endian=little -j18 -N2 && cat >/dev/null)" = " $1" ]; }
dpkg-deb --fsys-tarfile $dir/*_amd64.deb | tar -xO ./usr/bin/server_rental_exporter | machine 003e
dpkg-deb --fsys-tarfile $dir/*_arm64.deb | tar -xO ./usr/bin/server_rental_exporter | machine 00b7
# rpm2cpio compares a size that nfpm does not write, and fails after it has written all.
{ rpm2cpio $dir/*.x86_64.rpm || true; } | cpio --quiet --to-stdout -i /usr/bin/server_rental_exporter | machine 003e
{ rpm2cpio $dir/*.aarch64.rpm || true; } | cpio --quiet --to-stdout -i /usr/bin/server_rental_exporter | machine 00b7

step "contents of the rpm"
contents=$(
  for file in docs/*.md alerts/README.md; do echo "/usr/share/doc/server-rental-exporter/$file"; done
  for file in example.yml alertmanager.yml receivers.example.yml; do
    echo "/usr/share/doc/server-rental-exporter/examples/$file"
  done
  for file in alerts/*.rules.yml; do echo "/usr/share/server_rental_exporter/rules/${file##*/}"; done
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
bash -n $dir/build/completion.bash
zsh -n $dir/build/completion.zsh

# The next version has another configuration file.
sed '1s/.*/# Configuration of the next version./' packaging/config.yml >$dir/build/next/config.yml
sed "s|src: packaging/config.yml|src: $dir/build/next/config.yml|" packaging/nfpm.yaml >$dir/build/next/nfpm.yaml
for packager in deb rpm; do
  ARCH=$(go env GOARCH) VERSION=9999.0.0 BUILD=$dir/build go run "$nfpm" package \
    --config $dir/build/next/nfpm.yaml --packager "$packager" --target $dir/build/next
done
CGO_ENABLED=0 go build -buildvcs=false -o $dir/build/simulator ./cmd/simulator

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
for script in deb.sh rpm.sh; do
  step "$script"
  "${as_root[@]}" packaging/test/boot.sh "$script"
done
