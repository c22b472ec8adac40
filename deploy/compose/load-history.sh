#!/bin/sh
# Fills an empty Prometheus with a month of the simulated provider's past, so that the
# dashboards show something at once. It does nothing where that was done before.
# Usage: load-history.sh DATA_DIRECTORY RULE_FILE...
# DAYS is the length of the history, 30 by default; END its end as a Unix timestamp;
# LISTEN the address of a Prometheus that runs meanwhile.
set -eu

data=$1
shift
days=${DAYS:-30}
end=${END:-$(date +%s)}
listen=${LISTEN:-127.0.0.1:9099}
work=$data/history.tmp

if [ -e "$data/history-loaded" ]; then
  echo "the history is loaded already"
  exit
fi
rm -rf "$work"
mkdir -p "$work/rules"

echo "generating $days days"
simulator history --days="$days" --end="$end" --output="$work/history.om"

# Larger blocks than usual: promtool reads the whole file for each.
echo "creating blocks"
promtool tsdb create-blocks-from openmetrics --quiet --max-block-duration=486h "$work/history.om" "$work/samples"
rm "$work/history.om"

# promtool evaluates rules by queries to a Prometheus, which does not see the results.
# So those of rules that use the results of others are complete after the second round, and
# only that counts. Prometheus gets a copy, because it rearranges its blocks.
: >"$work/prometheus.yml"
server=
trap '[ -z "$server" ] || kill "$server"' EXIT
for round in 1 2; do
  echo "evaluating recording rules, round $round of 2"
  cp -r "$work/samples" "$work/tsdb"
  cp -r "$work/rules/." "$work/tsdb"
  prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" \
    --storage.tsdb.retention.time=100y --web.listen-address="$listen" --log.level=error &
  server=$!
  until promtool query instant "http://$listen" 'vector(1)' >"$work/ready" 2>&1; do
    kill -0 "$server"
    sleep 1
  done
  rm -r "$work/rules"
  promtool tsdb create-blocks-from rules --quiet --url="http://$listen" --start="$((end - days * 86400))" --end="$end" \
    --eval-interval=3m --max-block-duration=486h --output-dir="$work/rules" "$@"
  kill "$server"
  wait "$server" || true
  server=
  rm -r "$work/tsdb"
done

mv "$work"/samples/* "$work"/rules/* "$data"
rm -r "$work"
echo "$end" >"$data/history-loaded"
echo "the history is loaded"
