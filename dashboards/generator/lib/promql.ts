// Builds queries. Every selector matches $job and $instance, and max by (...) makes one series of
// several exporters of the same provider.

/** Matchers of the variables. They match only series with the label. */
export const account = 'account=~"$account"';
export const location = 'location=~"$location"';
export const plan = 'plan=~"$plan"';
/** Of the states that the provider reports. */
export const inMaintenance = 'state=~"(?i).*maintenance.*"';
export const failed = 'state!~"(?i)operational|.*maintenance.*"';
/** Whether each component had such a state in an interval. Only those that had have series. */
export const reported = (state: string) => max('location, component, state', `max_over_time(${own('component_state', location, state)}[$__interval])`);
/** Also matches public collectors, which have no account and belong to every choice. */
export const accountOrPublic = 'account=~"$account|"';

export const selector = (metric: string, ...matchers: string[]) => `${metric}{${['job=~"$job"', 'instance=~"$instance"', ...matchers].join(', ')}}`;
/** A selector of a metric of the exporter, without its prefix. */
export const own = (metric: string, ...matchers: string[]) => selector(`server_rental_${metric}`, ...matchers);

/** One series for each value of the labels, of any exporter. */
export const max = (labels: string, expr: string) => (labels ? `max by (${labels}) (${expr})` : `max(${expr})`);
/** The same of one gauge of the exporter. */
export const gauge = (labels: string, metric: string, ...matchers: string[]) => max(labels, own(metric, ...matchers));

/** Prometheus' timestamps are in seconds, Grafana's units of dates in milliseconds. */
export const milliseconds = (expr: string) => `1000 * ${expr}`;

/** The end of the name of a price, of which the variable chooses the currency. */
export const price = 'price_${currency}_per_month';

const builds = own('exporter_build_info');
/** One series for each exporter of a metric that other programs export, too. */
export const perExporter = (expr: string) => max('instance', `${expr} and on (job, instance) ${builds}`);
/** Whether exporters are up. One that is down counts if it exported within a day, as in the alert. */
export const exportersUp = max('instance', `${selector('up')} and on (job, instance) last_over_time(${builds}[1d])`);

export const collector = 'collector, account';
/** Whether the last fetch of each collector succeeded at any exporter. */
export const succeeded = (...matchers: string[]) => gauge(collector, 'exporter_collector_success', ...matchers);
export const age = (...matchers: string[]) => `time() - ${gauge(collector, 'exporter_collector_data_timestamp_seconds', ...matchers)}`;
export const interval = (...matchers: string[]) => gauge(collector, 'exporter_collector_interval_seconds', ...matchers);
/** The age of data in intervals of its collector, as the alert of stale data counts it. */
export const intervals = (...matchers: string[]) => `(${age(...matchers)}) / ${interval(...matchers)}`;

/** How many alerts of this project fire, but for news such as a restock. Without the rules it is not known. */
export const firing = 'count(count by (alertname) (ALERTS{alertname=~"ServerRental.*", alertstate="firing", severity!="info"})) or 0 * count(last_over_time(plan:server_rental_plan_in_stock:max[1h]))';
