#!/usr/bin/env bash
# Prints the licences and notices of everything that the released programs are linked
# with, each text once.
set -euo pipefail
cd "$(dirname "$0")/.."

modules() { # path, tab, directory
  local os
  for os in linux darwin windows freebsd; do
    GOOS=$os go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}}{{"\t"}}{{.Dir}}{{end}}{{end}}' .
  done | LC_ALL=C sort -u
}

declare -A users # modules, by the checksum of a text
declare -A file  # one of the files with the text, likewise
order=()
add() { # name, directory
  local found=0 f sum
  for f in "$2"/{LICENSE,LICENCE,COPYING,NOTICE}*; do
    [ -f "$f" ] || continue
    found=1
    read -r sum _ < <(tr -d '\r' <"$f" | sha256sum)
    if [ -z "${file[$sum]:-}" ]; then
      order+=("$sum")
      file[$sum]=$f
    fi
    users[$sum]+="  $1"$'\n'
  done
  if [ "$found" = 0 ]; then
    echo "$1: no licence in $2" >&2
    return 1
  fi
}

add "Go's standard library (https://go.dev)" "$(go env GOROOT)"
while IFS=$'\t' read -r path dir; do
  add "$path" "$dir"
done < <(modules)

echo "server_rental_exporter is linked with the following. Its own licence is in LICENSE."
for sum in "${order[@]}"; do
  printf '\n%s\n%s\n%s\n\n' "$(printf '=%.0s' {1..80})" "${users[$sum]%$'\n'}" "$(printf -- '-%.0s' {1..80})"
  tr -d '\r' <"${file[$sum]}"
done
