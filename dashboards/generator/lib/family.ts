// What all dashboards share: data source, variables, colours, thresholds, value mappings,
// annotations, links, and a function for each kind of panel.

import * as barcharts from '@grafana/grafana-foundation-sdk/barchart';
import * as ui from '@grafana/grafana-foundation-sdk/common';
import * as sdk from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import * as stats from '@grafana/grafana-foundation-sdk/stat';
import * as tables from '@grafana/grafana-foundation-sdk/table';
import * as timelines from '@grafana/grafana-foundation-sdk/statetimeline';
import * as lines from '@grafana/grafana-foundation-sdk/timeseries';
import * as trends from '@grafana/grafana-foundation-sdk/trend';
import { atEnd, dataState, exportersUp, intervals, known, lastKnown, location, max, milliseconds, never, orNeedsRules, own, ruled, succeeded } from './promql.js';

type Property = sdk.DynamicConfigValue;
type Mapping = sdk.ValueMapping;
type Step = sdk.Threshold;
type Query = ReturnType<typeof now>;

/** The versions of Grafana 10.0 and of the SDK's panels, from which newer versions of Grafana migrate. */
const schemaVersion = 38;
const pluginVersion = '10.4.0';
const datasource = { type: 'prometheus', uid: '${datasource}' };

/** Red says bad, green good, and both nothing else; unknown is the colour of missing data only. */
export const colours = { good: 'green', fair: 'yellow', warn: 'orange', bad: 'red', plain: 'blue', muted: 'text', gone: 'dark-red', extra: 'purple', unknown: '#808080' };

/** Units that show the whole value, and its sign first: Grafana's own abbreviate thousands or change to minutes and weeks. */
export const units = {
  usd: 'suffix:USD',
  duration: 'dtdhms', // seconds as 1 d 02:03:04
  date: 'time:YYYY-MM-DD',
  minute: 'time:YYYY-MM-DD HH:mm',
  ago: 'dateTimeFromNow',
  hours: 'suffix: h',
};

/** Thresholds in ascending order. The first colour applies below all others. */
const rising = (first: string, ...more: [from: number, color: string][]): Step[] => [{ value: null, color: first }, ...more.map(([value, color]) => ({ value, color }))];
export const steps = {
  rising,
  muted: rising(colours.muted),
  noneIsGood: rising(colours.good, [1, colours.bad]),
  noneIsWarning: rising(colours.good, [1, colours.warn]),
  noneIsBad: rising(colours.bad, [1, colours.good]),
  notBelowZero: rising(colours.bad, [0, colours.plain]),
  daysLeft: rising(colours.bad, [2.5, colours.warn], [7.5, colours.good]), // ServerRentalRenewalsUnfunded fires from 7 on, and is critical from 2 on
  intervals: rising(colours.good, [3, colours.warn], [10, colours.bad]), // of age: one is normal, ServerRentalDataStale fires at ten
  falling: (bad: number, warn: number) => rising(colours.bad, [bad, colours.warn], [warn, colours.good]),
};

/** The text of each value, and its colour. */
export const values = (texts: Record<string, [string, string]>): Mapping[] => [
  { type: sdk.MappingType.ValueToText, options: Object.fromEntries(Object.entries(texts).map(([value, [text, color]], index) => [value, { text, color, index }])) },
];

/** What has a fixed meaning has the same colour in all panels: ten hues for collectors and their endpoints, neither red nor green. */
const collectorColours = {
  plans: '#5794f2', locations: '#b877d9', os: '#ff9830', status: '#fade2a', account: '#2bd4d9',
  topups: '#ff7eb6', transactions: '#a67c52', configurations: '#d8d9da', 'ssh.keys': '#8f3bb8', servers: '#1f60c4',
};
const transactionColours = { topup: 'blue', bonus: 'light-blue', renewal: 'orange', usage: 'purple' };

export const palette = {
  /** For any names: by their length, as Grafana's own palettes contain red and green. */
  names: () => ['blue', 'purple', 'orange', 'yellow', 'light-blue', 'light-purple'].map((color, i, all) => forPattern(`/^(.{${all.length}})*.{${i}}$/`, set.colour(color))),
  collectors: () => Object.entries(collectorColours).map(([name, color]) => forPattern(`^/?${name}$`, set.colour(color))),
  transactions: (prefix: string) => Object.entries(transactionColours).map(([type, color]) => forName(prefix + type, set.colour(color))),
};

/** No data is neither good nor bad. */
const noData = (text: string): Mapping => ({ type: sdk.MappingType.SpecialValue, options: { match: sdk.SpecialValueMatch.NullAndNan, result: { text, color: colours.unknown } } });
/** A range of values. Grafana 11 matches none if the end is missing, so that becomes a large number. */
export const between = (from: number, to: number | null, color: string, text?: string): Mapping => ({ type: sdk.MappingType.RangeToText, options: { from, to: to ?? 1e18, result: { ...(text && { text }), color } } });
export const wordsLike = (pattern: string, color: string, text?: string): Mapping => ({ type: sdk.MappingType.RegexToText, options: { pattern, result: { ...(text && { text }), color } } });

/** Ten more than 0 and 1 is what was last known. */
const orLast = (one: [string, string], zero: [string, string]) => ({ 1: one, 0: zero, 11: [one[0], colours.unknown] as [string, string], 10: [zero[0], colours.unknown] as [string, string] });

export const mappings = {
  stock: values({ [-1]: ['–', colours.unknown], ...orLast(['In stock', colours.good], ['Sold out', colours.gone]) }),
  offered: values(orLast(['●', colours.good], ['○', colours.muted])),
  order: [wordsLike('.+', colours.plain, 'Order')],
  hits: [wordsLike('^0$', colours.muted), wordsLike('/^\\(/', colours.unknown), wordsLike('.+', colours.good)], // in parentheses: last known
  unknown: values({ [-1]: ['–', colours.unknown] }),
  recorded: values({ [-1]: ['no rules', colours.unknown] }), // -1 without recording rules
  rules: values({ [-1]: ['Needs the recording rules', colours.unknown] }),
  success: values(orLast(['Working', colours.good], ['Failing', colours.bad])),
  up: values({ 1: ['Up', colours.good], 0: ['Down', colours.bad] }),
  enabled: values(orLast(['On', colours.good], ['Off', colours.warn])),
  token: [...values({ 1: ['Rejected', colours.bad], 0.5: ['No data', colours.unknown], [-1]: ['–', colours.unknown], 0: ['Accepted', colours.good] }), ...values({ 11: ['Rejected', colours.unknown], 10.5: ['No data', colours.unknown], 10: ['Accepted', colours.unknown] })],
  account: [wordsLike('^(.{7}).{4,}(.{9})$', colours.muted, '$1…$2')], // long names differ at their ends
  never: [between(never / 2, null, colours.bad, 'never')],
  reload: values({ 1: ['OK', colours.good], 0: ['Reload failed', colours.bad] }),
  /** States as the provider reports them. Only operational is known to be good. */
  componentState: [wordsLike('/^(.*), last known$/', colours.unknown, '$1'), wordsLike('/^operational$/i', colours.good, 'Operational'), wordsLike('/maintenance/i', colours.plain), wordsLike('/^(?!operational$).+/i', colours.bad)],
  /** Unknown statuses are highlighted. */
  serverStatus: [wordsLike('/^\\(/', colours.unknown), wordsLike('^active$', colours.good), wordsLike('^suspended$', colours.bad), wordsLike('^(?!active$|suspended$).+', colours.warn)],
  topupStatus: [
    wordsLike('^paid$', colours.good), wordsLike('^(pending|confirming)$', colours.plain), wordsLike('^failed$', colours.bad),
    wordsLike('^(?!paid$|pending$|confirming$|failed$).+', colours.muted),
  ],
};

const colour = (mode: sdk.FieldColorModeId, fixedColor?: string) => ({ build: () => ({ mode, ...(fixedColor && { fixedColor }) }) });

export const runbooks = 'https://github.com/server-rental-exporter/server_rental_exporter/blob/main/alerts/README.md';

/** Links from one of the dashboards. They keep the time range and all variables that both dashboards have. */
export function linksFrom(from: Name) {
  /** A link from a cell. A variable in the query replaces the present choice. */
  const linkTo = (to: Name, title: string, query = '') => {
    const kept = variablesOf(from).filter((v) => variablesOf(to).includes(v) && !['at', 'saved'].includes(v) && !query.includes(`var-${v}=`)).map((v) => `\${${v}:queryparam}`);
    return { title, url: `/d/${uids[to]}?${[...kept, ...(query ? [query] : []), '${__url_time_range}'].join('&')}`, targetBlank: false };
  };
  /** The same as a link in a panel's menu. */
  const panelLink = (to: Name, title: string) => new sdk.DashboardLinkBuilder(title).type(sdk.DashboardLinkType.Link).url(linkTo(to, title).url);
  return { linkTo, panelLink };
}

/** @param allValue what All means; all values that are offered if empty */
function choice(name: string, label: string, query: string, description: string, allValue = '.+') {
  return new sdk.QueryVariableBuilder(name).label(label).description(description).datasource(datasource).query(query)
    .refresh(sdk.VariableRefresh.OnTimeRangeChanged).sort(sdk.VariableSort.NaturalAsc).multi(true).includeAll(true).allValue(allValue)
    .current({ selected: true, text: ['All'], value: ['$__all'] });
}

/** A hidden variable, of the time at which something was last known. */
const moment = (name: string, label: string, selector: string) => ({ build: () => ({ ...choice(name, label, `query_result(${lastKnown(selector)})`, 'A sign while there is data, else the time of the last data within a day.', '').regex('/at="([^"]+)"/')
  .multi(false).includeAll(false).current({ text: '+', value: '+' }).hide(sdk.VariableHide.HideVariable).build(), skipUrlSync: true }) });

const variables = (name: Name): Record<string, { build: () => sdk.VariableModel }> => ({
  datasource: new sdk.DatasourceVariableBuilder('datasource').label('Data source').description('The Prometheus that scrapes the exporter.').type('prometheus')
    .hide(sdk.VariableHide.HideLabel).current({ selected: true, text: 'default', value: 'default' }),
  // Hidden, because few have more than one exporter; links and the address keep them.
  job: choice('job', 'Job', 'label_values(server_rental_exporter_build_info, job)', 'Scrape jobs of the exporter.').hide(sdk.VariableHide.HideVariable),
  instance: choice('instance', 'Instance', 'label_values(server_rental_exporter_build_info{job=~"$job"}, instance)', 'Exporters. Several exporters of the same provider show everything once.').hide(sdk.VariableHide.HideVariable),
  at: moment('at', 'At', family[name].known),
  provider: moment('provider', 'Provider', known.status),
  saved: moment('saved', 'Saved', known.saved),
  // From a metric that exists even while the token is rejected.
  account: choice('account', 'Account', `label_values(${own('exporter_collector_interval_seconds', 'account!=""')}, account)`, 'Accounts in the exporter\'s configuration.'),
  location: choice('location', 'Location', `label_values(${own('location_info')}, location)`, 'Locations of the provider.', '.*'),
  plan: choice('plan', 'Plan', `label_values(${own('plan_info')}, plan)`, 'Plans of the catalog.'),
  // All means those that are listed here, so that no query needs a filter for the location.
  // Plans without a location have no such label and belong to All locations only.
  ...(name === 'stock' && { plan: choice('plan', 'Plan', `label_values({__name__=~"server_rental_(plan_info|plan_offered|configuration_info)", job=~"$job", instance=~"$instance", ${location}}, plan)`,
    'Plans that are offered or saved in the chosen locations.', '') }),
  ...(name === 'plan' && { plan: choice('plan', 'Plan', `label_values(${own('plan_info')}, plan)`, 'Plan of the catalog.', '').multi(false).includeAll(false).current({ text: '', value: '' }) }),
  vat: new sdk.TextBoxVariableBuilder('vat').label('VAT, percent').description('Added to prices and amounts due in panels whose titles name it.').defaultValue('0')
    .current({ selected: true, text: '0', value: '0' }),
  currency: new sdk.CustomVariableBuilder('currency').label('Currency').description('Currency of catalog prices. Balances and servers are in US dollars only.')
    .values('USD : usd, EUR : eur').current({ selected: true, text: 'USD', value: 'usd' })
    .options([{ selected: true, text: 'USD', value: 'usd' }, { selected: false, text: 'EUR', value: 'eur' }]),
});

/** Marks when something bad began within the interval after each step: the first minute of it, in that step only. */
function annotation(name: string, by: string, bad: string, known: string, texts: { titleFormat: string, textFormat: string, tagKeys: string }) {
  const expr = `1000 * (min by (${by}) (min_over_time((time() + 0 * (${bad}))[$__interval:1m] offset -$__interval)) and on (${by}) ${known} unless on (${by}) (${bad}))`;
  const query = new sdk.AnnotationQueryBuilder().name(name).datasource(datasource).enable(true).iconColor(colours.bad).expr(expr).build();
  // The SDK has no fields for the data source's own options. Grafana 10 and 11 read them from
  // here, newer versions from the target. Steps of two minutes contain two scrapes.
  const step = '2m';
  return { ...query, step, useValueForTime: true, ...texts, target: { refId: 'Anno', datasource, expr, interval: step, range: true, instant: false } as any };
}

const operational = own('component_operational', location);
const maintenance = own('component_state', location, 'state=~"(?i).*maintenance.*"');
const outages = annotation('Outages', 'location, component', `${operational} == 0 unless on (location, component) ${maintenance}`, operational,
  { titleFormat: '{{component}} in {{location}}', textFormat: 'The component failed; maintenance does not count.', tagKeys: 'location,component' });
const incidents = annotation('Incidents', '', `${own('incidents_ongoing')} > 0`, own('incidents_ongoing'),
  { titleFormat: 'Incident', textFormat: 'The provider began to report an incident.', tagKeys: '' });

/**
 * Each dashboard: the collector that it needs, what tells when that was last known, marks of what
 * concerns it, as money does not depend on outages, and its own variables in the order of the bar.
 */
const family = {
  stock: { title: 'Server rental: stock and prices', collector: 'plans', known: known.plans, marks: [outages], own: ['location', 'plan', 'currency', 'account', 'at', 'saved'] },
  accounts: { title: 'Server rental: accounts and servers', collector: 'account', known: known.accounts, marks: [], own: ['account', 'location', 'plan', 'vat', 'at'] },
  status: { title: 'Server rental: provider status and exporter health', collector: 'status', known: known.exporter, marks: [outages, incidents], own: ['account', 'location', 'at', 'provider'] },
  plan: { title: 'Server rental: one plan', collector: 'plans', known: known.plans, marks: [], own: ['plan', 'currency', 'at', 'saved'] },
};
type Name = keyof typeof family;
const variablesOf = (name: Name) => ['datasource', 'job', 'instance', ...family[name].own];

/** They never change: bookmarks and links depend on them. */
export const uids = Object.fromEntries(Object.keys(family).map((name) => [name, `server-rental-${name}`]));

/** An instant query, with a legend. */
export const now = (expr: string, legend: string, refId = 'A') => new DataqueryBuilder().datasource(datasource).expr(expr).instant().legendFormat(legend).refId(refId);
/** A range query. */
export const course = (expr: string, legend: string, refId = 'A') => new DataqueryBuilder().datasource(datasource).expr(expr).range().legendFormat(legend).refId(refId);
/** A query whose labels become fields. */
export const rows = (expr: string, refId: string, query = now) => query(expr, '', refId).format(PromQueryFormat.Table);

/** Options of every panel. */
type Common = {
  id: number; // never changes, so that links to the panel keep working
  title: string; description: string; w: number; h: number;
  unit?: string; decimals?: number; steps?: Step[]; mappings?: Mapping[]; noValue?: string;
  alerts?: string[]; // whose runbooks are linked, without the prefix
  links?: { build: () => sdk.DashboardLink }[];
  overrides?: { matcher: { id: string, options?: any }, properties: Property[] }[];
};

function common<T extends stats.PanelBuilder | tables.PanelBuilder | timelines.PanelBuilder | lines.PanelBuilder | trends.PanelBuilder | barcharts.PanelBuilder>(panel: T, o: Common) {
  panel.id(o.id).title(o.title).description(o.description).datasource(datasource).span(o.w).height(o.h).unit(o.unit ?? 'none');
  if (o.decimals !== undefined) panel.decimals(o.decimals);
  if (o.mappings) panel.mappings(o.mappings);
  if (o.noValue) panel.noValue(o.noValue);
  const alerts = (o.alerts ?? []).map((name) => `ServerRental${name}`);
  const links = alerts.map((alert) => new sdk.DashboardLinkBuilder(`Runbook: ${alert}`).type(sdk.DashboardLinkType.Link).url(`${runbooks}#${alert.toLowerCase()}`).targetBlank(true));
  if (o.alerts || o.links) panel.links([...links, ...(o.links ?? [])]);
  panel.thresholds(new sdk.ThresholdsConfigBuilder().mode(sdk.ThresholdsMode.Absolute).steps(o.steps ?? steps.rising(colours.plain)));
  for (const override of o.overrides ?? []) panel.withOverride(override);
  return panel;
}

/** An override for the series of one query. */
export const forQuery = (refId: string, ...properties: Property[]) => ({ matcher: { id: 'byFrameRefID', options: refId }, properties });
export const forName = (name: string, ...properties: Property[]) => ({ matcher: { id: 'byName', options: name }, properties });
export const forPattern = (pattern: string, ...properties: Property[]) => ({ matcher: { id: 'byRegexp', options: pattern }, properties });

export const set = {
  unit: (value: string) => ({ id: 'unit', value }),
  decimals: (value: number) => ({ id: 'decimals', value }),
  colour: (fixedColor: string) => ({ id: 'color', value: { mode: sdk.FieldColorModeId.Fixed, fixedColor } }),
  steps: (list: Step[]) => ({ id: 'thresholds', value: { mode: sdk.ThresholdsMode.Absolute, steps: list } }),
  mappings: (value: Mapping[]) => ({ id: 'mappings', value }),
  noValue: (value: string) => ({ id: 'noValue', value }),
  /** An option of one kind of panel. */
  custom: (name: string, value: unknown) => ({ id: `custom.${name}`, value }),
  dashed: { id: 'custom.lineStyle', value: { fill: 'dash', dash: [8, 8] } },
  noFill: { id: 'custom.fillOpacity', value: 0 },
};

/** One or a few large numbers. A query without data shows a grey "No data": what is known to be nothing has to be a zero. */
export function stat(o: Common & {
  names?: boolean; // beside the values
  background?: boolean; // coloured instead of the value
  horizontal?: boolean; field?: string; // a label to show instead of the value
  sizes?: { title: number, value?: number }; // in pixels, by default as large as fits
}, ...queries: Query[]) {
  const sizes = new ui.VizTextDisplayOptionsBuilder().titleSize(o.sizes?.title ?? 14); // by default tiny in low panels
  if (o.sizes?.value) sizes.valueSize(o.sizes.value);
  return common(new stats.PanelBuilder(), { ...o, mappings: [...(o.mappings ?? []), noData('No data')] })
    .reduceOptions(new ui.ReduceDataOptionsBuilder().calcs(['lastNotNull']).fields(o.field ? `/^${o.field}$/` : '').values(false))
    .graphMode(ui.BigValueGraphMode.None)
    .colorMode(o.background ? ui.BigValueColorMode.Background : ui.BigValueColorMode.Value)
    .textMode(o.names ? ui.BigValueTextMode.ValueAndName : ui.BigValueTextMode.Auto).text(sizes)
    .orientation(o.horizontal ? ui.VizOrientation.Horizontal : ui.VizOrientation.Auto).wideLayout(false)
    .colorScheme(colour(sdk.FieldColorModeId.Thresholds))
    .targets(queries);
}

export const joinBy = (byField: string) => ({ id: 'joinByField', options: { byField, mode: 'outer' } });
export const withoutTime = { id: 'filterFieldsByName', options: { exclude: { pattern: '/^Time$/' } } };
const organize = (renameByName: Record<string, string>, excludeByName: Record<string, boolean> = {}, indexByName: Record<string, number> = {}) => ({ id: 'organize', options: { excludeByName, indexByName, renameByName } });

/** Lines or bars over time. The legend is a list, or a table if it has calculations. */
export function series(o: Common & {
  min?: number; softMax?: number; stacked?: boolean; stepped?: boolean; fill?: number;
  bars?: 'before' | 'after'; // the time of each
  showSteps?: boolean; calcs?: string[]; legendRight?: boolean;
  interval?: string; points?: number;
  trend?: boolean; // the first query is the x axis
}, ...queries: Query[]) {
  const panel = common(o.trend ? new trends.PanelBuilder() : new lines.PanelBuilder(), o)
    .drawStyle(o.bars ? ui.GraphDrawStyle.Bars : ui.GraphDrawStyle.Line)
    .lineWidth(o.bars ? 0 : 2)
    .fillOpacity(o.fill ?? (o.bars ? 70 : o.stacked ? 30 : 5))
    .lineInterpolation(o.stepped ? ui.LineInterpolation.StepAfter : ui.LineInterpolation.Linear)
    .showPoints(ui.VisibilityMode.Never)
    .colorScheme(colour(sdk.FieldColorModeId.Shades, colours.plain))
    .tooltip(new ui.VizTooltipOptionsBuilder().mode(ui.TooltipDisplayMode.Multi).sort(ui.SortOrder.Descending))
    .legend(new ui.VizLegendOptionsBuilder().displayMode(o.calcs ? ui.LegendDisplayMode.Table : ui.LegendDisplayMode.List).showLegend(true)
      .placement(o.legendRight ? ui.LegendPlacement.Right : ui.LegendPlacement.Bottom).calcs(o.calcs ?? []));
  if (o.stacked) panel.stacking(new ui.StackingConfigBuilder().mode(ui.StackingMode.Normal).group('A'));
  if (o.showSteps) panel.thresholdsStyle(new ui.GraphThresholdsStyleConfigBuilder().mode(ui.GraphThresholdsStyleMode.Dashed));
  if (o.min !== undefined) panel.min(o.min);
  if (o.softMax !== undefined) panel.axisSoftMax(o.softMax);
  if (o.bars === 'after') panel.barAlignment(ui.BarAlignment.After);
  if (o.interval) panel.interval(o.interval);
  if (o.points) panel.maxDataPoints(o.points);
  if (o.trend) panel.transformations([joinBy('Time'), organize({}, { Time: true })]);
  return panel.targets(queries);
}

/** A coloured band for each series. The legend lists the texts of the value mappings, which have to cover all values. */
export const timeline = (o: Common, ...queries: Query[]) => common(new timelines.PanelBuilder(), o)
  .mergeValues(true).showValue(ui.VisibilityMode.Never).rowHeight(0.8).lineWidth(0).fillOpacity(75)
  // Thresholds would replace the texts in the legend.
  .colorScheme(colour(sdk.FieldColorModeId.PaletteClassic))
  .legend(new ui.VizLegendOptionsBuilder().displayMode(ui.LegendDisplayMode.List).placement(ui.LegendPlacement.Bottom).showLegend(true).calcs([]))
  .tooltip(new ui.VizTooltipOptionsBuilder().mode(ui.TooltipDisplayMode.Single).sort(ui.SortOrder.None))
  // Drops the empty answer of a query without series, which is an error in this panel.
  .transformations([{ id: 'filterFieldsByName', options: { include: { pattern: '/.*/' } } }])
  .targets(queries);

/** A bar for each time: of the query x in milliseconds, after what groups or joins the queries by it. */
export const bars = (o: Common & { x: string, spacing: number, before: sdk.DataTransformerConfig[], names: Record<string, string>, hidden?: Record<string, boolean> }, queries: Record<string, string>) => common(new barcharts.PanelBuilder(), o)
  .targets(Object.entries(queries).map(([refId, expr]) => rows(expr, refId)))
  .transformations([
    ...o.before,
    { id: 'sortBy', options: { fields: {}, sort: [{ field: `Value #${o.x}`, desc: false }] } },
    { id: 'convertFieldType', options: { fields: {}, conversions: [{ targetField: `Value #${o.x}`, destinationType: 'time' }] } },
    organize(o.names, o.hidden),
  ])
  .xField(o.names[`Value #${o.x}`]).xTickLabelSpacing(o.spacing).barWidth(0.9).lineWidth(0).fillOpacity(80)
  .colorScheme(colour(sdk.FieldColorModeId.Fixed, colours.plain));

/** A column of a table: its source and its format. */
type Column = {
  from: string; // a label, or # and the refId of a query for its value
  expr?: string; // the query, if it is for this column
  name: string; unit?: string; decimals?: number;
  width?: number; minWidth?: number; // if the width depends on the window
  steps?: Step[]; mappings?: Mapping[]; background?: boolean; // coloured instead of the text
  link?: { title: string, url: string, targetBlank: boolean };
  align?: 'left' | 'center' | 'right';
  filter?: boolean; // where no variable does the same, as its icon takes room from the heading
  hidden?: boolean; // but links use it
};

/** A label as a column, of a width, of one that depends on the window, or of any and with a filter. */
export const fixed = (from: string, name: string, width: number, more: Partial<Column> = {}): Column => ({ from, name, width, ...more });
export const flexible = (from: string, name: string, minWidth: number, more: Partial<Column> = {}): Column => ({ from, name, minWidth, ...more });
export const text = (from: string, name: string): Column => ({ from, name, filter: true });

/** The value of a query as a column, in a format. Those of times are of seconds. */
const column = (format: Partial<Column>, use = (expr: string) => expr) => (refId: string, name: string, width: number, expr: string, more: Partial<Column> = {}): Column => ({ from: `#${refId}`, name, width, expr: use(expr), ...format, ...more });
export const valueOf = {
  number: column({ unit: 'none' }),
  count: column({ unit: 'none', decimals: 0 }),
  price: column({ unit: 'none', decimals: 2 }),
  usd: column({ unit: units.usd, decimals: 2 }),
  percent: column({ unit: 'percentunit', decimals: 0 }),
  duration: column({ unit: 'dtdurations', decimals: 0 }),
  state: column({ background: true, align: 'center' }),
  ago: column({ unit: units.ago }, milliseconds),
  date: column({ unit: units.date }, milliseconds),
  minute: column({ unit: units.minute }, milliseconds),
};

const looks = (c: Column): Property[] => [
  c.unit && set.unit(c.unit),
  c.decimals !== undefined && set.decimals(c.decimals),
  c.from.startsWith('#') && set.noValue('–'), // the panel's is what an empty table says
  c.width && set.custom('width', c.width),
  c.minWidth && set.custom('minWidth', c.minWidth),
  c.hidden && set.custom('hidden', true),
  c.align && set.custom('align', c.align),
  (c.mappings || c.steps) && set.mappings([...(c.mappings ?? []), noData('–')]),
  c.steps && set.steps(c.steps),
  c.background && set.custom('cellOptions', { type: 'color-background', mode: 'basic' }),
  !c.background && (c.mappings || c.steps) && set.custom('cellOptions', { type: 'color-text' }),
  c.link && { id: 'links', value: [c.link] },
  c.from === 'account' && set.mappings(mappings.account),
  c.filter && set.custom('filterable', true),
].filter((property) => typeof property === 'object');

/** A table of which each row is one set of labels. Other fields than columns are hidden. Queries for several columns, by refId, come before those of one. */
export function table(o: Common & {
  sort: string; descending?: boolean; before?: sdk.DataTransformerConfig[];
  key?: string[]; // joins rows, and leaves no empty columns; only the first query may have other labels
  first?: number; // columns before those that only the data knows; the others follow in the order of the queries
  history?: boolean; // a row for each time with a result
  only?: string[]; // queries without which there is no row
  at?: string; // the variable of the time at which all is shown
}, columns: Column[], queries: Record<string, string> = {}) {
  const queriesOf = (some: Column[]) => some.flatMap(({ from, expr }) => (expr ? [[from.replace('#', ''), expr]] : []));
  const exprs = [...queriesOf(columns.slice(0, o.first ?? 0)), ...Object.entries(queries), ...queriesOf(columns.slice(o.first ?? 0))]
    .map(([refId, expr]) => [refId, o.at ? atEnd(expr, o.at) : expr]);
  // Grafana names a value after its query, unless there is only one.
  const used = columns.map(({ from }) => (!from.startsWith('#') ? from : exprs.length === 1 ? 'Value' : `Value ${from}`));
  const several = o.key && o.key.length > 1; // but Grafana joins by one field
  const key = several ? 'key' : o.key?.[0];
  const keyed = exprs.map(([refId, expr], i) => {
    const joined = `label_join(${expr}, "key", "/", ${o.key?.map((label) => `"${label}"`).join(', ')})`;
    return rows(!several ? expr : i === 0 ? joined : max('key', joined), refId, o.history ? course : now);
  });
  const unused = ['Time', 'Value', ...exprs.map(([refId]) => `Value #${refId}`), ...(key ? [key] : []), ...(o.key ?? [])].filter((f) => !used.includes(f));
  const join = key ? [withoutTime, joinBy(key)] : [{ id: 'merge', options: {} }];
  const panel = common(new tables.PanelBuilder(), o)
    .targets(keyed)
    .transformations([
      ...(o.before ?? []),
      ...(exprs.length > 1 ? join : []),
      ...(o.only ? [{ id: 'filterByValue', options: { type: 'include', match: 'all', filters: o.only.map((refId) => ({ fieldName: `Value #${refId}`, config: { id: 'isNotNull', options: {} } })) } }] : []),
      organize(
        Object.fromEntries(columns.map((c, i) => [used[i], c.name])),
        Object.fromEntries(unused.map((f) => [f, true])),
        Object.fromEntries(columns.slice(0, o.first).map((_, i) => [used[i], i])),
      ),
    ])
    .cellHeight(ui.TableCellHeight.Sm).filterable(false).minWidth(90)
    .sortBy([new ui.TableSortByFieldStateBuilder().displayName(o.sort).desc(o.descending ?? false)])
    .colorScheme(colour(sdk.FieldColorModeId.Thresholds));
  for (const c of columns) panel.overrideByName(c.name, looks(c));
  return panel;
}

/** Those of severity info tell news, such as a restock. */
export const alerts = 'ALERTS{alertname=~"ServerRental.*", alertstate="firing", severity!="info"}';

/** Whether what a dashboard shows is current: the same on each. */
function health(name: Name) {
  // The dashboard of the status is what the others link to, and lists the alerts.
  const links = name === 'status' ? [] : [linksFrom(name).panelLink('status', 'Exporter health')];
  const tile = (o: Omit<Common, 'w' | 'h'> & { w?: number }, expr: string, legend: string) => stat({ w: 5, h: 3, background: true, links, ...o }, now(expr, legend));
  return [
    tile({
      id: 901, title: 'Exporters', mappings: mappings.up, steps: steps.noneIsBad, alerts: ['ExporterDown'],
      description: 'Whether Prometheus can scrape each exporter.',
    }, exportersUp, '{{instance}}'),
    tile({
      id: 902, title: 'Collectors', unit: 'suffix: failing', steps: steps.noneIsGood, mappings: values({ 0: ['Working', colours.good] }), alerts: ['CollectorFailing'],
      description: 'The number of collectors whose last fetch failed. Their data is stale and disappears after max_age.',
    }, `sum(1 - ${succeeded})`, 'collectors'),
    tile({
      id: 903, title: 'Oldest data', unit: 'suffix: intervals', decimals: 1, steps: steps.intervals, mappings: mappings.never, alerts: ['DataStale'],
      description: 'The age of the oldest data in intervals of its collector. One is normal, the alert fires at ten.',
    }, `max(${intervals})`, 'intervals'),
    ...(name === 'status' ? [] : [tile({
      id: 904, title: 'Alerts', w: 4, steps: steps.noneIsGood, mappings: [...values({ 0: ['None', colours.good] }), ...mappings.rules], alerts: ['ExporterDown'],
      description: 'The number of warnings and critical alerts of this project that fire. The dashboard of the status lists them.',
    }, orNeedsRules(`count(${alerts}) or 0 * max(${ruled})`, ruled), 'alerts')]),
    stat({
      id: 905, title: 'Data', w: name === 'status' ? 9 : 5, h: 3, unit: units.minute, sizes: { title: 14, value: 18 }, steps: steps.muted, names: true, alerts: ['ExporterDown'],
      description: 'Whether what is shown is up to date. If not, since when, and why: what was known then is shown for a day, in grey.',
      overrides: [forPattern('/ since$/', set.colour(colours.bad))],
    }, now(milliseconds(`(${dataState(family[name].collector)})`), '{{state}}')),
  ];
}

type Row = { id: number, title: string, panels: { build: () => sdk.Panel }[], collapsed?: boolean };
const width = 24;
/** Places each panel as high, then as far left as possible, so that small ones stack beside a large one. Returns where the next row starts. */
function place(panels: sdk.Panel[], top: number) {
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

/** A dashboard of rows, of which those of top are above the health. */
export function dashboard(name: Name, o: { description: string, from: string, refresh: string, timezone: string, top?: Row[], rows: Row[] }) {
  const all = variables(name);
  const b = new sdk.DashboardBuilder(family[name].title).uid(uids[name]).description(o.description)
    // Not in the list of dashboards, which would pass several plans.
    .tags([...(name === 'plan' ? [] : ['server-rental']), 'prometheus']).time({ from: o.from, to: 'now' }).refresh(o.refresh).timezone(o.timezone)
    .tooltip(1).readonly().version(1)
    .variables(variablesOf(name).map((v) => all[v]))
    .links([
      new sdk.DashboardLinkBuilder('Dashboards').type(sdk.DashboardLinkType.Dashboards).tags(['server-rental']).asDropdown(true).includeVars(true).keepTime(true),
    ]);
  let y = 0;
  // Panels on which a mark would hide what it marks.
  const hidden: number[] = [];
  for (const { id, title, collapsed = false, panels } of [...(o.top ?? []), { id: 900, title: 'Health', panels: health(name) }, ...o.rows]) {
    const row = new sdk.RowBuilder(title).id(id).collapsed(collapsed).gridPos({ x: 0, y, w: width, h: 1 });
    const built = panels.map((p) => ({ ...p.build(), pluginVersion }));
    // What was last known is of use, but not of the provider's status.
    if (id !== 900 && name !== 'status') for (const t of built.flatMap((p) => p.targets as any[])) if (t.instant) t.expr = atEnd(t.expr);
    hidden.push(...built.filter((p) => p.type === 'state-timeline').map((p) => p.id ?? 0));
    const end = place(built, y + 1);
    // A collapsed row contains its panels and takes one line.
    if (collapsed) for (const panel of built) row.withPanel({ build: () => panel });
    b.withRow(row);
    if (!collapsed) for (const panel of built) b.withPanel({ build: () => panel });
    y = collapsed ? y + 1 : end;
  }
  b.annotations(family[name].marks.map((a) => ({ build: () => ({ ...a, filter: { exclude: true, ids: hidden } }) })));
  return { ...b.build(), schemaVersion };
}
