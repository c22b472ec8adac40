// A function for each kind of panel, and what panels share: colours, units, thresholds, value
// mappings.

import * as ui from '@grafana/grafana-foundation-sdk/common';
import * as sdk from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import * as stats from '@grafana/grafana-foundation-sdk/stat';
import * as timelines from '@grafana/grafana-foundation-sdk/statetimeline';
import * as tables from '@grafana/grafana-foundation-sdk/table';
import * as lines from '@grafana/grafana-foundation-sdk/timeseries';
import { milliseconds } from './promql.js';

type Property = sdk.DynamicConfigValue;
type Mapping = sdk.ValueMapping;
type Step = sdk.Threshold;
type Query = ReturnType<typeof now>;

export const datasource = { type: 'prometheus', uid: '${datasource}' };
export const runbooks = 'https://github.com/server-rental-exporter/server_rental_exporter/blob/main/alerts/README.md';

/** One palette: red says bad and green good. Grey is what is not known. Lines have those of Grafana's palette. */
export const colours = { good: 'green', warn: 'orange', bad: 'red', plain: 'blue', muted: 'text', gone: 'dark-red', unknown: '#808080' };
const colour = (mode: sdk.FieldColorModeId, fixedColor?: string) => ({ build: () => ({ mode, ...(fixedColor && { fixedColor }) }) });

/** Units that show the whole value, and its sign first: Grafana's own abbreviate thousands or change to minutes and weeks. */
export const units = { usd: 'suffix:USD', duration: 'dtdurations', date: 'time:YYYY-MM-DD', minute: 'time:YYYY-MM-DD HH:mm', ago: 'dateTimeFromNow', hours: 'suffix: h' };

/** Thresholds in ascending order. The first colour applies below all others. */
const rising = (first: string, ...more: [from: number, color: string][]): Step[] => [{ value: null, color: first }, ...more.map(([value, color]) => ({ value, color }))];
export const steps = {
  rising,
  muted: rising(colours.muted),
  noneIsGood: rising(colours.good, [1, colours.bad]),
  noneIsBad: rising(colours.bad, [1, colours.good]),
  // As ServerRentalBalanceLow, of a balance and of its share of the monthly cost, and ServerRentalRenewalsUnfunded, of days.
  balance: rising(colours.bad, [0, colours.plain]),
  months: rising(colours.bad, [0, colours.warn], [0.1, colours.good]),
  days: rising(colours.bad, [2, colours.warn], [7, colours.good]),
  intervals: rising(colours.good, [3, colours.warn], [10, colours.bad]), // of age: one is normal, ServerRentalDataStale fires at ten
};

/** The text of each value, and its colour. */
export const values = (texts: Record<string, [text: string, color: string]>): Mapping => ({
  type: sdk.MappingType.ValueToText, options: Object.fromEntries(Object.entries(texts).map(([value, [text, color]], index) => [value, { text, color, index }])),
});
/** Grafana 11 matches no range without an end, so that is a large number. */
export const between = (from: number, to: number | null, color: string, text: string): Mapping => ({ type: sdk.MappingType.RangeToText, options: { from, to: to ?? 1e18, result: { text, color } } });
export const words = (pattern: string, color: string, text?: string): Mapping => ({ type: sdk.MappingType.RegexToText, options: { pattern, result: { ...(text && { text }), color } } });
/** Missing data is neither good nor bad. */
const noData = (text: string): Mapping => ({ type: sdk.MappingType.SpecialValue, options: { match: sdk.SpecialValueMatch.NullAndNan, result: { text, color: colours.unknown } } });

export const mappings = {
  stock: [values({ 1: ['In stock', colours.good], 0: ['Sold out', colours.gone] })],
  success: [values({ 1: ['Working', colours.good], 0: ['Failing', colours.bad] })],
  up: [values({ 1: ['Up', colours.good], 0: ['Down', colours.bad] })],
  enabled: [values({ 1: ['On', colours.good], 0: ['Off', colours.warn] })],
  token: [values({ 1: ['Rejected', colours.bad], 0: ['Accepted', colours.good] })],
  reload: [values({ 1: ['OK', colours.good], 0: ['Reload failed', colours.bad] })],
  link: (text: string) => [words('.+', colours.plain, text)],
  // States as the provider reports them. Only operational is known to be good.
  componentState: [words('/^operational$/i', colours.good, 'OK'), words('/maintenance/i', colours.plain), words('.+', colours.bad)],
  serverStatus: [words('/^active$/i', colours.good), words('/^suspended$/i', colours.bad), words('.+', colours.warn)],
  severity: [words('^critical$', colours.bad), words('^warning$', colours.warn)],
};

/** An override for the series of one query. */
export const forQuery = (refId: string, ...properties: Property[]) => ({ matcher: { id: 'byFrameRefID', options: refId }, properties });
export const forName = (name: string, ...properties: Property[]) => ({ matcher: { id: 'byName', options: name }, properties });
export const forPattern = (pattern: string, ...properties: Property[]) => ({ matcher: { id: 'byRegexp', options: pattern }, properties });
const absolute = (list: Step[]) => ({ mode: sdk.ThresholdsMode.Absolute, steps: list });
export const set = {
  unit: (value: string) => ({ id: 'unit', value }),
  decimals: (value: number) => ({ id: 'decimals', value }),
  colour: (fixedColor: string) => ({ id: 'color', value: { mode: sdk.FieldColorModeId.Fixed, fixedColor } }),
  steps: (list: Step[]) => ({ id: 'thresholds', value: absolute(list) }),
  mappings: (value: Mapping[]) => ({ id: 'mappings', value }),
  noValue: (value: string) => ({ id: 'noValue', value }),
  custom: (name: string, value: unknown) => ({ id: `custom.${name}`, value }), // an option of one kind of panel
};

const query = (expr: string, refId: string) => new DataqueryBuilder().datasource(datasource).expr(expr).refId(refId);
/** An instant query, with a legend. */
export const now = (expr: string, legend: string, refId = 'A') => query(expr, refId).instant().legendFormat(legend);
/** An instant query whose labels become fields. */
export const rows = (expr: string, refId: string) => now(expr, '', refId).format(PromQueryFormat.Table);
/** A range query. */
export const course = (expr: string, legend: string, refId = 'A') => query(expr, refId).range().legendFormat(legend);

/** Options of every panel. */
type Common = {
  id: number; // never changes, so that links to the panel keep working
  title: string; description: string; w: number; h: number;
  unit?: string; decimals?: number; steps?: Step[]; mappings?: Mapping[];
  noValue?: string; // what the panel says if nothing is known
  alerts?: string[]; // whose runbooks are linked, without the prefix
  links?: { build: () => sdk.DashboardLink }[];
  overrides?: { matcher: { id: string, options?: any }, properties: Property[] }[];
};

function common<T extends stats.PanelBuilder | tables.PanelBuilder | timelines.PanelBuilder | lines.PanelBuilder>(panel: T, o: Common) {
  panel.id(o.id).title(o.title).description(o.description).datasource(datasource).span(o.w).height(o.h).unit(o.unit ?? 'none');
  if (o.decimals !== undefined) panel.decimals(o.decimals);
  if (o.mappings) panel.mappings(o.mappings);
  if (o.noValue) panel.noValue(o.noValue);
  const links = (o.alerts ?? []).map((alert) => new sdk.DashboardLinkBuilder(`Runbook: ServerRental${alert}`).type(sdk.DashboardLinkType.Link)
    .url(`${runbooks}#${`ServerRental${alert}`.toLowerCase()}`).targetBlank(true));
  if (o.alerts || o.links) panel.links([...links, ...(o.links ?? [])]);
  panel.thresholds(new sdk.ThresholdsConfigBuilder().mode(sdk.ThresholdsMode.Absolute).steps(o.steps ?? rising(colours.plain)));
  for (const override of o.overrides ?? []) panel.withOverride(override);
  return panel;
}

/** One or a few large numbers. */
export const stat = (o: Common & {
  names?: boolean; // beside the values
  background?: boolean; // coloured instead of the value
  field?: string; // a label to show instead of the value
}, ...queries: Query[]) => common(new stats.PanelBuilder(), { ...o, mappings: [...(o.mappings ?? []), noData(o.noValue ?? 'No data')] })
  .reduceOptions(new ui.ReduceDataOptionsBuilder().calcs(['lastNotNull']).fields(o.field ? `/^${o.field}$/` : '').values(false))
  .graphMode(ui.BigValueGraphMode.None).wideLayout(false)
  .colorMode(o.background ? ui.BigValueColorMode.Background : ui.BigValueColorMode.Value)
  .textMode(o.names ? ui.BigValueTextMode.ValueAndName : ui.BigValueTextMode.Auto)
  .text(new ui.VizTextDisplayOptionsBuilder().titleSize(14)) // by default tiny in low panels
  .colorScheme(colour(sdk.FieldColorModeId.Thresholds))
  .targets(queries);

const legend = (calcs: string[]) => new ui.VizLegendOptionsBuilder().showLegend(true).placement(ui.LegendPlacement.Bottom).calcs(calcs)
  .displayMode(calcs.length > 0 ? ui.LegendDisplayMode.Table : ui.LegendDisplayMode.List);

/** Lines over time, or what is stacked: areas, or bars that begin at the time of their value. */
export function series(o: Common & {
  min?: number; softMax?: number; bars?: boolean; areas?: boolean; stepped?: boolean; calcs?: string[]; interval?: string; points?: number;
}, ...queries: Query[]) {
  const panel = common(new lines.PanelBuilder(), o)
    .drawStyle(o.bars ? ui.GraphDrawStyle.Bars : ui.GraphDrawStyle.Line).lineWidth(o.bars ? 0 : 2).fillOpacity(o.bars ? 70 : o.areas ? 30 : 0)
    .lineInterpolation(o.stepped ? ui.LineInterpolation.StepAfter : ui.LineInterpolation.Linear)
    .showPoints(ui.VisibilityMode.Never)
    .colorScheme(colour(sdk.FieldColorModeId.PaletteClassic))
    .tooltip(new ui.VizTooltipOptionsBuilder().mode(ui.TooltipDisplayMode.Multi).sort(ui.SortOrder.Descending))
    .legend(legend(o.calcs ?? []));
  if (o.bars || o.areas) panel.stacking(new ui.StackingConfigBuilder().mode(ui.StackingMode.Normal).group('A')).barAlignment(ui.BarAlignment.After);
  if (o.min !== undefined) panel.min(o.min);
  if (o.softMax !== undefined) panel.axisSoftMax(o.softMax);
  if (o.interval) panel.interval(o.interval);
  if (o.points) panel.maxDataPoints(o.points);
  return panel.targets(queries);
}

/** A coloured band for each series. Value mappings have to cover all values: the legend lists their texts. */
export const timeline = (o: Common, ...queries: Query[]) => common(new timelines.PanelBuilder(), o)
  .mergeValues(true).showValue(ui.VisibilityMode.Never).rowHeight(0.8).lineWidth(0).fillOpacity(75)
  .colorScheme(colour(sdk.FieldColorModeId.PaletteClassic)) // thresholds would replace the texts in the legend
  .legend(legend([]))
  .tooltip(new ui.VizTooltipOptionsBuilder().mode(ui.TooltipDisplayMode.Single).sort(ui.SortOrder.None))
  .interval('2m') // contains two scrapes
  // Drops the response of a query without series, which is an error in this panel.
  .transformations([{ id: 'filterFieldsByName', options: { include: { pattern: '/.*/' } } }])
  .targets(queries);

/** A column of a table: its source and its format. */
type Column = {
  from: string; // a label, or # and the refId of the query whose value it is
  expr?: string; // the query, if it is for this column
  name: string; unit?: string; decimals?: number;
  width?: number; minWidth?: number; // if the width depends on the window
  steps?: Step[]; mappings?: Mapping[]; background?: boolean; // coloured instead of the text
  link?: { title: string, url: string, targetBlank: boolean };
  align?: 'left' | 'center' | 'right';
};

/** A label as a column, of a width or of one that depends on the window. */
export const fixed = (from: string, name: string, width: number, more: Partial<Column> = {}): Column => ({ from, name, width, ...more });
export const flexible = (from: string, name: string, minWidth: number, more: Partial<Column> = {}): Column => ({ from, name, minWidth, ...more });
/** A label with an address: a cell whose text is the name of the column opens it. */
export const address = (from: string, name: string, expr: string): Column => fixed(from, name, 60, { expr, mappings: mappings.link(name), link: { title: name, url: '${__value.raw}', targetBlank: true } });

/** The value of a query as a column, in a format. Those of times are of seconds. */
const column = (format: Partial<Column>, use = (expr: string) => expr) => (refId: string, name: string, width: number, expr: string, more: Partial<Column> = {}): Column => ({ from: `#${refId}`, name, width, expr: use(expr), ...format, ...more });
export const valueOf = {
  number: column({}),
  price: column({ decimals: 2 }),
  usd: column({ unit: units.usd, decimals: 2 }),
  percent: column({ unit: 'percentunit', decimals: 0 }),
  duration: column({ unit: units.duration, decimals: 0 }),
  hours: column({ unit: units.hours, decimals: 1 }, (expr) => `${expr} / 3600`),
  state: column({ background: true, align: 'center' }),
  ago: column({ unit: units.ago }, milliseconds),
  date: column({ unit: units.date }, milliseconds),
};

const looks = (c: Column): Property[] => Object.entries({
  unit: c.unit, decimals: c.decimals, thresholds: c.steps && absolute(c.steps), links: c.link && [c.link],
  'custom.width': c.width, 'custom.minWidth': c.minWidth, 'custom.align': c.align,
  ...((c.mappings || c.steps) && {
    mappings: [...(c.mappings ?? []), noData('–')],
    'custom.cellOptions': c.background ? { type: 'color-background', mode: 'basic' } : { type: 'color-text' },
  }),
}).filter(([, value]) => value !== undefined).map(([id, value]) => ({ id, value }));

const organize = (renameByName: Record<string, string>, hidden: string[], order: string[] = []) => ({ id: 'organize', options: {
  renameByName, excludeByName: Object.fromEntries(hidden.map((name) => [name, true])), indexByName: Object.fromEntries(order.map((name, i) => [name, i])),
} });
/** Makes a column of each value of a label, and joins it with the other queries by the label of the rows. */
const inColumns = ({ query, row, column }: { query: string, row: string, column: string }) => [
  { id: 'groupingToMatrix', filter: { id: 'byRefId', options: query }, options: { columnField: column, rowField: row, valueField: `Value #${query}`, emptyValue: 'null' } },
  organize({ [`${row}\\${column}`]: row }, ['Time']),
  { id: 'joinByField', options: { byField: row, mode: 'outer' } },
];

/**
 * A table of which each row is one set of labels. Grafana merges the rows of all queries that have
 * the same labels, so that all must have those of a row, and one may have more for columns.
 */
export function table(o: Common & {
  sort: string; descending?: boolean;
  hidden?: string[]; // labels
  matrix?: { query: string, row: string, column: string }; // a query of whose values each has a column of its own
}, columns: Column[], queries: Record<string, string> = {}) {
  // Those with labels for columns are first, so that two exporters which differ in one give two whole rows.
  const queriesOf = (values: boolean) => columns.flatMap(({ from, expr }) => (expr && from.startsWith('#') === values ? [[from.replace('#', ''), expr]] : []));
  const exprs = [...Object.entries(queries), ...queriesOf(false), ...queriesOf(true)];
  // Grafana names a value after its query, unless there is only one.
  const field = (from: string) => (!from.startsWith('#') ? from : exprs.length === 1 ? 'Value' : `Value ${from}`);
  const shown = columns.map(({ from }) => field(from));
  const hidden = ['Time', ...exprs.map(([refId]) => field(`#${refId}`)), ...(o.hidden ?? [])].filter((name) => !shown.includes(name));
  const panel = common(new tables.PanelBuilder(), o)
    .targets(exprs.map(([refId, expr]) => rows(expr, refId)))
    .transformations([
      ...(o.matrix ? inColumns(o.matrix) : exprs.length > 1 ? [{ id: 'merge', options: {} }] : []),
      organize(Object.fromEntries(columns.map((c, i) => [shown[i], c.name])), hidden, shown),
    ])
    .cellHeight(ui.TableCellHeight.Sm).minWidth(60)
    .sortBy([new ui.TableSortByFieldStateBuilder().displayName(o.sort).desc(o.descending ?? false)])
    .colorScheme(colour(sdk.FieldColorModeId.Thresholds))
    .withOverride(forPattern('/.*/', set.noValue('–')));
  for (const c of columns) panel.overrideByName(c.name, looks(c));
  return panel;
}
