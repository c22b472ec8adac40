// Builds queries. Every selector matches $job and $instance and is aggregated over them, so that
// two exporters of the same provider show everything once. An _info metric on the one side of a
// join is reduced to one series, so that the join works even while they differ for a minute.

const everywhere = ['job=~"$job"', 'instance=~"$instance"'];

/** Matchers of the variables. They match only series with the label. */
export const account = 'account=~"$account"';
export const location = 'location=~"$location"';
export const plan = 'plan=~"$plan"';
/** Also matches public collectors, which have no account and belong to every choice. */
export const accountOrPublic = 'account=~"$account|"';

const selector = (metric: string, ...matchers: string[]) => `${metric}{${[...everywhere, ...matchers].join(', ')}}`;

/** A selector of a metric of the exporter, without its prefix. */
export const own = (metric: string, ...matchers: string[]) => selector(`server_rental_${metric}`, ...matchers);
/** Prices are one metric per currency; this selects that of the chosen one. */
export const price = (of: 'plan' | 'configuration', ...matchers: string[]) => `{${[`__name__=~"server_rental_${of}_price_\${currency}_per_month"`, ...everywhere, ...matchers].join(', ')}}`;

/** One series for each value of the labels, of any exporter. */
export const max = (labels: string, expr: string) => (labels ? `max by (${labels}) (${expr})` : `max(${expr})`);
/** One info series for each value of the labels of the key, with the labels to show. */
export const info = (key: string, labels: string, expr: string) => `topk by (${key}) (1, ${max(`${key}, ${labels}`, expr)})`;

export const labelled = (expr: string, label: string, text: string) => `label_replace(${expr}, "${label}", "${text}", "", "")`;

/** A series whose label says that there is nothing, which is not the same as no data. */
export const orSays = (expr: string, label: string, text: string) => ` or on () ${labelled(expr, label, text)}`;
/** A zero where there is nothing to count but known has data. */
export const orZero = (expr: string, known: string) => `${expr} or 0 * ${known}`;

/** Prometheus timestamps are in seconds, Grafana's date units in milliseconds. */
export const milliseconds = (expr: string) => `${expr} * 1000`;

export const builds = own('exporter_build_info');
/** A zero if an exporter is scraped. */
export const scraped = `0 * ${max('', builds)}`;

/**
 * One series per exporter of a metric that other programs export too, such as process_*.
 * If all jobs are chosen, the matchers alone would select all targets of Prometheus.
 */
export const perExporter = (metric: string, use = (expr: string) => expr) => `max by (instance) (${use(selector(metric))} and on (job, instance) ${builds})`;

/** Whether exporters are up. An exporter that is down counts if it exported within a day. */
export const exportersUp = `max by (instance) (${selector('up')} and on (job, instance) last_over_time(${builds}[1d]))`;

/** The end of the time range. end() is that of a chart's steps, which can be hours earlier. */
export const end = '${__to:date:seconds}';

export const day = 86400;
/** The beginning of the current day in UTC, as a scalar. */
export const today = `scalar(floor(vector(time() / ${day}))) * ${day}`;

/** What tells whether, and so when last, something is known; exporter: what only its process tells. */
export const known = { status: own('status_info'), plans: own('catalog_plans'), accounts: own('account_balance_usd'), saved: own('configurations'), exporter: builds };

/** The time of the last sample within a day: of the last ten minutes to 15 seconds, before to a minute. */
const lastTime = (expr: string) => `max(max_over_time(timestamp(${expr})[10m:15s]) or max_over_time(timestamp(${expr})[1d:1m]))`;

/**
 * The label at: a sign while there is data, so that it does not change and the end follows;
 * else the time of the last data in seconds, of which the end is the fraction.
 */
export const lastKnown = (expr: string) => `label_replace(count_values("at", ceil(${lastTime(expr)})), "at", "$1.", "at", "(.+)") unless on () ${expr}${orSays('vector(1)', 'at', '+')}`;

/** The first and last parenthesis of each subquery. */
function subqueries(expr: string) {
  const open: number[] = [];
  const all: { first: number, last: number }[] = [];
  for (let i = 0; i < expr.length; i++) {
    if (expr[i] === '(') open.push(i);
    if (expr[i] !== ')') continue;
    const first = open.pop() ?? 0;
    if (expr[i + 1] === '[') all.push({ first, last: i });
  }
  return all;
}

/** What was known, at each step, at the end of the time range or at the last time before at which it was, by the variable of that time. */
export function atEnd(expr: string, variable = 'at') {
  const within = subqueries(expr);
  // Braces are those of selectors or of variables. A selector is at the times of the subquery that it is in.
  return expr.replaceAll(/(?:[})]\[[^\]]+\]|(?<!\$\{[\w:]+)\}(?![[\w]))(?! @)/g, (found, i) => found + (within.some(({ first, last }) => first < i && i < last) ? '' : ` @ \${${variable}}${end}`));
}

/** Ten more if it is what was last known, for a colour of its own; by one of those of known. */
export const orLast = (expr: string, by = builds) => `(${expr}) + scalar(0 * max(${by} @ ${end}) or vector(10))`;

/** Keeps the servers of the chosen plans and locations. */
export const chosenServers = (expr: string) => `${expr} and on (account, server) ${own('server_info', account, plan, location)}`;
/** Keeps the servers that are billed: all but those whose status means an end. */
export const billed = (expr: string) => `${expr} unless on (account, server) ${own('server_status', 'status=~"(?i)(canceled|cancelled|terminated|deleted|expired)"')}`;

/** The current month and the two after it, by a day near the middle of each: its first day, and its number of days. */
const months = ['this month', 'next month', 'the month after'].map((name, i) => {
  const middle = `(vector(${today} + ${30 * i} * ${day}) - (day_of_month() - 15) * ${day})`;
  return { name, start: `(${middle} - (day_of_month(${middle}) - 1) * ${day})`, length: `days_in_month(${middle})` };
});

/**
 * The dates of all renewals, by the next one of each server, until some days after today (UTC):
 * one of today or earlier once, on its own date, and every monthly one after today. The 31st is
 * the last day of a shorter month. The recording rules and the exporter count the same way.
 */
export function renewalDates(renews: string, days: number) {
  const monthly = months.map(({ name, start, length }) => {
    const begun = `(${renews} < scalar(${start} + ${length} * ${day}))`;
    return labelled(`((clamp_max(day_of_month${begun}, scalar(${length})) - 1) * ${day} + scalar(${start}) > ${today} <= ${today} + ${days} * ${day})`, 'renewal', name);
  });
  return `(${[labelled(`(${renews} < ${today} + ${day})`, 'renewal', 'due'), ...monthly].join(' or ')})`;
}

export const collector = 'collector, account';
export const succeeded = `min by (${collector}) (${own('exporter_collector_success', accountOrPublic)})`;
export const lastSuccess = own('exporter_collector_last_success_timestamp_seconds', accountOrPublic);
/** Since when there can be no data without a success. */
export const reloaded = `scalar(max(${own('exporter_config_last_reload_success_timestamp_seconds')}))`;
/** When the provider made the data, as the recording rule of the alert of stale data counts it. */
const dataTime = `(${lastSuccess} - ${own('exporter_collector_response_age_seconds', accountOrPublic, 'collector!="status"')} or on (${collector}, job, instance) ${lastSuccess})`;
export const interval = max(collector, own('exporter_collector_interval_seconds', accountOrPublic));

/**
 * Age of a collector's data, when it was scraped, at the exporter with the freshest data. The
 * time of a scrape is that of one series, because older versions of Prometheus are slow to tell it.
 */
export const age = `min by (${collector}) (max by (job, instance) (timestamp(${builds})) - on (job, instance) group_right () ${dataTime})`;

/** The age of data that was never fetched: older than all others. */
export const never = 1e9;
export const intervals = `(${age}) / on (${collector}) ${interval} or 0 * ${interval} + ${never}`;

/** What rules record while an exporter is scraped: without it, their other results say nothing. */
export const ruled = 'collector_account:server_rental_exporter_collector_data_timestamp_seconds:max';

/** A -1 if there is nothing within the range of what the recording rules always record. A label says so. */
export function orNeedsRules(expr: string, recorded: string, label = '') {
  const missing = `${scraped} - 1 unless on () last_over_time(${recorded}[$__range] @ end())`;
  return expr + (label ? orSays(missing, label, 'needs the recording rules') : ` or on () ${missing}`);
}

/** Since when what a dashboard shows is not renewed, by the collector that it needs, and the reason in the label state. */
export function dataState(name: string) {
  const metric = (of: string) => own(`exporter_collector_${of}`, `collector="${name}"`);
  const success = max('account', metric('success'));
  const failing = `${success} == 0`;
  const last = metric('last_success_timestamp_seconds');
  const since = `((${max('account', `${last} or max_over_time(${last}[1d:5m])`)} or on (account) 0 * ${success} + ${reloaded}) and on (account) ${failing})`;
  return labelled(`max(timestamp(${builds})) unless on () ${failing}`, 'state', 'Up to date')
    + orSays(`max(${since}) unless on () ${metric('success')} == 1`, 'state', 'The provider fails since')
    + orSays(`min(${since})`, 'state', 'An account fails since')
    + orSays(`${lastTime(builds)} unless on () ${builds}`, 'state', 'The exporter is down since');
}

/** The accounts of the configuration, also those without data. */
export const accounts = max('account', own('exporter_collector_interval_seconds', 'account!=""', account));
export const noAccounts = `${scraped} unless on () ${accounts}`;
/** Says that no account is configured at the end, in a label. */
export const orNoAccounts = (expr: string, label: string) => `(${expr})${orSays(atEnd(noAccounts), label, 'no accounts configured')}`;

/**
 * Whether the API accepted each account's token: 1 is rejected, 0 accepted, 0.5 not known, 10
 * more what was last known while no exporter is up, and -1 that there is no account.
 */
const rejected = own('exporter_api_token_rejected', account);
export const tokens = (`${max('account', rejected)} or on (account) 0 * ${accounts} + 0.5 or on (account) ${max('account', `last_over_time(${rejected}[1d])`)} + 10 unless on () ${builds}`
  + orSays(`(${noAccounts}) - 1`, 'account', 'None configured')).replaceAll(/\}(\[\w+\])?/g, '$& @ end()');
