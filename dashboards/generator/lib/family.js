// What all dashboards share: data source, variables, colours, thresholds, value mappings,
// annotations, links, and a function for each kind of panel.

import {
  AnnotationQueryBuilder, CustomVariableBuilder, DashboardBuilder, DashboardLinkBuilder, DashboardLinkType, DatasourceVariableBuilder,
  FieldColorModeId, MappingType, QueryVariableBuilder, RowBuilder, SpecialValueMatch, TextBoxVariableBuilder, ThresholdsConfigBuilder, ThresholdsMode,
  VariableHide, VariableRefresh, VariableSort,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import {
  BarAlignment, LegendDisplayMode, LegendPlacement, ReduceDataOptionsBuilder, SortOrder, TableSortByFieldStateBuilder, TooltipDisplayMode,
  VizLegendOptionsBuilder, VizTooltipOptionsBuilder, BigValueColorMode, BigValueGraphMode, BigValueTextMode, GraphDrawStyle,
  LineInterpolation, ScaleDistribution, ScaleDistributionConfigBuilder, VisibilityMode, StackingConfigBuilder, StackingMode, GraphThresholdsStyleConfigBuilder, GraphThresholdsStyleMode,
  VizOrientation, VizTextDisplayOptionsBuilder, TableCellHeight,
} from '@grafana/grafana-foundation-sdk/common';
import * as stats from '@grafana/grafana-foundation-sdk/stat';
import * as tables from '@grafana/grafana-foundation-sdk/table';
import * as timelines from '@grafana/grafana-foundation-sdk/statetimeline';
import * as lines from '@grafana/grafana-foundation-sdk/timeseries';
import * as trends from '@grafana/grafana-foundation-sdk/trend';
import { atEnd, dataState, exportersUp, inMaintenance, intervals, known, lastKnown, location, max, milliseconds, never, neverFetched, orNeedsRules, own, ruled, succeeded } from './promql.js';

/**
 * @typedef {import('@grafana/grafana-foundation-sdk/dashboard').DynamicConfigValue} Property
 * @typedef {import('@grafana/grafana-foundation-sdk/dashboard').ValueMapping} Mapping
 * @typedef {import('@grafana/grafana-foundation-sdk/dashboard').Threshold} Step
 * @typedef {import('@grafana/grafana-foundation-sdk/dashboard').DataTransformerConfig} Transformation
 * @typedef {import('@grafana/grafana-foundation-sdk/dashboard').Panel} Panel
 * @typedef {{build: () => Panel}} PanelBuilder
 */

/** Uids never change: bookmarks and links depend on them. */
export const uids = { stock: 'server-rental-stock', accounts: 'server-rental-accounts', status: 'server-rental-status', plan: 'server-rental-plan' };

/** The version of Grafana 10.0. Newer versions of Grafana migrate it. */
const schemaVersion = 38;

/** The version of the SDK's panels. Without one, newer versions of Grafana migrate from the first. */
const pluginVersion = '10.4.0';

export const datasource = { type: 'prometheus', uid: '${datasource}' };

/** Red says bad, green good, and both nothing else; unknown is the colour of missing data only. */
export const colours = { good: 'green', fair: 'yellow', warn: 'orange', bad: 'red', plain: 'blue', muted: 'text', gone: 'dark-red', extra: 'purple', unknown: '#808080' };

/**
 * Units that show the whole value, and its sign first. Grafana's own units for currencies
 * abbreviate thousands, those for times change to minutes and weeks, and those for rates to K.
 */
export const units = {
  usd: 'suffix:USD',
  days: 'suffix:days',
  /** Seconds as 1 d 02:03:04. */
  duration: 'dtdhms',
  date: 'time:YYYY-MM-DD',
  minute: 'time:YYYY-MM-DD HH:mm',
  hours: 'suffix: h',
};

/** Thresholds in ascending order. The first step applies below all others. */
export const steps = {
  /** @param {string} colour */
  always: (colour) => [{ value: null, color: colour }],
  noneIsGood: [{ value: null, color: colours.good }, { value: 1, color: colours.bad }],
  noneIsWarning: [{ value: null, color: colours.good }, { value: 1, color: colours.warn }],
  noneIsBad: [{ value: null, color: colours.bad }, { value: 1, color: colours.good }],
  notBelowZero: [{ value: null, color: colours.bad }, { value: 0, color: colours.plain }],
  /** Days from today to the first unpaid renewal: ServerRentalRenewalsUnfunded fires from 7 on, and is critical from 2 on. */
  daysLeft: [{ value: null, color: colours.bad }, { value: 2.5, color: colours.warn }, { value: 7.5, color: colours.good }],
  /** Age of data in intervals: one is normal, ServerRentalDataStale fires at ten. */
  intervals: [{ value: null, color: colours.good }, { value: 3, color: colours.warn }, { value: 10, color: colours.bad }],
  /** @param {number} bad @param {number} warn */
  falling: (bad, warn) => [{ value: null, color: colours.bad }, { value: bad, color: colours.warn }, { value: warn, color: colours.good }],
};

/**
 * @param {Record<string, [string, string]>} texts the text of each value, and its colour
 * @returns {Mapping[]}
 */
export function values(texts) {
  const options = Object.fromEntries(Object.entries(texts).map(([value, [text, color]], index) => [value, { text, color, index }]));
  return [{ type: MappingType.ValueToText, options }];
}

/** What has a fixed meaning has the same colour in all panels. */
const transactionColours = { topup: 'blue', bonus: 'light-blue', renewal: 'orange', usage: 'purple' };

/** Collectors have the same colour as their endpoints: ten hues, neither red nor green. */
const collectorColours = {
  plans: '#5794f2', locations: '#b877d9', os: '#ff9830', status: '#fade2a', account: '#2bd4d9',
  topups: '#ff7eb6', transactions: '#a67c52', configurations: '#d8d9da', 'ssh.keys': '#8f3bb8', servers: '#1f60c4',
};

export const palette = {
  /** For any names: by their length, as Grafana's own palettes contain red and green. */
  names: () => ['blue', 'purple', 'orange', 'yellow', 'light-blue', 'light-purple'].map((color, i, all) => forPattern(`/^(.{${all.length}})*.{${i}}$/`, set.colour(color))),
  collectors: () => Object.entries(collectorColours).map(([name, color]) => forPattern(`^/?${name}$`, set.colour(color))),
  /** @param {string} [prefix] of the names in the legend */
  transactions: (prefix = '') => Object.entries(transactionColours).map(([type, color]) => forName(prefix + type, set.colour(color))),
};

/** No data is neither good nor bad. @type {Mapping} */
const noData = { type: MappingType.SpecialValue, options: { match: SpecialValueMatch.NullAndNan, result: { text: 'No data', color: colours.unknown } } };

/** The same in a cell. @type {Mapping} */
const empty = { type: MappingType.SpecialValue, options: { match: SpecialValueMatch.NullAndNan, result: { text: '–', color: colours.unknown } } };

/**
 * A range of values. Grafana 11 matches none if the end is missing, so that becomes a large number.
 * @param {number} from @param {number | null} to @param {string} color @param {string} [text] @returns {Mapping}
 */
export const between = (from, to, color, text) => ({ type: MappingType.RangeToText, options: { from, to: to ?? 1e18, result: { ...(text && { text }), color } } });

/** The age of data that was never fetched. */
export const neverText = between(never / 2, null, colours.bad, 'never');

/** @param {string} pattern @param {string} color @param {string} [text] @returns {Mapping} */
export const wordsLike = (pattern, color, text) => ({ type: MappingType.RegexToText, options: { pattern, result: { ...(text && { text }), color } } });

export const mappings = {
  /** Ten more is what was last known. */
  stock: values({ [-1]: ['–', colours.unknown], 1: ['In stock', colours.good], 0: ['Sold out', colours.gone], 11: ['In stock', colours.unknown], 10: ['Sold out', colours.unknown] }),
  offered: values({ 1: ['●', colours.good], 0: ['○', colours.muted], 11: ['●', colours.unknown], 10: ['○', colours.unknown] }),
  order: [wordsLike('.+', colours.plain, 'Order')],
  /** What was last known is in parentheses. */
  hits: [wordsLike('^0$', colours.muted), wordsLike('/^\\(/', colours.unknown), wordsLike('.+', colours.good)],
  /** What only the recording rules tell is -1 without them. */
  recorded: values({ [-1]: ['no rules', colours.unknown] }),
  rules: values({ [-1]: ['Needs the recording rules', colours.unknown] }),
  success: values({ 1: ['Working', colours.good], 0: ['Failing', colours.bad], 11: ['Working', colours.unknown], 10: ['Failing', colours.unknown] }),
  up: values({ 1: ['Up', colours.good], 0: ['Down', colours.bad] }),
  enabled: values({ 1: ['On', colours.good], 0: ['Off', colours.warn], 11: ['On', colours.unknown], 10: ['Off', colours.unknown] }),
  token: [...values({ 1: ['Rejected', colours.bad], 0.5: ['No data', colours.unknown], [-1]: ['–', colours.unknown], 0: ['Accepted', colours.good] }), ...values({ 11: ['Rejected', colours.unknown], 10.5: ['No data', colours.unknown], 10: ['Accepted', colours.unknown] })],
  /** Long names differ at their ends. */
  account: [wordsLike('^(.{7}).{4,}(.{9})$', colours.muted, '$1…$2')],
  reload: values({ 1: ['OK', colours.good], 0: ['Reload failed', colours.bad] }),
  /** States as the provider reports them. Only operational is known to be good. */
  componentState: [wordsLike('/^(.*), last known$/', colours.unknown, '$1'), wordsLike('/^operational$/i', colours.good, 'Operational'), wordsLike('/maintenance/i', colours.plain), wordsLike('/^(?!operational$).+/i', colours.bad)],
  /** Only active is documented as good. Unknown statuses are highlighted. */
  serverStatus: [wordsLike('/^\\(/', colours.unknown), wordsLike('^active$', colours.good), wordsLike('^suspended$', colours.bad), wordsLike('^(?!active$|suspended$).+', colours.warn)],
  topupStatus: [
    wordsLike('^paid$', colours.good), wordsLike('^(pending|confirming)$', colours.plain), wordsLike('^failed$', colours.bad),
    wordsLike('^(?!paid$|pending$|confirming$|failed$).+', colours.muted),
  ],
};

/** @param {Step[]} list */
export const thresholds = (list) => new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(list);

/** @param {FieldColorModeId} mode @param {string} [fixedColor] */
export const colour = (mode, fixedColor) => ({ build: () => ({ mode, ...(fixedColor && { fixedColor }) }) });

// Links

export const runbooks = 'https://github.com/server-rental-exporter/server_rental_exporter/blob/main/alerts/README.md';

/** A link to the runbook of an alert. @param {string} alert */
export function runbook(alert) {
  return new DashboardLinkBuilder(`Runbook: ${alert}`).type(DashboardLinkType.Link).url(`${runbooks}#${alert.toLowerCase()}`).targetBlank(true);
}

const titles = {
  stock: 'Server rental: stock and prices',
  accounts: 'Server rental: accounts and servers',
  status: 'Server rental: provider status and exporter health',
  plan: 'Server rental: one plan',
};

/** The variables of each dashboard, in the order of the variable bar. */
const variablesOf = {
  stock: ['datasource', 'job', 'instance', 'location', 'plan', 'currency', 'account', 'at', 'saved'],
  accounts: ['datasource', 'job', 'instance', 'account', 'location', 'plan', 'vat', 'at'],
  status: ['datasource', 'job', 'instance', 'account', 'location', 'at', 'provider'],
  plan: ['datasource', 'job', 'instance', 'plan', 'currency', 'at', 'saved'],
};

/**
 * Links from one of the dashboards. They keep the time range and all variables that both
 * dashboards have.
 * @param {keyof typeof uids} from
 */
export function linksFrom(from) {
  /**
   * A link from a panel or a cell. A variable in the query replaces the present choice.
   * @param {keyof typeof uids} to @param {string} title @param {string} [query]
   */
  const linkTo = (to, title, query = '') => {
    const kept = variablesOf[from].filter((v) => variablesOf[to].includes(v) && !['at', 'saved'].includes(v) && !query.includes(`var-${v}=`)).map((v) => `\${${v}:queryparam}`);
    return { title, url: `/d/${uids[to]}?${[...kept, ...(query ? [query] : []), '${__url_time_range}'].join('&')}`, targetBlank: false };
  };
  return {
    linkTo,
    /** The same as a link in a panel's menu. @param {keyof typeof uids} to @param {string} title */
    panelLink: (to, title) => new DashboardLinkBuilder(title).type(DashboardLinkType.Link).url(linkTo(to, title).url),
  };
}

// Variables

/**
 * @param {string} name
 * @param {string} label
 * @param {string} query
 * @param {string} description
 * @param {string} [allValue] what All means; all values that are offered if empty
 */
function choice(name, label, query, description, allValue = '.+') {
  return new QueryVariableBuilder(name).label(label).description(description).datasource(datasource).query(query)
    .refresh(VariableRefresh.OnTimeRangeChanged).sort(VariableSort.NaturalAsc).multi(true).includeAll(true).allValue(allValue)
    .current({ selected: true, text: ['All'], value: ['$__all'] });
}

/** A hidden variable, of the time at which something was last known. @param {string} name @param {string} label @param {string} selector */
const moment = (name, label, selector) => ({ build: () => ({ ...choice(name, label, `query_result(${lastKnown(selector)})`, 'A sign while there is data, else the time of the last data within a day.', '').regex('/at="([^"]+)"/')
  .multi(false).includeAll(false).current({ text: '+', value: '+' }).hide(VariableHide.HideVariable).build(), skipUrlSync: true }) });

/** @type {Record<string, () => {build: () => import('@grafana/grafana-foundation-sdk/dashboard').VariableModel}>} */
const variables = {
  datasource: () => new DatasourceVariableBuilder('datasource').label('Data source').description('The Prometheus that scrapes the exporter.').type('prometheus')
    .hide(VariableHide.HideLabel).current({ selected: true, text: 'default', value: 'default' }),
  // Hidden, because few have more than one exporter; links and the address keep them.
  job: () => choice('job', 'Job', 'label_values(server_rental_exporter_build_info, job)', 'Scrape jobs of the exporter.').hide(VariableHide.HideVariable),
  instance: () => choice('instance', 'Instance', 'label_values(server_rental_exporter_build_info{job=~"$job"}, instance)', 'Exporters. Several exporters of the same provider show everything once.').hide(VariableHide.HideVariable),
  at: () => moment('at', 'At', known.exporter),
  'accounts.at': () => moment('at', 'At', known.accounts),
  'stock.at': () => moment('at', 'At', known.plans),
  'plan.at': () => moment('at', 'At', known.plans),
  provider: () => moment('provider', 'Provider', known.status),
  saved: () => moment('saved', 'Saved', known.saved),
  // From a metric that exists even while the token is rejected.
  account: () => choice('account', 'Account', `label_values(${own('exporter_collector_interval_seconds', 'account!=""')}, account)`, 'Accounts in the exporter\'s configuration.'),
  location: () => choice('location', 'Location', `label_values(${own('location_info')}, location)`, 'Locations of the provider.', '.*'),
  plan: () => choice('plan', 'Plan', `label_values(${own('plan_info')}, plan)`, 'Plans of the catalog.'),
  // All means those that are listed here, so that no query needs a filter for the location.
  // Plans without a location have no such label and belong to All locations only.
  'stock.plan': () => choice('plan', 'Plan', `label_values({__name__=~"server_rental_(plan_info|plan_offered|configuration_info)", job=~"$job", instance=~"$instance", ${location}}, plan)`,
    'Plans that are offered or saved in the chosen locations.', ''),
  'plan.plan': () => choice('plan', 'Plan', `label_values(${own('plan_info')}, plan)`, 'Plan of the catalog.', '').multi(false).includeAll(false).current({ text: '', value: '' }),
  vat: () => new TextBoxVariableBuilder('vat').label('VAT, percent').description('Added to prices and amounts due in panels whose titles name it.').defaultValue('0')
    .current({ selected: true, text: '0', value: '0' }),
  currency: () => new CustomVariableBuilder('currency').label('Currency').description('Currency of catalog prices. Balances and servers are in US dollars only.')
    .values('USD : usd, EUR : eur').current({ selected: true, text: 'USD', value: 'usd' })
    .options([{ selected: true, text: 'USD', value: 'usd' }, { selected: false, text: 'EUR', value: 'eur' }]),
};

// Annotations

/**
 * Marks events: each series of the query has the time of an event in seconds as its value,
 * in one step only.
 * @param {string} name
 * @param {string} expr
 * @param {string} iconColor
 * @param {{title: string, text: string, tags: string}} o
 */
function annotation(name, expr, iconColor, o) {
  const value = `1000 * (${expr})`;
  const query = new AnnotationQueryBuilder().name(name).datasource(datasource).enable(true).iconColor(iconColor).expr(value).build();
  // The SDK has no fields for the data source's own options. Grafana 10 and 11 read the
  // query and its step from here, newer versions from the target. Steps of two minutes
  // contain two scrapes.
  const step = '2m';
  return {
    build: () => ({
      ...query, step, useValueForTime: true, titleFormat: o.title, textFormat: o.text, tagKeys: o.tags,
      target: /** @type {any} */ ({ refId: 'Anno', datasource, expr: value, interval: step, range: true, instant: false }),
    }),
  };
}

/**
 * When something began within the interval after each step: the first minute of it.
 * @param {string} by @param {string} bad while it lasts @param {string} known
 */
const beginning = (by, bad, known) => `min by (${by}) (min_over_time((time() + 0 * (${bad}))[$__interval:1m] offset -$__interval)) and on (${by}) ${known} unless on (${by}) (${bad})`;

const operational = own('component_operational', location);
const outages = annotation('Outages', beginning('location, component', `${operational} == 0 unless on (location, component) ${inMaintenance}`, operational),
  colours.bad, { title: '{{component}} in {{location}}', text: 'The component failed; maintenance does not count.', tags: 'location,component' });
const incidents = annotation('Incidents', beginning('', `${own('incidents_ongoing')} > 0`, own('incidents_ongoing')),
  colours.bad, { title: 'Incident', text: 'The provider began to report an incident.', tags: '' });

/** Only what concerns a dashboard: money does not depend on outages. */
const annotationsOf = { stock: [outages], accounts: [], status: [outages, incidents], plan: [] };

// Queries

/**
 * An instant query, with a legend.
 * @param {string} expr
 * @param {string} legend
 * @param {string} [refId]
 */
export const now = (expr, legend, refId = 'A') => new DataqueryBuilder().datasource(datasource).expr(expr).instant().legendFormat(legend).refId(refId);

/** A range query. @param {string} expr @param {string} legend @param {string} [refId] */
export const course = (expr, legend, refId = 'A') => new DataqueryBuilder().datasource(datasource).expr(expr).range().legendFormat(legend).refId(refId);

// Panels

/**
 * Options of every panel.
 * @typedef {object} Common
 * @property {number} id never changes, so that links to the panel keep working
 * @property {string} title
 * @property {string} description
 * @property {number} w
 * @property {number} h
 * @property {string} unit
 * @property {number} [decimals]
 * @property {Step[]} [steps]
 * @property {Mapping[]} [mappings]
 * @property {string} [noValue]
 * @property {import('@grafana/grafana-foundation-sdk/cog').Builder<import('@grafana/grafana-foundation-sdk/dashboard').DashboardLink>[]} [links]
 * @property {{matcher: {id: string, options?: any}, properties: Property[]}[]} [overrides]
 */

/** @template {stats.PanelBuilder | tables.PanelBuilder | timelines.PanelBuilder | lines.PanelBuilder | trends.PanelBuilder | import('@grafana/grafana-foundation-sdk/barchart').PanelBuilder} T
 * @param {T} panel @param {Common} o @returns {T}
 */
export function common(panel, o) {
  panel.id(o.id).title(o.title).description(o.description).datasource(datasource).span(o.w).height(o.h).unit(o.unit);
  if (o.decimals !== undefined) panel.decimals(o.decimals);
  if (o.mappings) panel.mappings(o.mappings);
  if (o.noValue) panel.noValue(o.noValue);
  if (o.links) panel.links(o.links);
  panel.thresholds(thresholds(o.steps ?? steps.always(colours.plain)));
  for (const override of o.overrides ?? []) panel.withOverride(override);
  return panel;
}

/** An override for the series of one query. @param {string} refId @param {Property[]} properties */
export const forQuery = (refId, ...properties) => ({ matcher: { id: 'byFrameRefID', options: refId }, properties });
/** @param {string} name @param {Property[]} properties */
export const forName = (name, ...properties) => ({ matcher: { id: 'byName', options: name }, properties });
/** @param {string} pattern @param {Property[]} properties */
export const forPattern = (pattern, ...properties) => ({ matcher: { id: 'byRegexp', options: pattern }, properties });

export const set = {
  /** @param {string} value */
  unit: (value) => ({ id: 'unit', value }),
  /** @param {number} value */
  decimals: (value) => ({ id: 'decimals', value }),
  /** @param {string} fixedColor */
  colour: (fixedColor) => ({ id: 'color', value: { mode: FieldColorModeId.Fixed, fixedColor } }),
  /** @param {Step[]} list */
  steps: (list) => ({ id: 'thresholds', value: { mode: ThresholdsMode.Absolute, steps: list } }),
  /** @param {Mapping[]} value */
  mappings: (value) => ({ id: 'mappings', value }),
  dashed: { id: 'custom.lineStyle', value: { fill: 'dash', dash: [8, 8] } },
  noFill: { id: 'custom.fillOpacity', value: 0 },
  thin: { id: 'custom.lineWidth', value: 1 },
};

/**
 * One or a few large numbers. A query without data shows a grey "No data": what is known to
 * be nothing has to be a zero.
 * @param {Common & {text?: BigValueTextMode, colourMode?: BigValueColorMode, horizontal?: boolean, field?: string, titleSize?: number, valueSize?: number}} o
 *   field names a label to show instead of the value; sizes are in pixels, by default as large as fits
 * @param {...{build: () => any}} queries
 */
export function stat(o, ...queries) {
  const sizes = new VizTextDisplayOptionsBuilder().titleSize(o.titleSize ?? 14); // by default tiny in low panels
  if (o.valueSize) sizes.valueSize(o.valueSize);
  const panel = common(new stats.PanelBuilder(), { ...o, mappings: [...(o.mappings ?? []), noData] })
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(['lastNotNull']).fields(o.field ? `/^${o.field}$/` : '').values(false))
    .graphMode(BigValueGraphMode.None)
    .colorMode(o.colourMode ?? BigValueColorMode.Value)
    .textMode(o.text ?? BigValueTextMode.Auto).text(sizes)
    .orientation(o.horizontal ? VizOrientation.Horizontal : VizOrientation.Auto).wideLayout(false)
    .colorScheme(colour(FieldColorModeId.Thresholds));
  return panel.targets(queries);
}

const joinBy = (/** @type {string} */ byField) => ({ id: 'joinByField', options: { byField, mode: 'outer' } });

/**
 * Lines or bars over time. The legend is a list, or a table if it has calculations.
 * @param {Common & {stacked?: boolean, bars?: boolean, steps?: Step[], showSteps?: boolean, calcs?: string[], min?: number, softMin?: number, softMax?: number, log?: boolean, stepped?: boolean, legendRight?: boolean, interval?: string, points?: number, fill?: number, spanNulls?: number, after?: boolean, trend?: boolean, axisWidth?: number}} o
 *   after draws each bar to the right of its time; with trend, the first query is the x axis;
 *   Grafana cuts long labels of an axis without an axisWidth, in pixels
 * @param {...{build: () => any}} queries
 */
export function series(o, ...queries) {
  const panel = common(o.trend ? new trends.PanelBuilder() : new lines.PanelBuilder(), o)
    .drawStyle(o.bars ? GraphDrawStyle.Bars : GraphDrawStyle.Line)
    .lineWidth(o.bars ? 0 : 2)
    .fillOpacity(o.fill ?? (o.bars ? 70 : o.stacked ? 30 : 5))
    .lineInterpolation(o.stepped ? LineInterpolation.StepAfter : LineInterpolation.Linear)
    .showPoints(VisibilityMode.Never)
    .colorScheme(colour(FieldColorModeId.Shades, colours.plain))
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending))
    .legend(new VizLegendOptionsBuilder().displayMode(o.calcs ? LegendDisplayMode.Table : LegendDisplayMode.List).showLegend(true)
      .placement(o.legendRight ? LegendPlacement.Right : LegendPlacement.Bottom).calcs(o.calcs ?? []));
  if (o.stacked) panel.stacking(new StackingConfigBuilder().mode(StackingMode.Normal).group('A'));
  if (o.showSteps) panel.thresholdsStyle(new GraphThresholdsStyleConfigBuilder().mode(GraphThresholdsStyleMode.Dashed));
  if (o.min !== undefined) panel.min(o.min);
  if (o.softMin !== undefined) panel.axisSoftMin(o.softMin);
  if (o.softMax !== undefined) panel.axisSoftMax(o.softMax);
  if (o.axisWidth) panel.axisWidth(o.axisWidth);
  if (o.after) panel.barAlignment(BarAlignment.After);
  if (o.log) panel.scaleDistribution(new ScaleDistributionConfigBuilder().type(ScaleDistribution.Log).log(2));
  if (o.interval) panel.interval(o.interval);
  if (o.points) panel.maxDataPoints(o.points);
  if (o.spanNulls) panel.spanNulls(o.spanNulls);
  if (o.trend) panel.transformations([joinBy('Time'), { id: 'organize', options: { excludeByName: { Time: true }, indexByName: {}, renameByName: {} } }]);
  return panel.targets(queries);
}

/**
 * A coloured band for each series. The legend lists the texts of the value mappings, which
 * have to cover all values.
 * @param {Common & {interval?: string, points?: number}} o
 * @param {...{build: () => any}} queries
 */
export function timeline(o, ...queries) {
  const panel = common(new timelines.PanelBuilder(), o)
    .mergeValues(true).showValue(VisibilityMode.Never).rowHeight(0.8).lineWidth(0).fillOpacity(75)
    // Thresholds would replace the texts in the legend.
    .colorScheme(colour(FieldColorModeId.PaletteClassic))
    .legend(new VizLegendOptionsBuilder().displayMode(LegendDisplayMode.List).placement(LegendPlacement.Bottom).showLegend(true).calcs([]))
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Single).sort(SortOrder.None))
    // Drops the empty answer of a query without series, which is an error in this panel.
    .transformations([{ id: 'filterFieldsByName', options: { include: { pattern: '/.*/' } } }])
    .targets(queries);
  if (o.interval) panel.interval(o.interval);
  if (o.points) panel.maxDataPoints(o.points);
  return panel;
}

/**
 * A column of a table: its source and its format.
 * @typedef {object} Column
 * @property {string} from a label, or # and the refId of a query for its value
 * @property {string} name its heading
 * @property {string} [unit]
 * @property {number} [decimals]
 * @property {number} [width]
 * @property {Step[]} [steps] colours the text
 * @property {Mapping[]} [mappings] with colours for the text
 * @property {boolean} [background] colours the cell instead
 * @property {{title: string, url: string, targetBlank: boolean}} [link]
 * @property {'left'|'center'|'right'} [align]
 * @property {boolean} [filter] whether a label can be filtered, true by default; false where a variable does the same
 * @property {boolean} [hidden] has no column, but links use it
 * @property {number} [minWidth] of a column whose width depends on the window
 */

/** @param {Column} c @returns {Property[]} */
function looks(c) {
  /** @type {Property[]} */
  const all = [];
  if (c.unit) all.push(set.unit(c.unit));
  if (c.decimals !== undefined) all.push(set.decimals(c.decimals));
  // The default of the panel is what an empty table says.
  if (c.from.startsWith('#')) all.push({ id: 'noValue', value: '–' });
  if (c.width) all.push({ id: 'custom.width', value: c.width });
  if (c.minWidth) all.push({ id: 'custom.minWidth', value: c.minWidth });
  if (c.hidden) all.push({ id: 'custom.hidden', value: true });
  if (c.align) all.push({ id: 'custom.align', value: c.align });
  if (c.mappings || c.steps) all.push(set.mappings([...(c.mappings ?? []), empty]));
  if (c.steps) all.push(set.steps(c.steps));
  if (c.background) {
    all.push({ id: 'custom.cellOptions', value: { type: 'color-background', mode: 'basic' } });
  } else if (c.mappings || c.steps) {
    all.push({ id: 'custom.cellOptions', value: { type: 'color-text' } });
  }
  if (c.link) all.push({ id: 'links', value: [c.link] });
  if (c.from === 'account') all.push(set.mappings(mappings.account));
  // The filter's icon takes room from the heading, and nobody filters numbers by value.
  if (!c.from.startsWith('#') && c.filter !== false) all.push({ id: 'custom.filterable', value: true });
  return all;
}

/**
 * A table of which each row is one set of labels. Fields that are not columns are hidden.
 * With a key, rows are joined by it, and queries without data leave no empty column. Only
 * the first query then has labels other than the key.
 * @param {Common & {columns: Column[], sort: string, descending?: boolean, drop?: string[], before?: Transformation[], key?: string[], first?: number, history?: boolean, only?: string[]}} o
 *   first is the number of columns before those that only the data knows; the others follow
 *   in the order of the queries; history has a row for each time with a result; only names
 *   queries without which there is no row
 * @param {Record<string, string>} queries by refId
 */
export function table(o, queries) {
  const refIds = Object.keys(queries);
  /** Grafana names a value after its query, unless there is only one. @param {string} from */
  const field = (from) => (!from.startsWith('#') ? from : refIds.length === 1 ? 'Value' : `Value ${from}`);
  const { columns } = o;
  const used = columns.map((c) => field(c.from));
  // Grafana joins by one field.
  const key = o.key?.length === 1 ? o.key[0] : 'key';
  const query = (/** @type {string} */ refId, /** @type {number} */ i) => {
    if (!o.key || o.key.length === 1) return queries[refId];
    const keyed = `label_join(${queries[refId]}, "key", "/", ${o.key.map((label) => `"${label}"`).join(', ')})`;
    return i === 0 ? keyed : max('key', keyed);
  };
  const unused = ['Time', 'Value', ...refIds.map((r) => `Value #${r}`), ...(o.key ? [key, ...o.key] : []), ...(o.drop ?? [])].filter((f) => !used.includes(f));
  const join = o.key
    ? [{ id: 'filterFieldsByName', options: { exclude: { pattern: '/^Time$/' } } }, joinBy(key)]
    : [{ id: 'merge', options: {} }];
  const panel = common(new tables.PanelBuilder(), o)
    .targets(refIds.map((r, i) => (o.history ? course : now)(query(r, i), '', r).format(PromQueryFormat.Table)))
    .transformations([
      ...(o.before ?? []),
      ...(refIds.length > 1 ? join : []),
      ...(o.only ? [{ id: 'filterByValue', options: { type: 'include', match: 'all', filters: o.only.map((refId) => ({ fieldName: `Value #${refId}`, config: { id: 'isNotNull', options: {} } })) } }] : []),
      {
        id: 'organize',
        options: {
          excludeByName: Object.fromEntries(unused.map((f) => [f, true])),
          indexByName: Object.fromEntries(columns.slice(0, o.first).map((_, i) => [used[i], i])),
          renameByName: Object.fromEntries(columns.map((c, i) => [used[i], c.name])),
        },
      },
    ])
    .cellHeight(TableCellHeight.Sm).filterable(false).minWidth(90)
    .sortBy([new TableSortByFieldStateBuilder().displayName(o.sort).desc(o.descending ?? false)])
    .colorScheme(colour(FieldColorModeId.Thresholds));
  for (const c of columns) panel.overrideByName(c.name, looks(c));
  return panel;
}

// Dashboards

/** Whether what a dashboard shows is current: the same on each. @param {keyof typeof uids} name */
function health(name) {
  const { panelLink } = linksFrom(name);
  /** @param {Common} o @param {string} expr @param {string} legend */
  const tile = (o, expr, legend) => stat({
    ...o, colourMode: BigValueColorMode.Background, links: [...(o.links ?? []), ...(name === 'status' ? [] : [panelLink('status', 'Exporter health')])],
  }, now(expr, legend));
  const size = { w: 4, h: 3 };
  return [
    tile({
      ...size, w: 5, id: 901, title: 'Exporters', unit: 'none', mappings: mappings.up, steps: steps.noneIsBad,
      description: 'Whether Prometheus can scrape each exporter.', links: [runbook('ServerRentalExporterDown')],
    }, exportersUp, '{{instance}}'),
    tile({
      ...size, w: 5, id: 902, title: 'Collectors', unit: 'suffix: failing', steps: steps.noneIsGood, mappings: values({ 0: ['Working', colours.good] }),
      description: 'The number of collectors whose last fetch failed. Their data is stale and disappears after max_age.', links: [runbook('ServerRentalCollectorFailing')],
    }, `sum(1 - ${succeeded})`, 'collectors'),
    tile({
      ...size, w: 5, id: 903, title: 'Oldest data', unit: 'suffix: intervals', decimals: 1, steps: steps.intervals, mappings: [neverText],
      description: 'The age of the oldest data in intervals of its collector. One is normal, the alert fires at ten.', links: [runbook('ServerRentalDataStale')],
    }, `max(${intervals} or ${neverFetched})`, 'intervals'),
    // The dashboard of the status lists them instead.
    ...(name === 'status' ? [] : [tile({
      ...size, id: 904, title: 'Alerts', unit: 'none', steps: steps.noneIsGood, mappings: [...values({ 0: ['None', colours.good] }), ...mappings.rules], links: [runbook('ServerRentalExporterDown')],
      description: 'The number of warnings and critical alerts of this project that fire. The dashboard of the status lists them.',
    }, orNeedsRules(`count(${alerts}) or 0 * max(${ruled})`, ruled), 'alerts')]),
    stat({
      ...size, w: name === 'status' ? 9 : 5, id: 905, title: 'Data', unit: units.minute, valueSize: 18, steps: steps.always(colours.muted), text: /** @type {any} */ ('value_and_name'), links: [runbook('ServerRentalExporterDown')],
      description: 'Whether what is shown is up to date. If not, since when, and why: what was known then is shown for a day, in grey.',
      overrides: [forPattern('/ since$/', set.colour(colours.bad))],
    }, now(milliseconds(`(${dataState({ stock: 'plans', plan: 'plans', accounts: 'account', status: 'status' }[name])})`), '{{state}}')),
  ];
}

/**
 * @typedef {{id: number, title: string, panels: PanelBuilder[], collapsed?: boolean}} Row
 */

const width = 24;

/** Those of severity info tell news, such as a restock. */
export const alerts = 'ALERTS{alertname=~"ServerRental.*", alertstate="firing", severity!="info"}';

/**
 * Places each panel as high as possible, then as far left as possible, so that small panels
 * stack beside a large one. Returns where the next row starts.
 * @param {Panel[]} panels @param {number} top
 */
function place(panels, top) {
  const depth = Array(width).fill(top);
  for (const panel of panels) {
    const { w, h } = panel.gridPos ?? { w: width, h: 1 };
    let at = { x: 0, y: Infinity };
    for (let x = 0; x + w <= width; x++) {
      const y = Math.max(...depth.slice(x, x + w));
      if (y < at.y) at = { x, y };
    }
    panel.gridPos = { ...at, w, h };
    depth.fill(at.y + h, at.x, at.x + w);
  }
  return Math.max(...depth);
}

/**
 * @param {keyof typeof uids} name
 * @param {{description: string, from: string, refresh: string, timezone: string, top?: Row[], rows: Row[]}} o
 *   top is above the health
 */
export function dashboard(name, o) {
  const b = new DashboardBuilder(titles[name]).uid(uids[name]).description(o.description)
    // Not in the list of dashboards, which would pass several plans.
    .tags([...(name === 'plan' ? [] : ['server-rental']), 'prometheus']).time({ from: o.from, to: 'now' }).refresh(o.refresh).timezone(o.timezone)
    .tooltip(1).readonly().version(1)
    .variables(variablesOf[name].map((v) => (variables[`${name}.${v}`] ?? variables[v])()))
    .links([
      new DashboardLinkBuilder('Dashboards').type(DashboardLinkType.Dashboards).tags(['server-rental']).asDropdown(true).includeVars(true).keepTime(true),
    ]);
  let y = 0;
  /** Panels on which a mark would hide what it marks. @type {number[]} */
  const hidden = [];
  for (const { id, title, collapsed = false, panels } of [...(o.top ?? []), { id: 900, title: 'Health', panels: health(name) }, ...o.rows]) {
    const row = new RowBuilder(title).id(id).collapsed(collapsed).gridPos({ x: 0, y, w: width, h: 1 });
    const built = panels.map((p) => ({ ...p.build(), pluginVersion }));
    // What was last known is of use, but not of the provider's status.
    if (id !== 900 && name !== 'status') for (const t of built.flatMap((p) => /** @type {any[]} */ (p.targets))) if (t.instant) t.expr = atEnd(t.expr);
    hidden.push(...built.filter((p) => p.type === 'state-timeline').map((p) => p.id ?? 0));
    const end = place(built, y + 1);
    // A collapsed row contains its panels and takes one line.
    if (collapsed) for (const panel of built) row.withPanel({ build: () => panel });
    b.withRow(row);
    if (!collapsed) for (const panel of built) b.withPanel({ build: () => panel });
    y = collapsed ? y + 1 : end;
  }
  b.annotations(annotationsOf[name].map((a) => ({ build: () => ({ ...a.build(), filter: { exclude: true, ids: hidden } }) })));
  return { ...b.build(), schemaVersion };
}
