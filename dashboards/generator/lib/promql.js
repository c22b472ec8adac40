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

/** The end of the time range. end() is that of a chart's steps, which can be hours earlier. */
export const end = '${__to:date:seconds}';

/**
 * The time of what is shown, by the variable that lastKnown() sets: a sign while there is data,
 * so that it is the end, and does not change; else a time, of which the end is the fraction.
 * @param {string} of
 */
const moment = (of) => `\${${of}}${end}`;

/**
 * What was known at the end of the time range or, while it is not known, at the last time at
 * which it was: at each step, whenever that is.
 * @param {string} expr @param {string} [of] the variable of that time
 */
export function atEnd(expr, of = 'at') {
  const within = subqueries(expr);
  // Braces are those of selectors or of variables. A selector is at the times of the subquery that it is in.
  return expr.replaceAll(/(?:[})]\[[^\]]+\]|(?<!\$\{[\w:]+)\}(?![[\w]))(?! @)/g, (found, i) => found + (within.some(({ first, last }) => first < i && i < last) ? '' : ` @ ${moment(of)}`));
}

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

/** Components whose present state says maintenance, which is no outage. */
export const inMaintenance = own('component_state', location, 'state=~"(?i).*maintenance.*"');

/** What rules record while an exporter is scraped: without it, their other results say nothing. */
export const ruled = 'collector_account:server_rental_exporter_collector_data_timestamp_seconds:max';

/**
 * A -1 if there are no recording rules: none of their results within the range.
 * @param {string} expr @param {string} recorded what they always record @param {string} [label] that says so
 */
export const orNeedsRules = (expr, recorded, label = '') => `${expr} or on () ${label && 'label_replace('}0 * ${max('', own('exporter_build_info'))} - 1`
  + ` unless on () last_over_time(${recorded}[$__range] @ end())${label && `, "${label}", "needs the recording rules", "", "")`}`;

/** The age of data that was never fetched: older than all others. */
export const never = 1e9;
export const neverFetched = `0 * ${interval} + ${never}`;

/** The accounts of the configuration, also those without data. */
export const accounts = max('account', own('exporter_collector_interval_seconds', 'account!=""', account));

const builds = own('exporter_build_info');

/**
 * What tells whether, and so when last, something is known: stock, saved configurations, and
 * what only an exporter's process tells.
 */
export const known = { status: own('status_info'), plans: own('catalog_plans'), accounts: own('account_balance_usd'), saved: own('configurations'), exporter: builds };

/** The time of the last sample within a day: of the last ten minutes to 15 seconds, and before to a minute. @param {string} selector */
const lastTime = (selector) => `max(max_over_time(timestamp(${selector})[10m:15s]) or max_over_time(timestamp(${selector})[1d:1m]))`;

/** The label at, for moment(). The time is after that of the sample, and before the next scrape. @param {string} selector */
export const lastKnown = (selector) => `label_replace(count_values("at", ceil(${lastTime(selector)})), "at", "$1.", "at", "(.+)") unless on () ${selector} or on () label_replace(vector(1), "at", "+", "", "")`;

/** Ten more if it is what was last known, for a colour of its own. @param {string} expr @param {string} [selector] one of those of known */
export const orLast = (expr, selector = builds) => `(${expr}) + scalar(0 * max(${selector} @ ${end}) or vector(10))`;

/**
 * Since when what a dashboard shows is not renewed, and the reason in the label state.
 * @param {string} collector whose data the dashboard needs
 */
export function dataState(collector) {
  const says = (/** @type {string} */ text, /** @type {string} */ expr) => `label_replace(${expr}, "state", "${text}", "", "")`;
  const metric = (/** @type {string} */ name) => own(`exporter_collector_${name}`, `collector="${collector}"`);
  const failing = `${max('account', metric('success'))} == 0`;
  const last = metric('last_success_timestamp_seconds');
  const since = `((${max('account', `${last} or max_over_time(${last}[1d:5m])`)} or on (account) 0 * ${failing} + scalar(max(${own('exporter_config_last_reload_success_timestamp_seconds')}))) and on (account) ${failing})`;
  return `${says('Up to date', `max(timestamp(${builds})) unless on () ${failing}`)}`
    + ` or on () ${says('The provider fails since', `max(${since}) unless on () ${metric('success')} == 1`)}`
    + ` or on () ${says('An account fails since', `min(${since})`)}`
    + ` or on () ${says('The exporter is down since', lastTime(builds))}`;
}

/** One series if no account is configured. */
export const noAccounts = `0 * ${max('', own('exporter_build_info'))} unless on () ${accounts}`;

/** Says that no account is configured at the end, in a label. @param {string} expr @param {string} label */
export const orNoAccounts = (expr, label) => `(${expr}) or on () label_replace(${atEnd(noAccounts)}, "${label}", "no accounts configured", "", "")`;

/**
 * Whether the API accepted each account's token: 1 is rejected, 0 accepted, 0.5 not known, 10
 * more what was last known while no exporter is up, and -1 that there is no account.
 */
const rejected = own('exporter_api_token_rejected', account);
export const tokens = (`${max('account', rejected)} or on (account) 0 * ${accounts} + 0.5 or on (account) ${max('account', `last_over_time(${rejected}[1d])`)} + 10 unless on () ${builds}`
  + ` or on () label_replace((${noAccounts}) - 1, "account", "None configured", "", "")`).replaceAll(/\}(\[\w+\])?/g, '$& @ end()');
