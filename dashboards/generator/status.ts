// Provider status and exporter health: which alerts fire, what the provider reports, then
// collectors, requests and the exporter's process.

import { dashboard, linkTo } from './lib/dashboard.js';
import { between, colours, course, fixed, flexible, forPattern, forQuery, mappings, now, rows, runbooks, series, set, stat, steps, table, timeline, units, valueOf, values, words } from './lib/panels.js';
import { account, accountOrPublic, age, collector, failed, gauge, inMaintenance, interval, intervals, location, max, milliseconds, own, perExporter, reported, selector, succeeded } from './lib/promql.js';

const alerts = table({
  id: 109, title: 'Alerts that fire', w: 24, h: 7, sort: 'Severity', hidden: ['__name__'], noValue: 'No alert is known to fire',
  description: 'Warnings and critical alerts of this project that fire, since when, and what they are about. The name leads to the runbook. They need the rules in alerts/.',
}, [
  fixed('severity', 'Severity', 85, { mappings: mappings.severity, background: true, align: 'center' }),
  fixed('alertname', 'Alert', 205, { mappings: [words('^ServerRental(.+)', colours.plain, '$1')], link: { title: 'Runbook', url: `${runbooks}#\${__value.raw}`, targetBlank: true } }),
  valueOf.ago('since', 'Since', 132, 'ALERTS_FOR_STATE{alertname=~"ServerRental.*", severity!="info"} and ignoring (alertstate) ALERTS{alertstate="firing"}'),
]);

const operational = gauge('location, component', 'component_operational', location);
const none = values({ 0: ['None', colours.good] });

const provider = [
  stat({
    id: 101, title: 'Provider', w: 6, h: 5, mappings: mappings.componentState, field: 'overall', background: true, alerts: ['ProviderNotOperational'],
    description: 'The provider\'s overall state: green if operational, blue if maintenance, red for any other state.',
  }, rows(gauge('overall', 'status_info'), 'A')),
  stat({
    id: 102, title: 'Components', w: 6, h: 5, unit: 'suffix: not operational', steps: steps.noneIsGood, mappings: [values({ 0: ['All operational', colours.good] })], alerts: ['ComponentNotOperational'],
    description: 'The number of components of the chosen locations that are not operational, those in maintenance included.',
  }, now(`sum(1 - ${operational})`, 'components')),
  stat({
    id: 103, title: 'Incidents', w: 12, h: 5, names: true, steps: steps.noneIsGood, alerts: ['IncidentOngoing', 'MaintenanceScheduled', 'CatalogFrozen'],
    description: 'Ongoing incidents and scheduled maintenance windows, and when the provider last updated its status and generated its catalog.',
    overrides: [forQuery('maintenance', set.steps(steps.rising(colours.plain))), forPattern('^(status|catalog)$', set.unit(units.ago), set.steps(steps.muted))],
  }, now(gauge('', 'incidents_ongoing'), 'incidents', 'incidents'), now(gauge('', 'maintenances_scheduled'), 'maintenance', 'maintenance'),
  now(milliseconds(gauge('', 'status_updated_timestamp_seconds')), 'status', 'updated'), now(milliseconds(gauge('', 'catalog_generated_timestamp_seconds')), 'catalog', 'generated')),
  table({
    id: 201, title: 'Components by location', w: 12, h: 11, sort: 'Location', noValue: 'No component is known', alerts: ['ComponentNotOperational'],
    description: 'The state of each component of each location: green if operational, blue if it says maintenance, red for any other state.',
    // One column for each component.
    overrides: [forPattern('^(?!Location$).+', set.mappings(mappings.componentState), set.custom('cellOptions', { type: 'color-background', mode: 'basic' }), set.custom('minWidth', 72), set.custom('inspect', true))],
  }, [
    fixed('location\\component', 'Location', 80, { link: linkTo('status', 'stock', 'Stock of this location', 'var-location=${__value.raw}') }),
  ], { state: gauge('location, component, state', 'component_state', location) })
    .transformations([{ id: 'groupingToMatrix', options: { columnField: 'component', rowField: 'location', valueField: 'state', emptyValue: 'empty' } }, { id: 'organize', options: { renameByName: { 'location\\component': 'Location' }, excludeByName: {}, indexByName: {} } }]),
  timeline({
    id: 202, title: 'Components that were not operational', w: 12, h: 11, mappings: [values({ 1: ['Not operational', colours.bad] })], alerts: ['ComponentNotOperational'],
    description: 'The components that the provider reported as not operational in the time range, with their state, and when. Nothing is drawn if there were none.',
    overrides: [forQuery('maintenance', set.mappings([values({ 1: ['Maintenance', colours.plain] })]))],
  },
  course(reported(failed), '{{component}} in {{location}}: {{state}}', 'failed'),
  course(reported(inMaintenance), '{{component}} in {{location}}: {{state}}', 'maintenance')),
  timeline({
    id: 204, title: 'Incidents and maintenance', w: 24, h: 5, mappings: [none, between(1, null, colours.bad, 'Ongoing')], alerts: ['IncidentOngoing', 'MaintenanceScheduled'],
    description: 'Whether the provider reported ongoing incidents or scheduled maintenance windows at some time in an interval.',
    overrides: [forQuery('maintenance', set.mappings([none, between(1, null, colours.plain, 'Scheduled')]))],
  },
  course(max('', `max_over_time(${own('incidents_ongoing')}[$__interval])`), 'Incidents', 'incidents'),
  course(max('', `max_over_time(${own('maintenances_scheduled')}[$__interval])`), 'Maintenance', 'maintenance')),
];

const collectors = [
  table({
    id: 301, title: 'Collectors', w: 24, h: 12, sort: 'Last fetch', noValue: 'No collector is known', alerts: ['CollectorFailing', 'DataStale', 'ItemsInvalid'],
    description: 'Whether the last fetch of each collector succeeded, those that failed first, the age of the data shown, in time and in intervals, and items that were not understood in full. Public collectors have no account. With several exporters, the better one counts.',
  }, [
    valueOf.state('success', 'Last fetch', 92, succeeded(accountOrPublic), { mappings: mappings.success }),
    flexible('collector', 'Collector', 118),
    flexible('account', 'Account', 140, { link: linkTo('status', 'accounts', 'This account', 'var-account=${__value.raw}') }),
    valueOf.duration('age', 'Age', 110, age(accountOrPublic)),
    valueOf.number('intervals', 'Intervals', 85, intervals(accountOrPublic), { decimals: 1, steps: steps.intervals }),
    valueOf.duration('interval', 'Interval', 110, interval(accountOrPublic)),
    valueOf.number('duration', 'Duration', 85, gauge(collector, 'exporter_collector_duration_seconds', accountOrPublic), { unit: 's', decimals: 2 }),
    valueOf.number('invalid', 'Invalid', 70, gauge(collector, 'exporter_collector_invalid_items', accountOrPublic), { steps: steps.rising(colours.muted, [1, colours.warn]) }),
  ]),
  timeline({
    id: 302, title: 'Collectors that failed', w: 24, h: 9, mappings: mappings.success, alerts: ['CollectorFailing'],
    description: 'Whether a fetch of each collector failed in an interval, for any of the chosen accounts. Gaps are times without data.',
  }, course(`min by (collector) (min_over_time(${own('exporter_collector_success', accountOrPublic)}[$__interval]))`, '{{collector}}')),
];

const rate = (labels: string, metric: string) => `sum by (${labels}) (rate(${own(metric)}[$__rate_interval]))`;
const half = { w: 12, h: 9, min: 0 };
const requests = [
  series({
    ...half, id: 405, title: 'Requests by HTTP status', interval: '5m', unit: 'reqpm', decimals: 1, areas: true, alerts: ['RateLimited'],
    description: 'Requests per minute by HTTP status, of all chosen exporters. The code is error if there was no response.',
    overrides: [forPattern('/^2\\d\\d$/', set.colour(colours.plain)), forPattern('/^4\\d\\d$/', set.colour(colours.warn)), forPattern('/^(5\\d\\d|error)$/', set.colour(colours.bad))],
  }, course(`60 * ${rate('code', 'exporter_api_requests_total')}`, '{{code}}')),
  table({
    id: 404, title: 'Errors in 24 hours', w: 12, h: 9, sort: 'Errors', descending: true, noValue: 'No error is known', alerts: ['CollectorFailing'],
    description: 'Failed requests of the last 24 hours by path and reason, of all chosen exporters.',
  }, [
    flexible('path', 'Path', 120), flexible('reason', 'Reason', 110),
    valueOf.number('errors', 'Errors', 80, `round(sum by (path, reason) (increase(${own('exporter_api_errors_total')}[24h]))) > 0`),
  ]),
  series({
    ...half, id: 406, title: 'Latency', interval: '5m', unit: 's', calcs: ['max', 'lastNotNull'], alerts: ['CollectorFailing'],
    description: 'Mean time from sending a request until its response was read, by path.',
  }, course(`${rate('path', 'exporter_api_request_duration_seconds_sum')} / ${rate('path', 'exporter_api_request_duration_seconds_count')}`, '{{path}}')).spanNulls(2 * 60 * 60 * 1000),
  series({
    ...half, id: 403, title: 'Remaining requests', decimals: 0, alerts: ['RateLimited'],
    description: 'What the last response said is left of the rate limit of each token, below the limit. Of more than ten accounts, only the ten lowest at each time.',
    overrides: [forQuery('limit', set.colour(colours.muted), set.custom('lineStyle', { fill: 'dash', dash: [8, 8] }))],
  },
  course(`bottomk(10, min by (account) (${own('exporter_api_rate_limit_remaining', account)}))`, '{{account}}', 'left'),
  course(`min(${own('exporter_api_rate_limit', account)})`, 'limit', 'limit')),
  series({
    ...half, w: 24, h: 6, id: 407, title: 'Backoff', unit: units.duration, noValue: 'No backoff is known', alerts: ['RateLimited'],
    description: 'How long the exporter sends no requests after a 429, a 503 or an exhausted limit, by account; without a name those without a token.',
  }, course(`${gauge('account', 'exporter_api_backoff_until_timestamp_seconds', accountOrPublic)} - time() > 0`, '{{account}} ')),
];

const process = [
  series({
    ...half, id: 501, title: 'CPU', unit: 'percentunit', interval: '2m', description: 'CPU time of each exporter; 100 % is one core.',
  }, course(perExporter(`rate(${selector('process_cpu_seconds_total')}[$__rate_interval])`), '{{instance}}')),
  series({
    ...half, id: 502, title: 'Memory', unit: 'bytes', description: 'Resident memory of each exporter.',
  }, course(perExporter(selector('process_resident_memory_bytes')), '{{instance}}')),
  table({
    id: 505, title: 'Builds and configuration', w: 24, h: 5, sort: 'Exporter', noValue: 'No exporter is known', alerts: ['ConfigReloadFailed'],
    description: 'The build and start time of each exporter, and whether its configuration was loaded. After a failed reload it keeps its current configuration.',
  }, [
    flexible('instance', 'Exporter', 150), flexible('version', 'Version', 80), flexible('revision', 'Revision', 100),
    flexible('goversion', 'Go', 90, { expr: gauge('instance, version, revision, goversion', 'exporter_build_info') }),
    valueOf.ago('started', 'Started', 125, perExporter(selector('process_start_time_seconds'))),
    valueOf.state('reload', 'Configuration', 115, gauge('instance', 'exporter_config_last_reload_successful'), { mappings: mappings.reload }),
  ]),
];

export const status = () => dashboard('status', {
  description: 'Health of the provider and of the exporter: alerts, components, incidents, collectors, requests and limits.',
  from: 'now-6h', refresh: '30s', timezone: 'browser',
  rows: [
    { id: 110, title: 'What is wrong now', panels: [alerts] },
    { id: 200, title: 'Provider', panels: provider },
    { id: 300, title: 'Collectors', panels: collectors },
    { id: 400, title: 'Requests to the provider', panels: requests, collapsed: true },
    { id: 500, title: 'Exporter', panels: process, collapsed: true },
  ],
});
