// How queries are written, so that all of them follow the same three rules:
//
//  1. every selector matches $job and $instance;
//  2. every selector is aggregated over what the exporter adds of itself, so that
//     two exporters of the same provider show everything once;
//  3. an _info metric on the one side of a join is reduced to one series, so that
//     a join holds even while two exporters disagree for a minute.

const prefix = 'server_rental_';

/** Matchers of the variables. All of them match nothing but what has the label. */
export const account = 'account=~"$account"';
export const location = 'location=~"$location"';
export const plan = 'plan=~"$plan"';

/**
 * Of the collectors, the public ones have no account. They belong to every choice
 * of accounts, so nothing is an alternative here.
 */
export const accountOrPublic = 'account=~"$account|"';

/**
 * A selector with the matchers that every query has.
 * @param {string} metric without the exporter's prefix
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
 * One series per exporter of a metric that other programs have too, such as
 * process_*. While all jobs are chosen the matchers alone would take in everything
 * that Prometheus scrapes.
 * @param {string} metric
 * @param {(selector: string) => string} [use] what is made of the selector
 */
export function perExporter(metric, use = (selector) => selector) {
  return `max by (instance) (${use(foreign(metric))} and on (job, instance) ${own('exporter_build_info')})`;
}

/** Whether exporters are up. One that is down is known from what it exported within a day. */
export const exportersUp = `max by (instance) (${foreign('up')} and on (job, instance) last_over_time(${own('exporter_build_info')}[1d]))`;

/**
 * One series for each value of the labels, whoever exports it.
 * @param {string} labels comma-separated; empty for a single series
 * @param {string} expr
 */
export function max(labels, expr) {
  return labels ? `max by (${labels}) (${expr})` : `max(${expr})`;
}

/**
 * One info series for each value of the key, with the labels to show.
 * @param {string} key the labels that tell one thing from another
 * @param {string} labels what is shown of it
 * @param {string} selector
 */
export function info(key, labels, selector) {
  return `topk by (${key}) (1, max by (${key}, ${labels}) (${selector}))`;
}

/**
 * Prices exist once for each currency. Only the metric whose name holds the
 * chosen currency answers, so that each can have its own unit.
 * @param {string} metric with CURRENCY where usd or eur stands
 * @param {'usd'|'eur'} currency
 * @param {...string} matchers
 */
export function priced(metric, currency, ...matchers) {
  const name = prefix + metric.replace('CURRENCY', currency);
  const all = [`__name__="${name}"`, '__name__=~".+_${currency}_.+"', 'job=~"$job"', 'instance=~"$instance"', ...matchers];
  return `{${all.join(', ')}}`;
}

/**
 * Adds the display name to something that has one series for each plan.
 * @param {string} expr
 * @param {string} [labels] further labels to add
 */
export function named(expr, labels = 'name') {
  return `${expr} * on (plan) group_left (${labels}) ${info('plan', labels, own('plan_info', plan))}`;
}

/**
 * Leaves out plans that are offered only elsewhere. A plan of which the provider
 * tells no location at all stays: nothing is known against it.
 * @param {string} expr one series for each plan
 */
export function offeredHere(expr) {
  const offered = max('plan', own('plan_offered', plan));
  const here = max('plan', own('plan_offered', plan, location));
  return `${expr} unless on (plan) (${offered} unless on (plan) ${here})`;
}

/**
 * Leaves the servers that the variables for plan and location choose.
 * @param {string} expr one series for each account and server
 */
export function chosenServers(expr) {
  return `${expr} and on (account, server) ${own('server_info', account, plan, location)}`;
}

/** Prometheus has seconds where Grafana's date units want milliseconds. */
export const milliseconds = (/** @type {string} */ expr) => `${expr} * 1000`;
