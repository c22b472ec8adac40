#!/usr/bin/env bash
# Runs the tests that need other programs twice, at the same time: with the installed
# programs (in CI Debian's), and with the current ones of tools/bin. What does not depend on
# their version runs once. Prints a table.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
current=$PWD/tools/bin

go test -c -tags e2e -o "$work/e2e.test" .
go test -c -o "$work/" ../alerts ../dashboards

# run COLUMN PATH runs the tests with the programs of a path. They mostly wait, so many run
# in parallel.
run() {
  export PATH=$2
  local result=0
  for program in prometheus prometheus-alertmanager amtool; do
    "$program" --version 2>&1 | awk 'NR == 1 { sub(",", "", $1); print "--- " $3 ": " $1 }'
  done
  echo "--- $(victoria-metrics --version): VictoriaMetrics"
  local once=
  [ "$1" = installed ] || once='TestDocumentedCommands|TestMonth'
  "$work/e2e.test" -test.v -test.skip "$once" -test.parallel 8 -test.timeout 20m || result=1
  if [ "$1" = current ]; then # make test-deploy runs them with the installed programs
    "$work/alerts.test" -test.v -test.run 'TestPromtool|TestAmtool|TestMessages' -test.timeout 20m || result=1
    "$work/dashboards.test" -test.v -test.run TestStates -test.timeout 20m || result=1
  fi
  return $result
} >"$work/$1" 2>&1

run installed "$PATH:$current" &
installed=$!
run current "$current:$PATH" &
failed=0
wait $! || failed=1
wait $installed || failed=1

for column in installed current; do
  if grep -q '^--- FAIL\|^panic:' "$work/$column"; then
    echo "With the $column programs:"
    cat "$work/$column"
  fi
done
awk '
  /^--- / { result = $2; sub(":$", "", result); if (!($3 in cell)) order[++n] = $3; cell[$3] = 1; cell[$3, FILENAME] = result }
  END {
    printf "%-32s %-12s %s\n", "", "installed", "current"
    for (i = 1; i <= n; i++) printf "%-32s %-12s %s\n", order[i], cell[order[i], ARGV[1]], cell[order[i], ARGV[2]]
  }' "$work/installed" "$work/current"
count() { cat "$work/installed" "$work/current" | grep -c "^--- $1:" || true; }
echo "$(count PASS) passed, $(count FAIL) failed"
exit $failed
