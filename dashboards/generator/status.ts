// Provider status and exporter health: whether the provider or the exporter fails and
// since when, then collectors, requests and the exporter's process.

import { readFileSync } from 'node:fs';
import { ScaleDistribution, ScaleDistributionConfigBuilder } from '@grafana/grafana-foundation-sdk/common';
import { alerts, between, colours, course, dashboard, fixed, flexible, forName, forPattern, forQuery, linksFrom, mappings, now, palette, rows, runbooks, series, set, stat, steps, table, text, timeline, units, valueOf, values, wordsLike } from './lib/family.js';
import { account, accountOrPublic, age, atEnd, builds, collector, end, info, interval, intervals, known, labelled, lastSuccess, location, max, milliseconds, orLast, orNeedsRules, orNoAccounts, orSays, own, perExporter, reloaded, ruled, scraped, succeeded, tokens } from './lib/promql.js';

const { linkTo } = linksFrom('status');
/** The highest value until the next step, so that nothing short is lost; a step may be too short for a scrape. */
const highest = (selector: string) => `(max_over_time(${selector}[$__interval] offset -$__interval) or ${selector})`;

// Recorded while it lasts, so that it is cheap to find in a long time range.
const outage = `location_component:server_rental_component_failing:group{${location}}`;
const maintained = `location_component:server_rental_component_maintenance:group{${location}}`;
const failing = `collector_account:server_rental_exporter_collector_failing:group{${accountOrPublic}}`;
// Recorded all the time: without the rules, nothing is known to work.
const componentsKnown = `location_component:server_rental_component_operational:max{${location}}`;
const collectorsKnown = `collector_account:server_rental_exporter_collector_data_timestamp_seconds:max{${accountOrPublic}}`;

/** When each alert that fires became active, and the labels that say what it is about. */
const aboutLabels = ['account', 'server', 'topup', 'watch', 'configuration', 'plan', 'location', 'component', 'collector'];
const alertLabels = `alertname, severity, ${aboutLabels.join(', ')}`;
const alertsSince = `min by (${alertLabels}) (ALERTS_FOR_STATE{alertname=~"ServerRental.*"}) and on (${alertLabels}) ${alerts}`;
const namePublic = (expr: string) => `label_replace(${expr}, "account", "(public)", "account", "")`;

/** What the provider reports or, while it is not known, last reported within a day: the text of a label then says so. */
const orLastReport = (expr: string, label = 'known') => `(${atEnd(expr, 'provider')}) and on () ${known.status} or label_replace(${atEnd(expr, 'provider')} unless on () ${known.status}, "${label}", "$1, last known", "${label}", "(.*)")`;
const lastKnownGrey = forPattern('/, last known$/', set.colour(colours.unknown));
const states = orLastReport(max('location, component, state', own('component_state', location)), 'state');
const classify = (expr: string, text: string, state: string) => `label_replace(${expr}, "class", "${text}", "state", "${state}")`;
const classes = `count by (class) (${classify(classify(classify(states, 'down$1', '.*?(, last known)?'), 'maintenance$1', '(?i:.*?maintenance.*?)(, last known)?'), 'operational$1', '(?i:operational)(, last known)?')})`;

const lastFetched = max(collector, lastSuccess);
/** Since when a collector fails: its last success or, if there was none, the start of the exporter. */
const failingSince = `((${lastFetched} or on (${collector}) 0 * ${succeeded} + ${reloaded}) and on (${collector}) ${succeeded} == 0)`;
const reason = `(topk(1, sum by (reason) (increase(${own('exporter_api_errors_total')}[10m])) > 0)${orSays('vector(0)', 'reason', 'no response')})`;

/** The provider only tells the day. */
const notOperationalSince = `(max(max_over_time(timestamp(${own('status_info', 'overall=~"(?i)operational"')})[1d:1m])) or ${max('', own('status_since_timestamp_seconds'))})`;

/** What is the matter, the most important first: each a sentence, and since when in seconds. */
const matters = Object.entries({
  'No exporter is scraped, last known states': `max(max_over_time(timestamp(${builds})[1d:1m])) unless on () ${builds}`,
  'The API cannot be read, last known states ($1)': `label_join(0 * ${reason} + on () group_left () (max(${lastFetched}) < time() - 60 and on () sum(1 - ${succeeded}) > count(${succeeded}) / 2), "object", "", "reason")`,
  'The token of $1 is rejected': `label_join(bottomk(1, max by (account) (${failingSince}) and on (account) ${own('exporter_api_token_rejected', account)} == 1), "object", "", "account")`,
  'Collectors fail: $1 and perhaps more': `label_join(bottomk(1, ${failingSince}), "object", " ", "collector", "account")`,
  'The provider reports: $1': `label_join(0 * topk(1, ${max('overall', own('status_info', 'overall!~"(?i)operational"'))}) + on () group_left () ${notOperationalSince}, "object", "", "overall")`,
  'An alert fires: $1': `label_join(bottomk(1, ${alertsSince}), "object", "", "alertname")`,
  'No problem is known, without rules for alerts': `max(timestamp(${builds})) unless on () last_over_time(${ruled}[$__range] @ end())`,
  'No problem is known': `max(timestamp(${builds}))`,
}).map(([text, since]) => `label_replace(${labelled(since, 'state', text.replace('$1', '?'))}, "state", "${text}", "object", "(.+)")`);

const anchors = ['stock', 'billing', 'status', 'exporter'].flatMap((file) => [...readFileSync(new URL(`../../../alerts/${file}.rules.yml`, import.meta.url), 'utf8').matchAll(/- alert: (\w+)/g)].map(([, name]) => name));

const wrong = [
  stat({
    id: 108, title: 'State', w: 24, h: 3, unit: units.ago, names: true, sizes: { title: 20, value: 16 }, background: true, steps: steps.rising(colours.bad),
    description: 'The most important matter now, and since when: whether an exporter is scraped, the API can be read, tokens are accepted, collectors work, the provider is operational, and alerts fire. A provider that was not operational within a day tells only the day.',
    alerts: ['ExporterDown'], overrides: [forPattern('/^No problem is known$/', set.colour(colours.good)), forPattern('/^No problem is known,/', set.colour(colours.unknown)), forPattern('/^The provider reports: .*maintenance/i', set.colour(colours.plain))],
  }, now(milliseconds(`(${matters.join(' or on () ')})`), '{{state}}')),
  table({
    id: 109, title: 'Alerts that fire', w: 24, h: 7, sort: 'Severity',
    description: 'Warnings and critical alerts of this project that fire, what they are about, and since when. The name leads to the runbook.',
  }, [
    fixed('severity', 'Severity', 85, { align: 'center', background: true, mappings: [wordsLike('^critical$', colours.bad), wordsLike('^warning$', colours.warn)] }),
    flexible('alertname', 'Alert', 200, { mappings: [wordsLike('^ServerRental(.+)', colours.plain, '$1')], link: { title: 'Runbook', url: `${runbooks}#\${__data.fields.Anchor}`, targetBlank: true } }),
    flexible('object', 'About', 320),
    { from: '#since', name: 'Since', unit: units.ago, width: 145, mappings: mappings.unknown, steps: steps.muted },
    { from: 'anchor', name: 'Anchor', hidden: true, mappings: values(Object.fromEntries(anchors.map((name) => [name, [name.toLowerCase(), colours.muted]]))) },
  ], {
    since: orNeedsRules(milliseconds(max('severity, alertname, object, anchor', `label_replace(label_join(label_join((${alertsSince}), "object", " ", ${aboutLabels.map((label) => `"${label}"`).join(', ')}), "anchor", "", "alertname"), "object", "–", "object", " *")`))
      + orSays(`0 * max(${ruled}) / 0`, 'alertname', 'None'), ruled, 'alertname'),
  }),
];

const glance = [
  stat({
    id: 101, title: 'Provider', w: 5, h: 5, mappings: mappings.componentState, field: 'overall', background: true,
    description: 'The provider\'s overall state: green if operational, blue if maintenance, red for any other state, and grey if last known.', alerts: ['IncidentOngoing'],
  }, rows(orLastReport(`topk(1, ${max('overall', own('status_info'))})`, 'overall'), 'A')),
  stat({
    id: 102, title: 'Components', w: 6, h: 5, horizontal: true, names: true, steps: steps.rising(colours.bad),
    description: 'The number of components of the chosen locations that are operational, in maintenance, or neither.', alerts: ['ComponentNotOperational'],
    overrides: [forPattern('/^operational/', set.colour(colours.good)), forPattern('/^maintenance/', set.colour(colours.plain)), lastKnownGrey],
  }, now(classes, '{{class}}')),
  stat({
    id: 103, title: 'Incidents', w: 5, h: 5, horizontal: true, steps: steps.noneIsGood, alerts: ['IncidentOngoing', 'MaintenanceScheduled'],
    description: 'Ongoing incidents and scheduled maintenance windows, as the provider reports them.',
    overrides: [forQuery('maintenance', set.steps(steps.rising(colours.plain))), lastKnownGrey],
  },
  now(orLastReport(max('', own('incidents_ongoing'))), 'incidents{{known}}', 'incidents'),
  now(orLastReport(max('', own('maintenances_scheduled'))), 'maintenance{{known}}', 'maintenance')),
  table({
    id: 107, title: 'Tokens', w: 8, h: 5, sort: 'Token', descending: true, alerts: ['TokenRejected'],
    description: 'Whether the API accepted each account\'s token when it last said so, rejected ones first; in grey what was last known while the exporter is down.',
  }, [
    flexible('account', 'Account', 165, { link: linkTo('accounts', 'Show this account', 'var-account=${__value.raw}') }),
    valueOf.state('token', 'Token', 85, tokens, { mappings: mappings.token }),
  ]),
];

/** A count of components that are not operational. */
const counts = [
  ...values({ 0: ['All operational', colours.good], 0.5: ['Maintenance', colours.plain], 1: ['1 component down', colours.fair], 2: ['2 components down', colours.warn] }),
  between(3, null, colours.bad, '3 or more down'), ...mappings.rules,
];

/** A time of an outage beside which there is none. @param offset of the time beside it */
const edge = (time: string, offset: string) => `(${time} unless on (location, component) ${outage} offset ${offset})`;
/** The last beginning within the interval after each step, not at it, and the first end from then on. */
const began = `clamp_max(max by (location, component) (max_over_time(${edge(`0 * ${outage} + time()`, '2m')}[$__interval:2m] offset -$__interval)) > time(), ${end})`;
// Its last sample, as Prometheus takes that as current for five minutes more.
const ended = `min by (location, component) (min_over_time(${edge(`timestamp(${outage})`, '-2m')}[7d:2m] offset -7d))`;

const provider = [
  table({
    id: 201, title: 'Components by location', w: 14, h: 11, sort: 'Location', alerts: ['ComponentNotOperational'],
    description: 'The state of each component of each location: green if operational, blue if it says maintenance, red for any other state, and grey if last known.',
    before: [{ id: 'groupingToMatrix', options: { columnField: 'component', rowField: 'location', valueField: 'state', emptyValue: 'empty' } }],
  }, [
    fixed('location\\component', 'Location', 80, { link: linkTo('stock', 'Stock of this location', 'var-location=${__data.fields.Location}') }),
  ], { state: states })
    // One column for each component. A long state shows its beginning, and its whole text after a click.
    .withOverride(forPattern('^(?!Location$).+', set.mappings([wordsLike('/^operational$/i', colours.good, 'OK'), wordsLike('/^operational, last known$/i', colours.unknown, 'OK'), ...mappings.componentState]), set.custom('cellOptions', { type: 'color-background', mode: 'basic' }),
      set.custom('minWidth', 72), set.custom('inspect', true), { id: 'filterable', value: false })),
  timeline({
    id: 202, title: 'Locations over time', w: 10, h: 11, mappings: counts,
    description: 'The number of components of each location that failed, and whether any was in maintenance. Gaps are times without data. Needs the recording rules of this project.', alerts: ['ComponentNotOperational'],
  }, course(orNeedsRules(`count by (location) (present_over_time(${outage}[$__interval] offset -$__interval)) or on (location) 0.5 * group by (location) (present_over_time(${maintained}[$__interval] offset -$__interval))`
    + ` or on (location) 0 * ${max('location', `(last_over_time(${componentsKnown}[$__interval] offset -$__interval) or ${componentsKnown})`)}`, componentsKnown, 'location'), '{{location}}')).interval('4m'),
  table({
    id: 206, title: 'Outages of two minutes or longer', w: 14, h: 9, sort: 'Began', descending: true, history: true, noValue: 'None', alerts: ['ComponentNotOperational'],
    description: 'Each outage of a component in the time range, the latest first: when it began and how long it lasted, or has lasted so far, to two minutes. Times in which a component failed again and again are one outage, and maintenance is none. Needs the recording rules of this project.',
  }, [
    fixed('location', 'Location', 80), flexible('component', 'Component', 110),
    valueOf.minute('began', 'Began', 145, began, { steps: steps.muted, expr: `${milliseconds(began)} or (${atEnd(orNeedsRules('vector(0) < 0', componentsKnown, 'component'))}) * NaN and on () vector(time() > bool ${end} - $__interval_ms / 1000) == 1` }),
    { from: '#lasted', name: 'Lasted', unit: 's', decimals: 0, width: 110, expr: `120 + ${ended} - on (location, component) ${began} > 0` },
  ]).interval('2m').maxDataPoints(1000),
  timeline({
    id: 204, title: 'Incidents and maintenance over time', w: 10, h: 5, mappings: [...values({ 0: ['None', colours.good] }), between(1, null, colours.bad, 'Ongoing')],
    description: 'Whether the provider reported ongoing incidents or scheduled maintenance windows.', alerts: ['IncidentOngoing', 'MaintenanceScheduled'],
    overrides: [forQuery('maintenance', set.mappings([...values({ 0: ['None', colours.good] }), between(1, null, colours.plain, 'Scheduled')]))],
  },
  course(max('', highest(own('incidents_ongoing'))), 'Incidents', 'incidents'),
  course(max('', highest(own('maintenances_scheduled'))), 'Maintenance', 'maintenance')),
  stat({
    id: 205, title: 'Provider timestamps', w: 10, h: 4, unit: units.ago, alerts: ['CatalogFrozen'],
    description: 'The date in the provider\'s field since, the last update of the provider\'s status, and the time when it generated the catalog.',
    overrides: [forQuery('since', set.unit(units.date))],
  },
  // Midnight UTC, which is the day before in America: a time that is on the same day nearly everywhere.
  now(milliseconds(`(${max('', atEnd(own('status_since_timestamp_seconds'), 'provider'))} + 10.5 * 3600)`), 'field since', 'since'),
  now(milliseconds(max('', atEnd(own('status_updated_timestamp_seconds'), 'provider'))), 'status updated', 'updated'),
  now(milliseconds(max('', atEnd(own('catalog_generated_timestamp_seconds'), 'provider'))), 'catalog generated', 'generated')),
];

/** Those that fail, the oldest data first, and others: each at most so many that a browser can show them. */
const listed = atEnd(`(topk(500, (${intervals}) and on (${collector}) ${succeeded} == 0) or topk(100, ${intervals}))`);
const ofListed = (expr: string) => namePublic(`(${atEnd(expr)}) and on (${collector}) ${listed}`);

/** Those that failed for the longest time in the range. */
const worst = `topk(15, count_over_time(${failing}[$__range] @ end()))`;
const recordedAge = `(timestamp(${collectorsKnown}) - ${collectorsKnown})`;

const collectors = [
  table({
    id: 301, title: 'Collectors', w: 24, h: 12, sort: 'In intervals', descending: true, alerts: ['CollectorFailing', 'DataStale'], key: ['collector', 'account'],
    description: 'Collectors, the one with the oldest data first: up to 500 that fail and 100 others. Public collectors have no account. With several exporters, a collector is failing if it fails at one of them, and its age is that of the freshest data. In grey what was last known while the exporter is down.',
  }, [
    valueOf.state('success', 'Last fetch', 92, ofListed(orLast(succeeded)), { mappings: mappings.success }),
    flexible('collector', 'Collector', 118, { filter: true }),
    flexible('account', 'Account', 145, { filter: true }),
    valueOf.number('age', 'Age', 85, ofListed(age), { unit: units.duration }),
    valueOf.number('interval', 'Interval', 80, ofListed(interval), { unit: units.duration }),
    valueOf.number('intervals', 'In intervals', 110, ofListed(intervals), { decimals: 1, steps: steps.intervals, mappings: mappings.never }),
    valueOf.ago('last', 'Last success', 130, `(${ofListed(lastFetched)})`),
    valueOf.number('duration', 'Duration', 80, ofListed(max(collector, own('exporter_collector_duration_seconds', accountOrPublic))), { unit: 's', decimals: 2 }),
    valueOf.count('invalid', 'Invalid', 65, ofListed(max(collector, own('exporter_collector_invalid_items', accountOrPublic))), { steps: steps.noneIsWarning }),
  ]),
  timeline({
    id: 302, title: 'Collectors that failed in the time range', w: 24, h: 9, mappings: [...mappings.success, ...mappings.rules],
    description: 'The collectors whose last fetch failed at some time of the range, and when: the 15 that failed for the longest time. One line for all if there were none. Needs the recording rules of this project.', alerts: ['CollectorFailing'],
  }, course(orNeedsRules(`(0 * present_over_time(${failing}[$__interval] offset -$__interval) and on (${collector}) ${worst} or on (${collector}) 0 * ${worst} + 1) and on () ${builds}`
    + orSays(`0 * ${max('', collectorsKnown)} + 1 unless on () ${worst}`, 'collector', 'all collectors'), collectorsKnown, 'collector'), '{{collector}} {{account}}')).interval('1m'),
  series({
    id: 303, title: 'Age of the data', overrides: palette.collectors(), w: 24, h: 12, interval: '4m', points: 60, decimals: 1, min: 0, softMax: 12, steps: steps.intervals, mappings: mappings.unknown, showSteps: true, fill: 0, legendRight: true, calcs: ['max', 'lastNotNull'],
    description: 'The highest age of the oldest data of each collector over all accounts in each step, in intervals of the collector. One is normal. Needs the recording rules of this project. The alert fires at the upper line; a collector above the lower one is late.',
    alerts: ['DataStale'],
  }, course(orNeedsRules(max('collector', `(max_over_time(${recordedAge}[$__interval:4m] offset -$__interval) or ${recordedAge}) / on (${collector}) ${interval}`), ruled, 'collector'), '{{collector}}')),
];

/** By endpoint, from series of the histogram, or from a native one. */
const durations = (suffix = '') => `sum by (path) (rate(${own(`exporter_api_request_duration_seconds${suffix}`)}[$__rate_interval]))`;

const remaining = own('exporter_api_rate_limit_remaining', account);
const publicPaths = '/plans|/locations|/os|/status';
const limitLine = forQuery('limit', set.dashed, set.noFill, set.colour(colours.bad));

// Most endpoints are requested once a minute or less: rates over less than five minutes would
// show single requests as peaks. Without requests, latency connects to the next value.
const api = [
  series({
    id: 401, interval: '5m', title: 'Public requests per minute', w: 8, h: 9, unit: 'reqpm', decimals: 1, min: 0, stacked: true, softMax: 62, steps: [{ value: null, color: colours.good }, { value: 60, color: colours.bad }], showSteps: true,
    description: 'Requests without a token by exporter. The line is the provider\'s limit per address, which exporters with the same address share.', alerts: ['RateLimited'],
  }, course(`sum by (instance) (rate(${own('exporter_api_requests_total', `path=~"${publicPaths}"`)}[$__rate_interval])) * 60`, '{{instance}}')),
  series({
    id: 402, interval: '5m', title: 'Account requests per minute', w: 8, h: 9, unit: 'reqpm', decimals: 1, min: 0, fill: 0, alerts: ['RateLimited'],
    description: 'Requests with a token by exporter, over all accounts. The dashed line is the sum of the limits of all tokens; the panel of remaining requests shows each token.',
    softMax: 125, overrides: [limitLine],
  },
  course(orNoAccounts(`sum by (instance) (rate(${own('exporter_api_requests_total', `path!~"${publicPaths}"`)}[$__rate_interval])) * 60`, 'instance'), '{{instance}}', 'made'),
  course(`sum(${max('account', own('exporter_api_rate_limit', account))})`, 'limit of all tokens', 'limit')),
  series({
    id: 403, title: 'Remaining requests', w: 8, h: 9, decimals: 0, min: 0, softMax: 125, fill: 0, calcs: ['min', 'lastNotNull'], alerts: ['RateLimited'],
    description: 'The remaining requests of the eight tokens that had the fewest in the time range, as of the last response. The dashed line is the lowest limit of a token.',
    overrides: [limitLine],
  },
  course(orNoAccounts(`min by (account) (${remaining}) and on (account) bottomk(8, min by (account) (min_over_time(${remaining}[$__range:$__interval] @ end())))`, 'account'), '{{account}}', 'left'),
  course(`min(${own('exporter_api_rate_limit', account)})`, 'limit', 'limit')),
  table({
    id: 404, title: 'Errors in 24 hours', w: 12, h: 10, sort: 'Errors', descending: true, alerts: ['CollectorFailing'],
    description: 'The failed requests of the last 24 hours by endpoint and reason, over all chosen exporters.',
  }, [
    text('path', 'Path'), text('reason', 'Reason'),
    valueOf.count('errors', 'Errors', 90, `round(sum by (path, reason) (increase(${own('exporter_api_errors_total')}[24h]))) > 0${orSays(scraped, 'path', 'None')}`),
  ]),
  series({
    id: 406, interval: '5m', title: 'Latency', overrides: palette.collectors(), w: 12, h: 10, legendRight: true, unit: 's', fill: 0, calcs: ['max', 'lastNotNull'], alerts: ['CollectorFailing'],
    description: 'Time from sending a request until its response was read, on average by endpoint, or the 95th percentile if Prometheus stores native histograms.',
  }, course(`histogram_quantile(0.95, ${durations()}) >= 0 or ${durations('_sum')} / ${durations('_count')} >= 0`, '{{path}}'))
    .scaleDistribution(new ScaleDistributionConfigBuilder().type(ScaleDistribution.Log).log(2)).spanNulls(2 * 60 * 60 * 1000),
  series({
    id: 405, interval: '5m', title: 'Requests per minute by HTTP status', w: 24, h: 9, unit: 'reqpm', decimals: 1, min: 0, stacked: true, bars: 'before',
    description: 'Requests by HTTP status, over all chosen exporters. The code is error if there was no response. The reasons of errors are above.',
    overrides: [forPattern('/^4\\d\\d$/', set.colour(colours.warn)), forPattern('/^5\\d\\d$/', set.colour(colours.bad)), forName('429', set.colour(colours.extra)), forName('error', set.colour(colours.gone))],
  }, course(`sum by (code) (rate(${own('exporter_api_requests_total')}[$__rate_interval])) * 60 > 0`, '{{code}}')),
  series({
    id: 407, title: 'Backoff', w: 24, h: 6, unit: units.duration, min: 0, softMax: 60, alerts: ['RateLimited'],
    overrides: [forName('no backoff', set.colour(colours.muted)), forName('(public)', set.colour(colours.plain))],
    description: 'How long the exporter will send no requests after a 429, a 503 or an exhausted limit, by account.',
  }, course(`topk(8, ${namePublic(`clamp_min(${max('account', own('exporter_api_backoff_until_timestamp_seconds', accountOrPublic))} - time(), 0)`)} > 0)`
    + orSays(scraped, 'account', 'no backoff'), '{{account}}')),
];

const small = { w: 6, h: 8, min: 0 };
const process = [
  series({
    ...small, id: 501, title: 'CPU', interval: '2m', unit: 'percentunit', description: 'CPU time of each exporter; 100 % is one core.',
  }, course(perExporter('process_cpu_seconds_total', (s) => `rate(${s}[$__rate_interval])`), '{{instance}}')),
  series({
    ...small, id: 502, title: 'Memory', unit: 'bytes', description: 'Resident memory of each exporter, and its Go heap in use as a dashed line.', overrides: [forQuery('heap', set.dashed, set.noFill)],
  }, course(perExporter('process_resident_memory_bytes'), '{{instance}}', 'resident'), course(perExporter('go_memstats_heap_inuse_bytes'), '{{instance}} heap', 'heap')),
  series({
    ...small, id: 503, title: 'Scrapes', unit: 's', fill: 0, description: 'Duration of the scrapes of each exporter. A scrape never waits for the provider.', alerts: ['ExporterDown'],
  }, course(perExporter('scrape_duration_seconds'), '{{instance}}')),
  series({
    ...small, id: 504, title: 'Goroutines and open files', decimals: 0, fill: 0, description: 'Goroutines and open file descriptors of each exporter. A steady rise is a leak: please report it.',
  }, course(perExporter('go_goroutines'), '{{instance}} goroutines', 'goroutines'), course(perExporter('process_open_fds'), '{{instance}} files', 'files')),
  table({
    id: 505, title: 'Builds and configuration', w: 24, h: 5, sort: 'Exporter', alerts: ['ConfigReloadFailed'],
    description: 'The build and start time of each exporter, whether its last reload succeeded, and the errors while it served metrics. After a failed reload it keeps its current configuration.',
  }, [
    text('instance', 'Exporter'), text('version', 'Version'), text('revision', 'Revision'), text('goversion', 'Go'),
    valueOf.ago('started', 'Running since', 145, perExporter('process_start_time_seconds')),
    valueOf.state('reload', 'Configuration', 0, max('instance', own('exporter_config_last_reload_successful')), { mappings: mappings.reload, minWidth: 115 }),
    valueOf.ago('loaded', 'Loaded', 145, max('instance', own('exporter_config_last_reload_success_timestamp_seconds'))),
    // The counter may be absent until the first error.
    valueOf.count('errors', 'Errors in 24 h', 0, `${perExporter('promhttp_metric_handler_errors_total', (s) => `round(sum by (job, instance) (increase(${s}[24h])))`)} or 0 * ${max('instance', builds)}`, { steps: steps.noneIsWarning, minWidth: 115 }),
  ], { info: info('instance', 'version, revision, goversion', builds) }),
];

export const status = () => dashboard('status', {
  description: 'Health of the provider and of the exporter: components, incidents, collectors, requests and limits.',
  from: 'now-6h', refresh: '30s', timezone: 'browser',
  top: [{ id: 110, title: 'What is wrong now', panels: wrong }],
  rows: [
    { id: 100, title: 'Overview', panels: glance },
    { id: 200, title: 'Provider', panels: provider },
    { id: 300, title: 'Collectors', panels: collectors },
    { id: 400, title: 'Requests to the provider', panels: api, collapsed: true },
    { id: 500, title: 'Exporter', panels: process, collapsed: true },
  ],
});
