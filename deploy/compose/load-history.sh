#!/bin/sh
# Fills an empty Prometheus with a month of the simulated provider's past, so that the
# dashboards show something at once. It does nothing where that was done before.
# Usage: load-history DATA_DIRECTORY RULE_FILE...
# DAYS is the length of the history; 30 by default.
set -eu

data=$1
shift
loaded=$data/history-loaded
work=$data/history.tmp
listen=127.0.0.1:9099

if [ -e "$loaded" ]; then
  echo "the history has been loaded before"
  exit
fi
rm -rf "$work"
mkdir -p "$work/tsdb"

# The end is the start of the next step: recording rules are evaluated up to there.
end=$(date +%s)
start=$((end - ${DAYS:-30} * 86400))
echo "generating ${DAYS:-30} days"
simulator history --days="${DAYS:-30}" --end="$end" --output="$work/history.om"

# Larger blocks than usual: promtool reads the whole file for each.
echo "creating blocks"
promtool tsdb create-blocks-from openmetrics --quiet --max-block-duration=486h "$work/history.om" "$work/tsdb"
rm "$work/history.om"

# promtool evaluates rules by queries to a Prometheus, which does not see the results.
# So rules that use the results of others come in a later round.
: > "$work/prometheus.yml"
for round in 1 2 3; do
  echo "evaluating recording rules, round $round of 3"
  prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" \
    --storage.tsdb.retention.time=100y --web.listen-address="$listen" --log.level=error &
  server=$!
  until promtool query instant "http://$listen" 'vector(1)' >/dev/null 2>&1; do
    kill -0 "$server"
    sleep 1
  done
  promtool tsdb create-blocks-from rules --quiet --url="http://$listen" --start="$start" --end="$end" \
    --eval-interval=4m --max-block-duration=486h --output-dir="$work/tsdb" "$@"
  kill "$server"
  wait "$server" || true
done

# Blocks are directories whose names begin with the time of their creation.
mv "$work"/tsdb/0* "$data"
rm -rf "$work"
date > "$loaded"
echo "the history is loaded"
