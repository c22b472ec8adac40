// Builds queries, which all follow three rules:
//
//  1. every selector matches $job and $instance;
//  2. every selector is aggregated over job and instance, so that two exporters of the
//     same provider show everything once;
//  3. an _info metric on the one side of a join is reduced to one series, so that the join
//     works even while two exporters differ for a minute.

const prefix = 'server_rental_';

/** Matchers of every selector. */
const everywhere = ['job=~"$job"', 'instance=~"$instance"'];

/** Matchers of the variables. They match only series with the label. */
export const account = 'account=~"$account"';
export const location = 'location=~"$location"';
export const plan = 'plan=~"$plan"';

/** Also matches public collectors, which have no account and belong to every choice. */
export const accountOrPublic = 'account=~"$account|"';

/**
 * A selector of an exporter metric with the matchers of every query.
 * @param {string} metric without the prefix
 * @param {...string} matchers
 */
export function own(metric, ...matchers) {
  return foreign(prefix + metric, ...matchers);
}

/** @param {string} metric @param {...string} matchers */
function foreign(metric, ...matchers) {
  return `${metric}{${[...everywhere, ...matchers].join(', ')}}`;
}

/**
 * One series per exporter of a metric that other programs export too, such as process_*.
 * If all jobs are chosen, the matchers alone would select all targets of Prometheus.
 * @param {string} metric
 * @param {(selector: string) => string} [use] makes the expression from the selector
 */
export function perExporter(metric, use = (selector) => selector) {
  return `max by (instance) (${use(foreign(metric))} and on (job, instance) ${own('exporter_build_info')})`;
}

/** Whether exporters are up. An exporter that is down counts if it exported within a day. */
export const exportersUp = `max by (instance) (${foreign('up')} and on (job, instance) last_over_time(${own('exporter_build_info')}[1d]))`;

/**
 * One series for each value of the labels, of any exporter.
 * @param {string} labels comma-separated; empty for a single series
 * @param {string} expr
 */
export function max(labels, expr) {
  return labels ? `max by (${labels}) (${expr})` : `max(${expr})`;
}

/**
 * A zero where an expression has nothing to count but the exporter has the data: nothing is
 * not the same as no data.
 * @param {string} expr
 * @param {string} known has data whenever the exporter has it, with the labels of expr
 */
export const orZero = (expr, known) => `${expr} or 0 * ${known}`;

/**
 * One info series for each value of the key, with the labels to show.
 * @param {string} key the labels that identify it
 * @param {string} labels the labels to show
 * @param {string} selector
 */
export function info(key, labels, selector) {
  return `topk by (${key}) (1, max by (${key}, ${labels}) (${selector}))`;
}

/**
 * Prices are one metric per currency; this selects that of the chosen one.
 * @param {'plan'|'configuration'} of @param {...string} matchers
 */
export const price = (of, ...matchers) => `{${[`__name__=~"server_rental_${of}_price_\${currency}_per_month"`, ...everywhere, ...matchers].join(', ')}}`;

/** Where subqueries are, without their range: each with its first and last parenthesis. @param {string} expr */
function subqueries(expr) {
  /** @type {number[]} */
  const open = [];
  /** @type {{first: number, last: number}[]} */
  const all = [];
  for (let i = 0; i < expr.length; i++) {
    if (expr[i] === '(') open.push(i);
    if (expr[i] !== ')') continue;
    const first = open.pop() ?? 0;
    if (expr[i + 1] === '[') all.push({ first, last: i });
  }
  return all;
}

/**
 * What was known at the end of the time range or, while no exporter is scraped, at the last
 * scrape: at each step, whenever that is.
 * @param {string} expr
 */
export function atEnd(expr) {
  const within = subqueries(expr);
  // A selector is at the times of the subquery that it is in.
  return expr.replaceAll(/(?:[})]\[[^\]]+\]|\}(?![[\w]))(?! @)/g, (end, i) => end + (within.some(({ first, last }) => first < i && i < last) ? '' : ' @ $at'));
}

/** An expression as of the last whole minute of the time range, at each step. @param {string} expr @param {'start()' | '$at'} [of] */
export const pinned = (expr, of = '$at') => `last_over_time((${expr})[1m:1m] @ ${of})`;
export const pinnedNow = (/** @type {'start()' | '$at'} */ of) => `scalar(${pinned('vector(time())', of)})`;

/**
 * Keeps the servers of the chosen plans and locations.
 * @param {string} expr one series for each account and server
 */
export function chosenServers(expr) {
  return `${expr} and on (account, server) ${own('server_info', account, plan, location)}`;
}

/**
 * Keeps the servers that are billed: all but those whose status means an end.
 * @param {string} expr one or more series for each account and server
 */
export function billed(expr) {
  return `${expr} unless on (account, server) ${own('server_status', 'status=~"(?i)(canceled|cancelled|terminated|deleted|expired)"')}`;
}

const day = 86400;
/** The beginning of the current day in UTC, as a scalar. */
export const today = `scalar(floor(vector(time() / ${day}))) * ${day}`;

/** The current month and the two after it, by a day near the middle of each: its first day, and its number of days. */
const months = ['this month', 'next month', 'the month after'].map((name, i) => {
  const middle = `(vector(${today} + ${30 * i} * ${day}) - (day_of_month() - 15) * ${day})`;
  return { name, start: `(${middle} - (day_of_month(${middle}) - 1) * ${day})`, days: `days_in_month(${middle})` };
});

/**
 * The dates of all renewals until some days after today (UTC), with the label renewal: one
 * of today or earlier once, on its own date, and every monthly one after today. The 31st is
 * the last day of a shorter month. The recording rules and the exporter count the same way.
 * @param {string} renews the next renewal of each account and server
 * @param {number} days
 */
export function renewalDates(renews, days) {
  const named = (/** @type {string} */ expr, /** @type {string} */ name) => `label_replace(${expr}, "renewal", "${name}", "", "")`;
  const monthly = months.map(({ name, start, days: length }) => {
    const begun = `(${renews} < scalar(${start} + ${length} * ${day}))`;
    return named(`((clamp_max(day_of_month${begun}, scalar(${length})) - 1) * ${day} + scalar(${start}) > ${today} <= ${today} + ${days} * ${day})`, name);
  });
  return `(${[named(`(${renews} < ${today} + ${day})`, 'due'), ...monthly].join(' or ')})`;
}

/** Prometheus timestamps are in seconds, Grafana's date units in milliseconds. */
export const milliseconds = (/** @type {string} */ expr) => `${expr} * 1000`;

/**
 * Keeps the few series that were the lowest at some time of the range, so that a chart is
 * readable with a thousand accounts.
 * @param {number} count @param {string} by @param {string} expr one series for each value of by @param {string} lowest its lowest value in the range
 */
export const lowest = (count, by, expr, lowest) => `${expr} and on (${by}) bottomk(${count}, ${lowest})`;

// Collectors, which every dashboard shows in short.

export const collector = 'collector, account';
export const collectorSuccess = own('exporter_collector_success', accountOrPublic);
export const succeeded = `min by (${collector}) (${collectorSuccess})`;
const lastSuccess = own('exporter_collector_last_success_timestamp_seconds', accountOrPublic);
/** When the provider made the data, as the recording rule of the alert of stale data counts it. */
const dataTime = `(${lastSuccess} - ${own('exporter_collector_response_age_seconds', accountOrPublic, 'collector!="status"')} or on (${collector}, job, instance) ${lastSuccess})`;
export const interval = max(collector, own('exporter_collector_interval_seconds', accountOrPublic));

/**
 * Age of a collector's data, when it was scraped, at the exporter with the freshest data. The
 * time of a scrape is that of one series, because older versions of Prometheus are slow to tell it.
 */
export const age = `min by (${collector}) (max by (job, instance) (timestamp(${own('exporter_build_info')})) - on (job, instance) group_right () ${dataTime})`;
export const intervals = `(${age}) / on (${collector}) ${interval}`;

/** The age of data that was never fetched: older than all others. */
export const never = 1e9;
export const neverFetched = `0 * ${interval} + ${never}`;

/** The accounts of the configuration, also those without data. */
export const accounts = max('account', own('exporter_collector_interval_seconds', 'account!=""', account));

const builds = own('exporter_build_info');

/**
 * The label at: the end of the time range or, if no exporter was scraped at some minute of the
 * last hour, the last scrape within a day. The end of a chart's steps can be an hour ago.
 */
export const lastScrape = `count_values("at", floor(max(max_over_time(timestamp(${builds})[1d:1m])))) unless on () count_over_time((max(${builds}))[1h:1m]) > 58 or on () label_replace(vector(1), "at", "end()", "", "")`;

/** Ten more if what was known at $at is older than what Prometheus takes as current, for a colour of its own. @param {string} expr */
export const orLast = (expr) => `(${expr}) + 10 * scalar(time() - max(timestamp(${builds})) > bool 300)`;

/** One series if no account is configured. */
export const noAccounts = `0 * ${max('', own('exporter_build_info'))} unless on () ${accounts}`;

/** Says that no account is configured at the end, in a label. @param {string} expr @param {string} label */
export const orNoAccounts = (expr, label) => `(${expr}) or on () label_replace(${atEnd(noAccounts)}, "${label}", "no accounts configured", "", "")`;

/**
 * Whether the API accepted each account's token: 1 is rejected, 0 accepted, 0.5 not known, 10
 * more what was last known, and -1 that there is no account.
 */
export const tokens = atEnd(orLast(`${max('account', own('exporter_api_token_rejected', account))} or 0 * ${accounts} + 0.5`)
  + ` or on () label_replace((${noAccounts}) - 1, "account", "None configured", "", "")`);
