#!/bin/sh
# Fills an empty Prometheus with a month of the simulated provider's past, so that the
# dashboards show something at once. It does nothing if that was done before.
# Usage: load-history.sh DATA_DIRECTORY STOCK_RULE_FILE
# DAYS is the length of the history, 30 by default; END its end as a Unix timestamp;
# LISTEN the address of a Prometheus that runs meanwhile.
set -eu

data=$1
rules=$2
days=${DAYS:-30}
end=${END:-$(date +%s)}
listen=${LISTEN:-127.0.0.1:9099}
work=$data/history.tmp

if [ -e "$data/history-loaded" ]; then
  echo "the history is loaded already"
  exit
fi
rm -rf "$work"
mkdir -p "$work"

# promtool evaluates each rule without the results of the others, so the samples of the first group of recording rules, which
# the second group averages, are made here. It would also store alerts, as series with their names.
echo groups: >"$work/rules.yml"
sed -n '/name: server_rental_stock_averages/,$p' "$rules" >>"$work/rules.yml"

echo "generating $days days"
simulator history --days="$days" --end="$end" |
  awk '
    { print }
    /^server_rental_plan_in_stock/ {
      match($1, /plan="[^"]*"/)
      plan = "{" substr($1, RSTART, RLENGTH) "}"
      print "plan:server_rental_plan_in_stock:max" plan, $2, $3
      if (plan in last && $2 != last[plan]) {
        if (plan in changed) print "plan:server_rental_plan_" ($2 ? "away" : "stay") "_seconds:last" plan, $3 - changed[plan], $3
        print "plan:server_rental_plan_in_stock:changed" plan, $3, $3
        changed[plan] = $3
      }
      last[plan] = $2
    }
    /^server_rental_configuration_in_stock/ {
      match($1, /account="[^"]*",configuration="[^"]*"/)
      print "account_configuration:server_rental_configuration_in_stock:max{" substr($1, RSTART, RLENGTH) "}", $2, $3
    }' >"$work/history.om"

# Larger blocks than usual: promtool reads the whole file for each.
echo "creating blocks"
promtool tsdb create-blocks-from openmetrics --quiet --max-block-duration=486h "$work/history.om" "$work/samples"
rm "$work/history.om"

# Prometheus gets a copy, because it rearranges its blocks.
echo "evaluating recording rules"
: >"$work/prometheus.yml"
cp -rl "$work/samples" "$work/tsdb"
prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" \
  --storage.tsdb.retention.time=100y --web.listen-address="$listen" --log.level=error &
server=$!
trap 'kill "$server"' EXIT
until promtool query instant "http://$listen" 'vector(1)' >"$work/ready" 2>&1; do
  kill -0 "$server"
  sleep 1
done
promtool tsdb create-blocks-from rules --quiet --url="http://$listen" --start="$((end - days * 86400))" --end="$end" \
  --max-block-duration=486h --output-dir="$work/results" "$work/rules.yml"
kill "$server"
wait "$server" || true
trap - EXIT

mv "$work"/samples/* "$work"/results/* "$data"
rm -r "$work"
echo "$end" >"$data/history-loaded"
echo "the history is loaded"
