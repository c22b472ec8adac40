// Shared by all dashboards: variables, links between them, annotations, the row Health, and how
// panels are placed.

import * as sdk from '@grafana/grafana-foundation-sdk/dashboard';
import { colours, datasource, mappings, now, stat, steps, values } from './panels.js';
import { exportersUp, failed, firing, intervals, location, max, own, plan, reported, succeeded } from './promql.js';

/** The versions of Grafana 10.0 and of the SDK's panels, from which newer versions of Grafana migrate. */
const schemaVersion = 38;
const pluginVersion = '10.4.0';

/** A dashboard's title, its variables after those that all have, in the order of the bar, and whether outages concern it. */
const family = {
  stock: { title: 'Server rental: stock and prices', variables: ['location', 'plan', 'currency', 'account'], outages: true },
  plan: { title: 'Server rental: one plan', variables: ['plan', 'currency'], outages: false },
  accounts: { title: 'Server rental: accounts and servers', variables: ['account'], outages: false },
  status: { title: 'Server rental: provider status and exporter health', variables: ['account', 'location'], outages: true },
};
export type Name = keyof typeof family;
const variablesOf = (name: Name) => ['datasource', 'job', 'instance', ...family[name].variables];

/** They never change: bookmarks and links depend on them. */
export const uids = Object.fromEntries(Object.keys(family).map((name) => [name, `server-rental-${name}`]));

/** @param allValue what All means; all values that are offered if empty */
const choice = (name: string, label: string, description: string, selector: string, allValue = '.+') => new sdk.QueryVariableBuilder(name).label(label).description(description)
  .datasource(datasource).query(`label_values(${selector}, ${name})`).refresh(sdk.VariableRefresh.OnTimeRangeChanged).sort(sdk.VariableSort.NaturalAsc)
  .multi(true).includeAll(true).allValue(allValue).current({ selected: true, text: ['All'], value: ['$__all'] });

const variables = (name: Name): Record<string, { build: () => sdk.VariableModel }> => ({
  datasource: new sdk.DatasourceVariableBuilder('datasource').label('Data source').description('The Prometheus that scrapes the exporter.').type('prometheus')
    .hide(sdk.VariableHide.HideLabel).current({ selected: true, text: 'default', value: 'default' }),
  // Hidden, because few have more than one exporter; links and the address keep them.
  job: choice('job', 'Job', 'Scrape jobs of the exporter.', 'server_rental_exporter_build_info').hide(sdk.VariableHide.HideVariable),
  instance: choice('instance', 'Instance', 'Exporters. Several exporters of the same provider show everything once.', 'server_rental_exporter_build_info{job=~"$job"}')
    .hide(sdk.VariableHide.HideVariable),
  // From a metric that exists even while the token is rejected.
  account: choice('account', 'Account', 'Accounts in the exporter\'s configuration.', own('exporter_collector_interval_seconds', 'account!=""')),
  location: choice('location', 'Location', 'Locations of the provider.', own('location_info'), '.*'),
  plan: name === 'plan'
    ? choice('plan', 'Plan', 'Plan of the catalog.', own('plan_info'), '').multi(false).includeAll(false).current({ text: '', value: '' })
    // All means those that are listed here. Plans without a location have no such label, and so belong to All locations only.
    : choice('plan', 'Plan', 'Plans that are offered in the chosen locations.', `{__name__=~"server_rental_plan_(info|offered)", job=~"$job", instance=~"$instance", ${location}}`, ''),
  currency: new sdk.CustomVariableBuilder('currency').label('Currency').description('Currency of catalog prices. Balances and servers are in US dollars only.')
    .values('USD : usd, EUR : eur').current({ selected: true, text: 'USD', value: 'usd' })
    .options([{ selected: true, text: 'USD', value: 'usd' }, { selected: false, text: 'EUR', value: 'eur' }]),
});

/** The chosen currency, for titles. */
export const inCurrency = '${currency:text}';
/** The chosen plan. The variable of one plan is not escaped for a regular expression. */
export const planOf = (name: Name) => (name === 'plan' ? 'plan="$plan"' : plan);

/** A link from a cell of one of the dashboards. It keeps the time range and all variables that both have; one in the query replaces the present choice. */
export function linkTo(from: Name, to: Name, title: string, query: string) {
  const kept = variablesOf(from).filter((v) => variablesOf(to).includes(v) && !query.startsWith(`var-${v}=`)).map((v) => `\${${v}:queryparam}`);
  return { title, url: `/d/${uids[to]}?${[...kept, query, '${__url_time_range}'].join('&')}`, targetBlank: false };
}

/** Marks the time in which a component was neither operational nor in maintenance: only such states have series. */
function outages() {
  const expr = reported(failed);
  const query = new sdk.AnnotationQueryBuilder().name('Outages').datasource(datasource).enable(true).iconColor(colours.bad).expr(expr).build();
  // The SDK has no fields for the data source's own options. Grafana 10 and 11 read them from
  // here, newer versions from the target.
  const texts = { titleFormat: '{{component}} in {{location}}', textFormat: 'The component was not operational: {{state}}.', tagKeys: 'location,component' };
  return { ...query, step: '2m', ...texts, target: { refId: 'Anno', datasource, expr, interval: '2m', range: true, instant: false } as any };
}

/** Whether what a dashboard shows is current: the same on each. */
function health(name: Name) {
  const links = name === 'status' ? [] : [new sdk.DashboardLinkBuilder('Exporter health').type(sdk.DashboardLinkType.Link).url(linkTo(name, 'status', '', '').url.replace('&&', '&'))];
  const tile = { w: 6, h: 3, background: true, links };
  return [
    stat({
      ...tile, id: 901, title: 'Exporters', mappings: mappings.up, steps: steps.noneIsBad, noValue: 'None scraped', alerts: ['ExporterDown'],
      description: 'Whether Prometheus can scrape each exporter. While none is up, the panels of the present are empty.',
    }, now(exportersUp, '{{instance}}')),
    stat({
      ...tile, id: 902, title: 'Collectors', unit: 'suffix: failing', steps: steps.noneIsGood, mappings: [values({ 0: ['Working', colours.good] })], alerts: ['CollectorFailing'],
      description: 'The number of collectors whose last fetch failed at every exporter. Their data is the last that was fetched, and disappears after max_age.',
    }, now(`sum(1 - ${succeeded()})`, 'collectors')),
    stat({
      ...tile, id: 903, title: 'Oldest data', unit: 'suffix: intervals', decimals: 1, steps: steps.intervals, alerts: ['DataStale'],
      description: 'The age of the oldest data shown, in intervals of its collector. One is normal, the alert fires at ten.',
    }, now(max('', intervals()), 'intervals')),
    stat({
      ...tile, id: 904, title: 'Alerts', unit: 'suffix: firing', steps: steps.noneIsGood, mappings: [values({ 0: ['None', colours.good] })], noValue: 'No data from alerts/*.rules.yml', alerts: ['ExporterDown'],
      description: 'The number of different warnings and critical alerts of this project that fire. The dashboard of the status lists them.',
    }, now(firing, 'alerts')),
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

/** A dashboard of rows, the first of which is Health. */
export function dashboard(name: Name, o: { description: string, from: string, refresh: string, timezone: string, rows: Row[] }) {
  const all = variables(name);
  const b = new sdk.DashboardBuilder(family[name].title).uid(uids[name]).description(o.description)
    // Not in the list of dashboards, which would pass several plans.
    .tags([...(name === 'plan' ? [] : ['server-rental']), 'prometheus']).time({ from: o.from, to: 'now' }).refresh(o.refresh).timezone(o.timezone)
    .tooltip(1).readonly().version(1)
    .variables(variablesOf(name).map((v) => all[v]))
    .links([new sdk.DashboardLinkBuilder('Dashboards').type(sdk.DashboardLinkType.Dashboards).tags(['server-rental']).asDropdown(true).includeVars(true).keepTime(true)]);
  let y = 0;
  const timelines: number[] = [];
  for (const { id, title, collapsed = false, panels } of [{ id: 900, title: 'Health', panels: health(name) }, ...o.rows]) {
    const row = new sdk.RowBuilder(title).id(id).collapsed(collapsed).gridPos({ x: 0, y, w: width, h: 1 });
    const built = panels.map((p) => ({ ...p.build(), pluginVersion }));
    timelines.push(...built.filter((p) => p.type === 'state-timeline').map((p) => p.id ?? 0));
    const end = place(built, y + 1);
    // A collapsed row contains its panels and takes one line.
    if (collapsed) for (const panel of built) row.withPanel({ build: () => panel });
    b.withRow(row);
    if (!collapsed) for (const panel of built) b.withPanel({ build: () => panel });
    y = collapsed ? y + 1 : end;
  }
  // A mark on a timeline would hide what it marks.
  if (family[name].outages) b.annotation({ build: () => ({ ...outages(), filter: { exclude: true, ids: timelines } }) });
  return { ...b.build(), schemaVersion };
}
