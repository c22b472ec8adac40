// Provider status and exporter health: whether the provider or the exporter fails and
// since when, then collectors, requests and the exporter's process.

import { between, dashboard, colours, course, forName, forPattern, forQuery, linksFrom, mappings, neverText, now, palette, runbook, series, set, stat, steps, table, timeline, units, values } from './lib/family.js';
import {
  account, accountOrPublic, age, collector, collectorSuccess, info, interval, intervals, location, lowest, max, milliseconds, neverFetched, orNoAccounts, own, perExporter, succeeded, tokens,
} from './lib/promql.js';

const { linkTo } = linksFrom('status');

/**
 * The highest value until the next step, so that nothing short is lost in a long time range.
 * A step may be too short for a scrape.
 * @param {string} selector
 */
const highest = (selector) => `(max_over_time(${selector}[$__interval] offset -$__interval) or ${selector})`;

const operational = `min by (location, component) (${own('component_operational', location)})`;

/** Recorded while it lasts, so that it is cheap to find in a long time range. */
const outage = `location_component:server_rental_component_failing:group{${location}}`;
const failing = `collector_account:server_rental_exporter_collector_failing:group{${accountOrPublic}}`;
/** Recorded all the time: without the rules, nothing is known to work. */
const componentsKnown = `location_component:server_rental_component_operational:max{${location}}`;
const collectorsKnown = `collector_account:server_rental_exporter_collector_data_timestamp_seconds:max{${accountOrPublic}}`;

const publicEndpoints = 'path=~"/plans|/locations|/os|/status"';
const accountEndpoints = 'path!~"/plans|/locations|/os|/status"';

const collectorLegend = '{{collector}} {{account}}';

/** Names what belongs to no account. @param {string} expr */
const namePublic = (expr) => `label_replace(${expr}, "account", "(public)", "account", "")`;

const background = { colourMode: /** @type {any} */ ('background') };

const glance = [
  stat({
    id: 101, title: 'Provider', w: 6, h: 5, unit: 'none', mappings: mappings.componentState, field: 'overall', ...background,
    description: 'The provider\'s overall state: green if operational, red for any other state.', links: [runbook('ServerRentalIncidentOngoing')],
  }, now(`topk(1, ${max('overall', own('status_info'))})`, '').format(/** @type {any} */ ('table'))),
  stat({
    id: 102, title: 'Components', w: 6, h: 5, unit: 'suffix: down', steps: steps.noneIsGood, mappings: values({ 0: ['Operational', colours.good] }), ...background,
    description: 'The number of components of the chosen locations that are not operational.', links: [runbook('ServerRentalComponentNotOperational')],
  }, now(`sum(1 - ${operational})`, 'components')),
  stat({
    id: 103, title: 'Incidents', w: 6, h: 5, unit: 'none', steps: steps.noneIsGood, links: [runbook('ServerRentalIncidentOngoing'), runbook('ServerRentalMaintenanceScheduled')],
    description: 'Ongoing incidents and scheduled maintenance windows, as the provider reports them.',
    overrides: [forQuery('maintenance', set.steps(steps.always(colours.plain)))],
  },
  now(max('', own('incidents_ongoing')), 'incidents', 'incidents'),
  now(max('', own('maintenances_scheduled')), 'maintenance', 'maintenance')),
  table({
    id: 107, title: 'Tokens', w: 6, h: 5, unit: 'none', sort: 'Token', descending: true, links: [runbook('ServerRentalTokenRejected')],
    description: 'Whether the API accepted each account\'s token in its last request, rejected ones first.',
    columns: [
      { from: 'account', name: 'Account', minWidth: 80, filter: false, link: linkTo('accounts', 'Show this account', 'var-account=${__data.fields.Account}') },
      { from: '#token', name: 'Token', mappings: mappings.token, background: true, width: 100, align: 'center' },
    ],
  }, { token: tokens }),
];

const matrix = table({
  id: 201, title: 'Components by location', w: 12, h: 11, unit: 'none', sort: 'Location', links: [runbook('ServerRentalComponentNotOperational')],
  description: 'The state of each component of each location: green if operational, red for any other state.',
  before: [{ id: 'groupingToMatrix', options: { columnField: 'component', rowField: 'location', valueField: 'state', emptyValue: 'empty' } }],
  columns: [{ from: 'location\\component', name: 'Location', width: 80, filter: false, link: linkTo('stock', 'Stock of this location', 'var-location=${__data.fields.Location}') }],
}, { state: max('location, component, state', own('component_state', location)) });
// One column for each component.
matrix.withOverride(forPattern('^(?!Location$).+', set.mappings(mappings.componentState), { id: 'custom.cellOptions', value: { type: 'color-background', mode: 'basic' } },
  { id: 'custom.align', value: 'center' }, { id: 'custom.minWidth', value: 100 }));

/** A count of components that are not operational. */
const counts = [
  ...values({ 0: ['All operational', colours.good], 1: ['1 component down', colours.warn], 2: ['2 components down', colours.warn] }),
  between(3, null, colours.bad, '3 or more down'),
];

/** A time of an outage beside which there is none. @param {string} time @param {string} offset of the time beside it */
const edge = (time, offset) => `(${time} unless on (location, component) ${outage} offset ${offset})`;
/** The last beginning within the interval after each step, not at it, and the first end from then on. */
const began = `(max by (location, component) (max_over_time(${edge(`0 * ${outage} + time()`, '2m')}[$__interval:2m] offset -$__interval)) > time())`;
// Its last sample, as Prometheus takes that as current for five minutes more.
const ended = `min by (location, component) (min_over_time(${edge(`timestamp(${outage})`, '-2m')}[7d:2m] offset -7d))`;

const provider = [
  matrix,
  timeline({
    id: 202, title: 'Locations over time', w: 12, h: 11, unit: 'none', mappings: counts, interval: '4m',
    description: 'The number of components of each location that failed, maintenance excepted. Gaps are times without data. Needs the recording rules of this project.', links: [runbook('ServerRentalComponentNotOperational')],
  }, course(`count by (location) (present_over_time(${outage}[$__interval] offset -$__interval)) or on (location) 0 * ${max('location', componentsKnown)}`, '{{location}}')),
  table({
    id: 206, title: 'Outages in the time range', w: 14, h: 9, unit: 'none', sort: 'Began', descending: true, history: true, noValue: 'None known', links: [runbook('ServerRentalComponentNotOperational')],
    description: 'Each outage of a component in the time range, the latest first: when it began and how long it lasted, or has lasted so far, to two minutes. Times in which a component failed again and again are one outage, and maintenance is none. Needs the recording rules of this project.',
    columns: [
      { from: 'location', name: 'Location', width: 80, filter: false },
      { from: 'component', name: 'Component', filter: false, minWidth: 110 },
      { from: '#began', name: 'Began', unit: units.minute, width: 145 },
      { from: '#lasted', name: 'Lasted', unit: 's', decimals: 0, width: 110 },
    ],
  }, {
    began: milliseconds(began),
    lasted: `120 + ${ended} - on (location, component) ${began} > 0`,
  }).interval('2m').maxDataPoints(1000),
  timeline({
    id: 204, title: 'Incidents and maintenance over time', w: 10, h: 5, unit: 'none', mappings: [...values({ 0: ['None', colours.good] }), between(1, null, colours.bad, 'Ongoing')],
    description: 'Whether the provider reported ongoing incidents or scheduled maintenance windows.', links: [runbook('ServerRentalIncidentOngoing'), runbook('ServerRentalMaintenanceScheduled')],
    overrides: [forQuery('maintenance', set.mappings([...values({ 0: ['None', colours.good] }), between(1, null, colours.plain, 'Scheduled')]))],
  },
  course(max('', highest(own('incidents_ongoing'))), 'Incidents', 'incidents'),
  course(max('', highest(own('maintenances_scheduled'))), 'Maintenance', 'maintenance')),
  stat({
    id: 205, title: 'Provider timestamps', w: 10, h: 4, unit: 'dateTimeFromNow', links: [runbook('ServerRentalCatalogFrozen')],
    description: 'The day since which the overall state holds, the last update of the provider\'s status, and the time when it generated the catalog.',
    overrides: [forQuery('since', set.unit(units.date))],
  },
  // Midnight UTC, which is the day before in America: a time that is on the same day nearly everywhere.
  now(milliseconds(`(${max('', own('status_since_timestamp_seconds'))} + 10.5 * 3600)`), 'state holds since', 'since'),
  now(milliseconds(max('', own('status_updated_timestamp_seconds'))), 'status updated', 'updated'),
  now(milliseconds(max('', own('catalog_generated_timestamp_seconds'))), 'catalog generated', 'generated')),
];

const collectors = [
  table({
    id: 301, title: 'Collectors', w: 24, h: 12, unit: 'none', sort: 'In intervals', descending: true, links: [runbook('ServerRentalCollectorFailing'), runbook('ServerRentalDataStale')], key: ['collector', 'account'],
    description: 'Every collector, the one with the oldest data first. Public collectors have no account. With several exporters, a collector is failing if it fails at one of them, and its age is that of the freshest data.',
    columns: [
      { from: '#success', name: 'Last fetch', mappings: mappings.success, background: true, width: 105, align: 'center' },
      { from: 'collector', name: 'Collector', minWidth: 115 },
      { from: 'account', name: 'Account' },
      { from: '#age', name: 'Age', unit: units.duration },
      { from: '#interval', name: 'Interval', unit: units.duration },
      { from: '#intervals', name: 'In intervals', unit: 'none', decimals: 1, steps: steps.intervals, mappings: [neverText] },
      { from: '#last', name: 'Last success', unit: 'dateTimeFromNow', minWidth: 145 },
      { from: '#duration', name: 'Duration', unit: 's', decimals: 2 },
      { from: '#invalid', name: 'Invalid', unit: 'none', decimals: 0, steps: steps.noneIsWarning },
    ],
  }, {
    success: namePublic(succeeded),
    interval: namePublic(interval),
    age: namePublic(`(${age})`),
    intervals: namePublic(`(${intervals} or ${neverFetched})`),
    last: namePublic(milliseconds(max(collector, own('exporter_collector_last_success_timestamp_seconds', accountOrPublic)))),
    duration: namePublic(max(collector, own('exporter_collector_duration_seconds', accountOrPublic))),
    invalid: namePublic(max(collector, own('exporter_collector_invalid_items', accountOrPublic))),
  }),
  timeline({
    id: 302, title: 'Collectors that failed in the time range', w: 24, h: 9, unit: 'none', mappings: mappings.success,
    interval: '1m', description: 'The collectors whose last fetch failed at some time of the range, and when: at most 25. One line for all if there were none. Needs the recording rules of this project.', links: [runbook('ServerRentalCollectorFailing')],
  }, course(`(0 * present_over_time(${failing}[$__interval] offset -$__interval) or on (${collector}) topk(25, present_over_time(${failing}[$__range] @ end()))) and on () ${own('exporter_build_info')}`
    + ` or on () label_replace(0 * ${max('', collectorsKnown)} + 1, "collector", "all collectors", "", "")`, collectorLegend)),
  series({
    id: 303, title: 'Age of the data', overrides: palette.collectors(), w: 24, h: 12, points: 60, unit: 'none', decimals: 1, min: 0, softMax: 12, steps: steps.intervals, showSteps: true, fill: 0, legendRight: true, calcs: ['max', 'lastNotNull'],
    description: 'The age of the oldest data of each collector over all accounts, in its own intervals. It rises to one and falls with each fetch. The alert fires at the upper line; a collector above the lower one is late.',
    links: [runbook('ServerRentalDataStale')],
  }, course(max('collector', intervals), '{{collector}}')),
];

/** By endpoint. @param {string} [suffix] of the histogram's series; none for a native histogram */
const durations = (suffix = '') => `sum by (path) (rate(${own(`exporter_api_request_duration_seconds${suffix}`)}[$__rate_interval]))`;

// Most endpoints are requested once a minute or less, so rates over less than five minutes
// would show single requests as peaks. Without requests there is no latency, and the line
// connects to the next value.
const remaining = own('exporter_api_rate_limit_remaining', account);
const api = [
  series({
    id: 401, interval: '5m', title: 'Public requests per minute', w: 8, h: 9, unit: 'reqpm', decimals: 1, min: 0, stacked: true, softMax: 62, steps: [{ value: null, color: colours.good }, { value: 60, color: colours.bad }], showSteps: true,
    description: 'Requests without a token by exporter. The line is the provider\'s limit per address, which exporters with the same address share.', links: [runbook('ServerRentalRateLimited')],
  }, course(`sum by (instance) (rate(${own('exporter_api_requests_total', publicEndpoints)}[$__rate_interval])) * 60`, '{{instance}}')),
  series({
    id: 402, interval: '5m', title: 'Account requests per minute', w: 8, h: 9, unit: 'reqpm', decimals: 1, min: 0, fill: 0, links: [runbook('ServerRentalRateLimited')],
    description: 'Requests with a token by exporter, over all accounts. The dashed line is the sum of the limits of all tokens; the panel of remaining requests shows each token.',
    softMax: 125,
    overrides: [forQuery('limit', set.dashed, set.noFill, set.colour(colours.bad))],
  },
  course(orNoAccounts(`sum by (instance) (rate(${own('exporter_api_requests_total', accountEndpoints)}[$__rate_interval])) * 60`, 'instance'), '{{instance}}', 'made'),
  course(`sum(${max('account', own('exporter_api_rate_limit', account))})`, 'limit of all tokens', 'limit')),
  series({
    id: 403, title: 'Remaining requests', w: 8, h: 9, unit: 'none', decimals: 0, min: 0, softMax: 125, fill: 0, calcs: ['min', 'lastNotNull'], links: [runbook('ServerRentalRateLimited')],
    description: 'The remaining requests of the eight tokens that had the fewest in the time range, as of the last response. The dashed line is the lowest limit of a token.',
    overrides: [forQuery('limit', set.dashed, set.noFill, set.colour(colours.bad))],
  },
  course(orNoAccounts(lowest(8, 'account', `min by (account) (${remaining})`, `min by (account) (min_over_time(${remaining}[$__range:$__interval] @ end()))`), 'account'), '{{account}}', 'left'),
  course(`min(${own('exporter_api_rate_limit', account)})`, 'limit', 'limit')),
  table({
    id: 404, title: 'Errors in 24 hours', w: 12, h: 10, unit: 'none', sort: 'Errors', descending: true, links: [runbook('ServerRentalCollectorFailing')],
    description: 'The failed requests of the last 24 hours by endpoint and reason, over all chosen exporters.',
    columns: [
      { from: 'path', name: 'Path' },
      { from: 'reason', name: 'Reason' },
      { from: '#errors', name: 'Errors', unit: 'none', decimals: 0, width: 90 },
    ],
  }, { errors: `round(sum by (path, reason) (increase(${own('exporter_api_errors_total')}[24h]))) > 0 or on () label_replace(0 * ${max('', own('exporter_build_info'))}, "path", "None", "", "")` }),
  series({
    id: 406, interval: '5m', spanNulls: 2 * 60 * 60 * 1000, title: 'Latency', overrides: palette.collectors(), w: 12, h: 10, legendRight: true, unit: 's', log: true, fill: 0, calcs: ['max', 'lastNotNull'], links: [runbook('ServerRentalCollectorFailing')],
    description: 'Time from sending a request until its response was read, on average by endpoint, or the 95th percentile if Prometheus stores native histograms.',
  }, course(`histogram_quantile(0.95, ${durations()}) >= 0 or ${durations('_sum')} / ${durations('_count')} >= 0`, '{{path}}')),
  series({
    id: 405, interval: '5m', title: 'Requests per minute by HTTP status', w: 24, h: 9, unit: 'reqpm', decimals: 1, min: 0, stacked: true, bars: true,
    description: 'Requests by HTTP status, over all chosen exporters. The code is error if there was no response. The reasons of errors are above.',
    overrides: [forPattern('/^4\\d\\d$/', set.colour(colours.warn)), forPattern('/^5\\d\\d$/', set.colour(colours.bad)), forName('429', set.colour(colours.extra)), forName('error', set.colour(colours.gone))],
  }, course(`sum by (code) (rate(${own('exporter_api_requests_total')}[$__rate_interval])) * 60 > 0`, '{{code}}')),
  series({
    id: 407, title: 'Backoff', w: 24, h: 6, unit: units.duration, min: 0, softMax: 60, links: [runbook('ServerRentalRateLimited')],
    overrides: [forName('no backoff', set.colour(colours.muted)), forName('(public)', set.colour(colours.plain))],
    description: 'How long the exporter will send no requests after a 429, a 503 or an exhausted limit, by account.',
  }, course(`topk(8, ${namePublic(`clamp_min(${max('account', own('exporter_api_backoff_until_timestamp_seconds', accountOrPublic))} - time(), 0)`)} > 0)`
    + ` or on () label_replace(0 * ${max('', own('exporter_build_info'))}, "account", "no backoff", "", "")`, '{{account}}')),
];

const process = [
  series({
    id: 501, title: 'CPU', w: 6, h: 8, unit: 'percentunit', min: 0, description: 'CPU time of each exporter; 100 % is one core.',
  }, course(perExporter('process_cpu_seconds_total', (s) => `rate(${s}[$__rate_interval])`), '{{instance}}')),
  series({
    id: 502, title: 'Memory', w: 6, h: 8, unit: 'bytes', min: 0, description: 'Resident memory of each exporter, and its Go heap in use as a dashed line.',
    overrides: [forQuery('heap', set.dashed, set.noFill)],
  },
  course(perExporter('process_resident_memory_bytes'), '{{instance}}', 'resident'),
  course(perExporter('go_memstats_heap_inuse_bytes'), '{{instance}} heap', 'heap')),
  series({
    id: 503, title: 'Scrapes', w: 6, h: 8, unit: 's', min: 0, fill: 0, description: 'Duration of the scrapes of each exporter. A scrape never waits for the provider.', links: [runbook('ServerRentalExporterDown')],
  }, course(perExporter('scrape_duration_seconds'), '{{instance}}')),
  series({
    id: 504, title: 'Goroutines and open files', w: 6, h: 8, unit: 'none', decimals: 0, min: 0, fill: 0, description: 'Goroutines and open file descriptors of each exporter. A steady rise is a leak: please report it.',
  },
  course(perExporter('go_goroutines'), '{{instance}} goroutines', 'goroutines'),
  course(perExporter('process_open_fds'), '{{instance}} files', 'files')),
  table({
    id: 505, title: 'Builds and configuration', w: 24, h: 5, unit: 'none', sort: 'Exporter', links: [runbook('ServerRentalConfigReloadFailed')],
    description: 'The build and start time of each exporter, whether its last reload succeeded, and the errors while it served metrics. After a failed reload it keeps its current configuration.',
    columns: [
      { from: 'instance', name: 'Exporter' },
      { from: 'version', name: 'Version' },
      { from: 'revision', name: 'Revision' },
      { from: 'goversion', name: 'Go' },
      { from: '#started', name: 'Running since', unit: 'dateTimeFromNow', width: 145 },
      { from: '#reload', name: 'Configuration', mappings: mappings.reload, background: true, align: 'center', minWidth: 115 },
      { from: '#loaded', name: 'Loaded', unit: 'dateTimeFromNow', width: 145 },
      { from: '#errors', name: 'Errors in 24 h', unit: 'none', decimals: 0, steps: steps.noneIsWarning, minWidth: 115 },
    ],
  }, {
    info: info('instance', 'version, revision, goversion', own('exporter_build_info')),
    started: milliseconds(perExporter('process_start_time_seconds')),
    reload: max('instance', own('exporter_config_last_reload_successful')),
    loaded: milliseconds(max('instance', own('exporter_config_last_reload_success_timestamp_seconds'))),
    // The counter may be absent until the first error.
    errors: `${perExporter('promhttp_metric_handler_errors_total', (s) => `round(sum by (job, instance) (increase(${s}[24h])))`)} or 0 * ${max('instance', own('exporter_build_info'))}`,
  }),
];

export const status = () => dashboard('status', {
  description: 'Health of the provider and of the exporter: components, incidents, collectors, requests and limits.',
  from: 'now-6h', refresh: '30s', timezone: 'browser',
  rows: [
    { id: 100, title: 'Overview', panels: glance },
    { id: 200, title: 'Provider', panels: provider },
    { id: 300, title: 'Collectors', panels: collectors },
    { id: 400, title: 'Requests to the provider', panels: api, collapsed: true },
    { id: 500, title: 'Exporter', panels: process, collapsed: true },
  ],
});
