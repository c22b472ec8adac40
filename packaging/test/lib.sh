# shellcheck shell=bash
# Functions of the scripts that run under boot.sh.
set -euo pipefail
trap 'echo "failed at line $LINENO: $BASH_COMMAND"; journalctl --no-pager --output=cat --unit=server_rental_exporter --lines=30' ERR
set -E

# shellcheck disable=SC2034 # used by the scripts that read this file
packages=/run/repository/dist/release
# shellcheck disable=SC2034
test=/run/repository/dist/packages-test
unit=server_rental_exporter.service
config=/etc/server_rental_exporter/config.yml

step() { printf -- '-- %s\n' "$*"; }

# same GOT WANT compares two texts.
same() { [ "$1" = "$2" ] || { echo "$1, not $2" && return 1; }; }

# refused COMMAND... asserts that the command fails.
refused() {
  if "$@"; then
    echo "should have failed: $*"
    return 1
  fi
}

# eventually COMMAND... waits until the command succeeds.
eventually() {
  local i
  for ((i = 0; i < 300; i++)); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  echo "did not happen: $*"
  return 1
}

# is PROPERTY VALUE compares a property of the service.
is() { same "$1=$(systemctl show --property="$1" --value "$unit")" "$1=$2"; }

# logged TEXT looks for a line in the service's log since it was last asked to start. Lines of
# a process that ends at once can lack the id of its start: of these, the last ten seconds count.
logged() {
  local invocation
  invocation=$(systemctl show --property=InvocationID --value "$unit")
  journalctl --sync
  grep --fixed-strings --quiet -- "$1" <(
    journalctl --no-pager --output=cat "_SYSTEMD_INVOCATION_ID=$invocation" || true
    journalctl --no-pager --output=cat --unit="$unit" --since=-10s || true
  )
}

# scraped LINE looks for a line in the metrics.
scraped() { grep --fixed-strings --quiet -- "$1" <(curl --silent --fail http://127.0.0.1:10170/metrics || true); }

# options FLAGS sets the flags of the service.
options() { sed -i "s|^OPTIONS=.*|OPTIONS=\"$1\"|" "${environment:?}"; }

# says_what_to_set asserts that the service as installed refuses to start, says why,
# and is not restarted.
says_what_to_set() {
  refused systemctl enable --now "$unit"
  is SubState failed
  eventually logged "$config: api.base_url: missing or invalid URL: must be http or https, like https://rental.example/api/v1"
}

# serves_demo starts the service as installed, with --demo.
serves_demo() {
  options --demo
  systemctl restart "$unit"
  eventually scraped 'server_rental_exporter_collector_success{account="main",collector="servers"} 1'
  scraped 'server_rental_exporter_build_info{'
  scraped 'process_start_time_seconds ' # needs more of /proc than ProcSubset=pid leaves
}

# documented FIRST prints the block of commands of the service's document whose first line begins so,
# for root.
documented() {
  awk -v first="$1" '/^ *```/ {on = 0} on || index($0, "   " first) == 1 || index($0, first) == 1 {on = 1; print}' /run/repository/deploy/systemd/README.md |
    sed 's/^   \([^ ]\)/\1/; s/sudo //'
}
