// Builds queries, which all follow three rules:
//
//  1. every selector matches $job and $instance;
//  2. every selector is aggregated over job and instance, so that two exporters of the
//     same provider show everything once;
//  3. an _info metric on the one side of a join is reduced to one series, so that the join
//     works even while two exporters differ for a minute.

const prefix = 'server_rental_';

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
  return `${metric}{${['job=~"$job"', 'instance=~"$instance"', ...matchers].join(', ')}}`;
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
 * Prices are one metric per currency. The selector matches only if this currency is the
 * chosen one, so that each currency can have its own unit.
 * @param {string} metric with CURRENCY in place of usd or eur
 * @param {'usd'|'eur'} currency
 * @param {...string} matchers
 */
export function priced(metric, currency, ...matchers) {
  const name = prefix + metric.replace('CURRENCY', currency);
  const all = [`__name__="${name}"`, '__name__=~".+_${currency}_.+"', 'job=~"$job"', 'instance=~"$instance"', ...matchers];
  return `{${all.join(', ')}}`;
}

/**
 * Adds the display name to an expression with one series for each plan.
 * @param {string} expr
 * @param {string} [labels] further labels to add
 */
export function named(expr, labels = 'name') {
  return `${expr} * on (plan) group_left (${labels}) ${info('plan', labels, own('plan_info', plan))}`;
}

/**
 * Drops plans that are offered only in other locations. Plans without any location stay.
 * @param {string} expr one series for each plan
 */
export function offeredHere(expr) {
  // Not aggregated, because unless matches several series and this is in most queries.
  const offered = own('plan_offered', plan);
  const here = own('plan_offered', plan, location);
  return `${expr} unless on (plan) (${offered} unless on (plan) ${here})`;
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

/** Scalars of the current month and the two after it: its first day, and its number of days. */
const months = ['this month', 'next month', 'the month after'].reduce((/** @type {{name: string, start: string, days: string}[]} */ all, name, i) => {
  const start = i === 0 ? `(${today} - (day_of_month() - 1) * ${day})` : `(${all[i - 1].start} + ${all[i - 1].days} * ${day})`;
  return [...all, { name, start, days: `days_in_month(${start})` }];
}, []);

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
    const date = `((clamp_max(day_of_month(${renews}), scalar(${length})) - 1) * ${day} + scalar(${start}))`;
    return named(`(${date} > ${today} <= ${today} + ${days} * ${day} >= on (account, server) floor(${renews} / ${day}) * ${day})`, name);
  });
  return `(${[named(`(${renews} < ${today} + ${day})`, 'due'), ...monthly].join(' or ')})`;
}

/** Prometheus timestamps are in seconds, Grafana's date units in milliseconds. */
export const milliseconds = (/** @type {string} */ expr) => `${expr} * 1000`;

/**
 * Colours a series by a label. Grafana colours by the metric's name, and only newer versions by the
 * name in the legend.
 * @param {string} label @param {string} expr
 */
export const colouredBy = (label, expr) => `label_replace(${expr}, "__name__", "$1", "${label}", "(.*)")`;
