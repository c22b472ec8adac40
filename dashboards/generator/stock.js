// Stock and prices: what matches a watch, what can be ordered now and where, how often the
// rest is restocked, and what it costs.

import * as geomap from '@grafana/grafana-foundation-sdk/geomap';
import { MapLayerOptionsBuilder } from '@grafana/grafana-foundation-sdk/common';
import { FieldColorModeId } from '@grafana/grafana-foundation-sdk/dashboard';
import {
  between, colour, colours, common, course, dashboard, forPattern, forQuery, linksFrom, mappings, now, palette, runbook, series, set, stat, steps, table, timeline,
  units, values,
} from './lib/family.js';
import { account, colouredBy, info, location, max, milliseconds, named, offeredHere, orZero, own, plan, priced } from './lib/promql.js';

const { linkTo, panelLink } = linksFrom('stock');

const inStock = max('plan', own('plan_in_stock', plan));

/** The price of each plan. @param {'usd'|'eur'} currency */
const price = (currency) => max('plan', priced('plan_price_CURRENCY_per_month', currency, plan));

/**
 * The queries of a column with money: one for each currency.
 * @param {string} refId @param {(currency: 'usd'|'eur') => string} query
 */
const inCurrencies = (refId, query) => ({ [`${refId}usd`]: query('usd'), [`${refId}eur`]: query('eur') });

const cores = max('plan', own('plan_cpu_cores', plan));
const gibibytes = `(${max('plan', own('plan_memory_bytes', plan))} / 2^30)`;

const cheapest = (/** @type {'usd'|'eur'} */ currency) => offeredHere(`${named(price(currency), 'name, family')} and on (plan) (${inStock} == 1)`);

/** The unit of the query in euros. */
const euros = forQuery('eur', set.unit(units.eur));

const catalog = max('', own('catalog_plans'));

/**
 * Since when each plan in stock is, within 30 days: the last change that an exporter saw, or
 * a later hour in which the plan was sold out, if it came back while no exporter ran.
 */
const inStockSince = `max by (plan) (max_over_time(${own('plan_stock_changed_timestamp_seconds', plan)}[30d])`
  + ` or label_replace(${max('plan', `max_over_time(timestamp(${own('plan_in_stock', plan)} == 0)[30d:1h])`)}, "from", "hours", "", ""))`
  + ` and on (plan) (${inStock} == 1)`;

/** The maximum, because the series is absent after a restart until the plan is in stock. */
const lastInStock = max('plan', `max_over_time(${own('plan_last_in_stock_timestamp_seconds', plan)}[30d])`);

/** Values of a time that is not known: before the 30 days, or before the first data. */
const before = { window: 1, data: 0 };
const since = `(${inStockSince} or ${lastInStock} and on (plan) (${inStock} == 0) or ${before.window} + 0 * ${max('plan', `last_over_time(${own('plan_in_stock', plan)}[1d] offset 29d)`)}`
  + ` or ${before.data} * ${inStock}) and on (plan) ${inStock}`;
const sinceTexts = values({ [before.window * 1000]: ['30 days or longer', colours.muted], [before.data]: ['Before first data', colours.muted] });

const windows = ['24h', '7d', '30d', '90d'];
const inWords = (/** @type {string} */ range) => range.replace(/(\d+)/, '$1 ');

/** Restocks counted by the exporter, including those between two scrapes. @param {string} range */
const restocks = (range) => `round(${max('plan', `increase(${own('plan_restocks_total', plan)}[${range}])`)})`;

/**
 * The share of time that a gauge of 0 and 1 was 1. By samples, so that an exporter that is
 * newer does not count more than its time.
 * @param {string} by @param {string} selector @param {string} range
 */
const share = (by, selector, range) => `sum by (${by}) (sum_over_time(${selector}[${range}])) / sum by (${by}) (count_over_time(${selector}[${range}]))`;

/** Keeps the plans of the catalog: a row of history needs a name. @param {string} expr */
const listed = (expr) => offeredHere(`(${expr}) and on (plan) ${own('plan_info', plan)}`);

const planLink = linkTo('stock', 'Show only this plan', 'var-plan=${__data.fields.Id}');

// Without watches, or without a match, a row says so. Without data there is none.
const watchesInStock = max('watch', own('watch_plans_in_stock'));
const noWatches = `label_replace(0 * ${max('', own('exporter_build_info'))} unless on () ${watchesInStock}, "watch", "None configured", "", "")`;
const matching = `${max('watch, plan', own('watch_plan_in_stock'))} == 1`;
const textColour = [{ value: null, color: colours.muted }, { value: 1, color: colours.good }];

const watches = [
  table({
    id: 601, title: 'Watches', w: 7, h: 7, unit: 'none', sort: 'Watch', links: [runbook('ServerRentalWatchHit'), runbook('ServerRentalWatchEmpty')],
    description: 'The watches of the configuration: the number of plans that match and are in stock now, the last time a plan in stock began to match within 30 days, '
      + 'the share of the last 30 days with at least one match, and the number of plans that match, in stock or not. If that is 0, check the criteria.',
    key: ['watch'],
    columns: [
      { from: 'watch', name: 'Watch', width: 124 },
      { from: '#now', name: 'Now', unit: 'none', decimals: 0, width: 44, steps: textColour },
      { from: '#last', name: 'Last hit', unit: 'dateTimeFromNow', width: 103 },
      { from: '#share', name: 'Share', unit: 'percentunit', decimals: 0, width: 58 },
      { from: '#all', name: 'Plans', unit: 'none', decimals: 0, width: 51, steps: [{ value: null, color: colours.warn }, { value: 1, color: colours.muted }] },
    ],
  }, {
    now: `${watchesInStock} or ${noWatches}`,
    last: milliseconds(`(${max('watch', `max_over_time(${own('watch_last_hit_timestamp_seconds')}[30d])`)} and on (watch) ${watchesInStock})`),
    // In the first 15 minutes there is no step.
    share: `(avg_over_time((${watchesInStock} > bool 0)[30d:15m]) or ${watchesInStock} > bool 0) and on (watch) ${watchesInStock}`,
    all: max('watch', own('watch_plans')),
  }),
  table({
    id: 602, title: 'Plans that match a watch now', w: 7, h: 10, unit: 'none', sort: 'Price', links: [runbook('ServerRentalWatchHit')],
    description: 'The plans in stock that match a watch, cheapest first, whichever plans are chosen above. Prices are per month, excluding VAT.',
    key: ['watch', 'plan'],
    columns: [
      { from: 'name', name: 'Plan', width: 151 },
      { from: '#price', name: 'Price', money: true, width: 92 },
      { from: 'watch', name: 'Watch' },
    ],
  }, {
    name: `(${matching}) * on (plan) group_left (name) ${info('plan', 'name', own('plan_info'))}`
      + ` or on (watch) label_replace(${watchesInStock} == 0, "name", "None in stock", "", "") or on () label_replace(${noWatches}, "name", "None", "", "")`,
    ...inCurrencies('price', (currency) => `0 * (${matching}) + on (plan) group_left () ${max('plan', priced('plan_price_CURRENCY_per_month', currency))}`),
  }),
];

const plans = table({
  id: 110, title: 'Plans', w: 17, h: 17, unit: 'none', sort: 'Price', links: [runbook('ServerRentalPlanPriceChanged')],
  description: 'Every chosen plan, cheapest first. Prices are per month, excluding VAT, in the currency chosen above. '
    + '"Since" is when a plan in stock came back, and when one that is sold out was last seen in stock, within 30 days. Below each chosen location, a full dot is a plan offered there '
    + 'and in stock, an empty dot a plan offered there but sold out. Hardware, the alternative while sold out and prices per core and GiB are to the right.',
  // The first column of the matrix is renamed to the column that the other queries have,
  // because joinByField joins on the name of a column.
  before: [
    { id: 'groupingToMatrix', filter: { id: 'byRefId', options: 'offered' }, options: { columnField: 'location', rowField: 'plan', valueField: 'Value #offered', emptyValue: 'null' } },
    { id: 'organize', options: { renameByName: { 'plan\\location': 'plan' }, excludeByName: {}, indexByName: {} } },
  ],
  key: ['plan'], first: 4,
  columns: [
    { from: '#stock', name: 'Stock', mappings: mappings.stock, background: true, width: 85, align: 'center' },
    { from: 'name', name: 'Plan', width: 165, link: planLink },
    { from: '#price', name: 'Price', money: true, width: 95 },
    { from: '#since', name: 'Since', unit: 'dateTimeFromNow', width: 130, mappings: sinceTexts, steps: steps.always(colours.muted) },
    { from: '#cores', name: 'Cores', unit: 'none', width: 70 },
    { from: '#memory', name: 'Memory', unit: 'bytes', decimals: 0, width: 85 },
    { from: 'family', name: 'Family', width: 115 },
    { from: 'gpu_model', name: 'GPU', width: 180 },
    { from: 'storage', name: 'Storage', width: 265 },
    { from: 'alternative', name: 'Alternative', width: 145 },
    { from: '#core', name: 'Per core', money: true, width: 95 },
    { from: '#gib', name: 'Per GiB', money: true, width: 94 },
    { from: 'id', name: 'Id', width: 145 },
  ],
}, {
  stock: offeredHere(inStock),
  name: offeredHere(info('plan', 'name', own('plan_info', plan))),
  ...inCurrencies('price', (currency) => offeredHere(price(currency))),
  since: milliseconds(`(${offeredHere(`(${since})`)})`),
  offered: offeredHere(`${max('plan, location', own('plan_offered', plan, location))} * on (plan) group_left () ${inStock}`),
  cores: offeredHere(cores),
  memory: offeredHere(max('plan', own('plan_memory_bytes', plan))),
  hardware: offeredHere(info('plan', 'family, gpu_model, storage', own('plan_info', plan))),
  alternative: offeredHere(info('plan', 'alternative', own('plan_availability_info', 'alternative!=""', plan))),
  ...inCurrencies('core', (currency) => offeredHere(`${price(currency)} / on (plan) ${cores}`)),
  ...inCurrencies('gib', (currency) => offeredHere(`${price(currency)} / on (plan) ${gibibytes}`)),
  id: offeredHere(`label_replace(${inStock}, "id", "$1", "plan", "(.+)")`),
});
// One column for each location.
plans.withOverride(forPattern('/^[a-z]{2,4}[0-9]?$/', set.mappings(mappings.offered), { id: 'custom.width', value: 48 }, { id: 'custom.align', value: 'center' }, { id: 'custom.cellOptions', value: { type: 'color-text' } }));

/** Configurations of the plans and locations chosen. @param {string} expr */
const chosen = (expr) => `${expr} and on (account, configuration) ${own('configuration_info', account, plan, location)}`;
const perConfiguration = (/** @type {string} */ selector) => max('account, configuration', selector);

const glance = [
  stat({
    id: 101, title: 'Plans in stock', w: 4, h: 4, unit: 'none', steps: steps.noneIsBad, links: [runbook('ServerRentalPlanBackInStock'), runbook('ServerRentalPlanSoldOut')],
    description: 'The number of chosen plans that can be ordered now, and of those sold out.',
    overrides: [forQuery('gone', set.steps(steps.always(colours.muted)))],
  },
  now(orZero(`sum(${offeredHere(inStock)})`, catalog), 'in stock', 'here'),
  now(orZero(`sum(1 - (${offeredHere(inStock)}))`, catalog), 'sold out', 'gone')),
  stat({
    id: 102, title: 'Cheapest in stock', w: 5, h: 4, unit: units.usd, decimals: 2, text: /** @type {any} */ ('value_and_name'), mappings: values({ 0: ['Nothing', colours.muted] }),
    description: 'The chosen plan in stock with the lowest monthly price, excluding VAT.', overrides: [euros],
  },
  .../** @type {('usd'|'eur')[]} */ (['usd', 'eur']).map((currency) => now(
    `bottomk(1, ${cheapest(currency)}) or on () label_replace(0 * count(${price(currency)}), "name", "in stock", "", "")`, '{{name}}', currency))),
  stat({
    id: 103, title: 'Restocks in 24 hours', w: 4, h: 4, unit: 'none', steps: textColour,
    description: 'Restocks of the chosen plans within the last 24 hours, including those shorter than a scrape interval.',
  }, now(orZero(`sum(${offeredHere(restocks('24h'))})`, catalog), 'restocks')),
  stat({
    id: 104, title: 'Saved configurations', w: 5, h: 4, unit: 'none', steps: textColour,
    description: 'The number of saved configurations of the chosen accounts, plans and locations that can be ordered now, and the number of all.', links: [runbook('ServerRentalConfigurationBackInStock')],
    overrides: [forQuery('saved', set.steps(steps.always(colours.muted)))],
  },
  ...[['sum', 'orderable', 'orderable'], ['count', 'saved', 'saved']].map(([aggregate, legend, refId]) => now(
    orZero(`${aggregate}(${chosen(perConfiguration(own('configuration_in_stock', account)))})`, max('', own('configurations', account))), legend, refId))),
  stat({
    id: 105, title: 'Age of the catalog', w: 6, h: 4, unit: units.duration, steps: steps.rising(180, 600), links: [runbook('ServerRentalDataStale'), runbook('ServerRentalCatalogFrozen'), panelLink('status', 'Exporter health')],
    description: 'Time since the exporter last fetched the catalog, and since the provider generated it. The provider caches it for a minute and the exporter fetches it once a minute, so up to two minutes are normal.',
  },
  now(`time() - ${max('', own('exporter_collector_last_success_timestamp_seconds', 'collector="plans"'))}`, 'fetched', 'fetched'),
  now(`time() - ${max('', own('catalog_generated_timestamp_seconds'))}`, 'generated', 'generated')),
];

const partly = between(0, 1, colours.fair, 'Part of the time');

/** The share of each step that each plan was in stock. */
const inStockOverTime = `avg by (plan) (avg_over_time(${own('plan_in_stock', plan)}[$__interval]))`;

/** Steps with two scrapes, as shorter ones could have none; and not too many, for speed. */
const resolution = { interval: '2m', points: 400 };

const history = [
  timeline({
    id: 201, title: 'Stock of each plan', w: 17, h: 14, unit: 'none', mappings: [...mappings.stock, partly], ...resolution,
    description: 'When each chosen plan was in stock: in each step all the time, never, or part of it. Gaps are times without data.',
  }, course(offeredHere(named(inStockOverTime)), '{{name}}')),
  timeline({
    id: 603, title: 'Watches over time', w: 7, h: 7, unit: 'none', ...resolution,
    mappings: [...values({ 0: ['No match in stock', colours.gone] }), between(0, null, colours.good, 'At least one')],
    description: 'When at least one plan in stock matched each watch, in each step at some time. Whichever plans are chosen.',
  }, course(max('watch', `max_over_time(${own('watch_plans_in_stock')}[$__interval])`), '{{watch}}')),
  series({
    id: 604, title: 'Hits of watches', w: 7, h: 7, unit: 'none', decimals: 0, min: 0, softMax: 1, bars: true, stacked: true, byName: true, interval: '1h', points: 60,
    description: 'How many times a plan in stock began to match each watch. Whichever plans are chosen.', links: [runbook('ServerRentalWatchHit')],
  }, course(colouredBy('watch', `round(${max('watch', `increase(${own('watch_hits_total')}[$__interval])`)})`), '{{watch}}')),
  table({
    id: 204, title: 'Restocks and share of time in stock', w: 17, h: 14, unit: 'none', sort: 'Restocks 30 d', descending: true,
    description: 'Restocks of each chosen plan and its share of time in stock, over 24 hours, 7, 30 and 90 days. If there is less history than that, all of it counts. '
      + 'A plan with many restocks and a small share sells out fast: use an alert or a watch for it.',
    key: ['plan'],
    columns: [
      { from: 'name', name: 'Plan', width: 165, link: planLink },
      ...windows.map((w) => ({ from: `#restocks${w}`, name: `Restocks ${inWords(w)}`, unit: 'none', decimals: 0, width: 118 })),
      ...windows.map((w) => ({ from: `#share${w}`, name: `Share ${inWords(w)}`, unit: 'percentunit', decimals: 0, bar: true, max: 1, steps: steps.share, width: 97 })),
      { from: 'id', name: 'Id', width: 145 },
    ],
  }, {
    name: offeredHere(`label_replace(${info('plan', 'name', own('plan_info', plan))}, "id", "$1", "plan", "(.+)")`),
    ...Object.fromEntries(windows.map((w) => [`restocks${w}`, listed(restocks(w))])),
    ...Object.fromEntries(windows.map((w) => [`share${w}`, listed(share('plan', own('plan_in_stock', plan), w))])),
  }),
  table({
    id: 202, title: 'Cheapest in stock per family', w: 7, h: 7, unit: 'none', sort: 'Price',
    description: 'The number of plans in stock of each family, and the one with the lowest monthly price, excluding VAT.',
    key: ['family'], drop: ['plan'],
    columns: [
      { from: 'family', name: 'Family', width: 101 },
      { from: '#count', name: 'Now', unit: 'none', decimals: 0, width: 48, steps: steps.noneIsBad },
      { from: '#price', name: 'Price', money: true, width: 86 },
      { from: 'name', name: 'Cheapest' },
    ],
  }, {
    count: `sum by (family) (${offeredHere(named(inStock, 'family'))})`,
    ...inCurrencies('price', (currency) => `bottomk by (family) (1, ${cheapest(currency)})`),
  }),
  series({
    id: 203, title: 'Plans in stock by family', w: 7, h: 7, unit: 'none', decimals: 1, min: 0, stacked: true, stepped: true, byName: true, ...resolution,
    description: 'The number of chosen plans of each family in stock, on average over each step.', overrides: palette.families(),
  }, course(colouredBy('family', `sum by (family) (${offeredHere(named(inStockOverTime, 'family'))})`), '{{family}}')),
];

/** @param {'usd'|'eur'} currency @param {'min'|'max'} extreme */
const over = (currency, extreme) => listed(`${extreme} by (plan) (${extreme}_over_time(${priced('plan_price_CURRENCY_per_month', currency, plan)}[$__range]))`);

/** The price in either currency. A ratio has no unit. */
const ofCurrency = `{__name__=~"server_rental_plan_price_\${currency}_per_month", job=~"$job", instance=~"$instance", ${plan}}`;

const prices = [
  series({
    id: 301, title: 'Price of each plan', w: 14, h: 12, unit: units.usd, decimals: 2, ...resolution, log: true, stepped: true, legendRight: true, fill: 0, calcs: ['min', 'max', 'lastNotNull'],
    description: 'Monthly price, excluding VAT, in the currency chosen above, on a logarithmic scale. Choose one plan to see small changes.', links: [runbook('ServerRentalPlanPriceChanged')], overrides: [euros],
  },
  course(offeredHere(named(price('usd'))), '{{name}}', 'usd'),
  course(offeredHere(named(price('eur'))), '{{name}}', 'eur')),
  table({
    id: 302, title: 'Prices in the time range', w: 10, h: 12, unit: 'none', sort: 'Above lowest', descending: true, links: [runbook('ServerRentalPlanPriceChanged')],
    description: 'The lowest and the highest price of each plan in the time range, and how much the current price is above the lowest. Zero means that it was never cheaper.',
    key: ['plan'],
    columns: [
      { from: 'name', name: 'Plan', width: 150 },
      { from: '#low', name: 'Lowest', money: true, width: 95 },
      { from: '#price', name: 'Now', money: true, width: 95 },
      { from: '#high', name: 'Highest', money: true, width: 95 },
      { from: '#above', name: 'Above lowest', unit: 'percentunit', decimals: 1, width: 122, steps: [{ value: null, color: colours.good }, { value: 0.001, color: colours.warn }] },
    ],
  }, {
    name: offeredHere(info('plan', 'name', own('plan_info', plan))),
    ...inCurrencies('low', (currency) => over(currency, 'min')),
    ...inCurrencies('price', (currency) => offeredHere(price(currency))),
    ...inCurrencies('high', (currency) => over(currency, 'max')),
    above: offeredHere(`${max('plan', ofCurrency)} / on (plan) min by (plan) (min_over_time(${ofCurrency}[$__range])) - 1`),
  }),
];

/** Of each location, the number of chosen plans that are offered there and in stock. */
const stockHere = `sum by (location) (${max('plan, location', own('plan_offered', plan, location))} * on (plan) group_left () ${inStock})`;

const offers = `count by (location) (${max('plan, location', own('plan_offered', plan, location))})`;

const map = common(new geomap.PanelBuilder(), {
  id: 401, title: 'Locations by stock', w: 10, h: 11, unit: 'none', links: [runbook('ServerRentalLocationSoldOut')],
  steps: [{ value: null, color: colours.bad }, { value: 1, color: colours.warn }, { value: 4, color: colours.good }],
  description: 'The locations that offer the chosen plans, by the number in stock: red for none, orange for few. Point at a location for its name.',
})
  .targets(Object.entries({
    place: `${info('location', 'city, country', own('location_info', location))} and on (location) ${offers}`,
    lat: `${max('location', own('location_latitude_degrees', location))} and on (location) ${offers}`,
    lon: `${max('location', own('location_longitude_degrees', location))} and on (location) ${offers}`,
    stock: stockHere,
    plans: offers,
  }).map(([refId, expr]) => now(expr, '{{location}}', refId).format(/** @type {any} */ ('table'))))
  .transformations([
    { id: 'merge', options: {} },
    {
      id: 'organize',
      options: {
        excludeByName: { Time: true, Value: true, 'Value #place': true },
        indexByName: { city: 0, country: 1, 'Value #stock': 2, 'Value #plans': 3, location: 4, 'Value #lat': 5, 'Value #lon': 6 },
        renameByName: { city: 'City', country: 'Country', 'Value #stock': 'In stock', 'Value #plans': 'Plans offered', location: 'Id', 'Value #lat': 'Latitude', 'Value #lon': 'Longitude' },
      },
    },
  ])
  .colorScheme(colour(FieldColorModeId.Thresholds))
  .view(new geomap.MapViewConfigBuilder().id('coords').lat(25).lon(10).zoom(1))
  .controls(new geomap.ControlsOptionsBuilder().showZoom(true).mouseWheelZoom(false).showAttribution(true))
  // Grafana's own outlines of the countries, so that no map server is needed.
  .basemap(new MapLayerOptionsBuilder().type('geojson').name('Countries').config({
    src: 'public/maps/countries.geojson', rules: [],
    style: { size: { fixed: 1, min: 1, max: 1 }, color: { fixed: colours.unknown }, opacity: 0.3, symbol: { fixed: '', mode: 'fixed' }, rotation: { fixed: 0, min: -360, max: 360, mode: 'mod' } },
  }))
  .layers([new MapLayerOptionsBuilder().type('markers').name('Locations').tooltip(true)
    .location({ build: () => /** @type {any} */ ({ mode: 'coords', latitude: 'Latitude', longitude: 'Longitude' }) })
    .config({
      showLegend: false,
      style: {
        size: { fixed: 10, field: 'In stock', min: 7, max: 18 },
        color: { field: 'In stock', fixed: 'dark-green' },
        opacity: 0.7,
        symbol: { fixed: 'img/icons/marker/circle.svg', mode: 'fixed' },
        rotation: { fixed: 0, min: -360, max: 360, mode: 'mod' },
      },
    })])
  .tooltip(new geomap.TooltipOptionsBuilder().mode(geomap.TooltipMode.Details));

const places = [
  map,
  timeline({
    id: 402, title: 'Plans in stock per location', w: 14, h: 11, unit: 'none', decimals: 0, ...resolution,
    mappings: [...values({ 0: ['None', colours.gone] }), between(0, 4, colours.warn, 'Fewer than 4'), between(4, null, colours.good, '4 or more')],
    description: 'The number of chosen plans that are offered in each location and in stock.', links: [runbook('ServerRentalLocationSoldOut')],
  }, course(`${stockHere} * on (location) group_left (city) ${info('location', 'city', own('location_info', location))}`, '{{city}}')),
];

const saved = [
  table({
    id: 501, title: 'Saved configurations', w: 24, h: 8, unit: 'none', sort: 'Order', descending: true, links: [runbook('ServerRentalConfigurationBackInStock'), panelLink('accounts', 'Accounts and servers')],
    description: 'The saved configurations of the chosen accounts, plans and locations: whether each can be ordered now, and its monthly price including options, excluding VAT.',
    key: ['account', 'configuration'],
    columns: [
      { from: '#stock', name: 'Order', mappings: mappings.orderable, background: true, width: 130, align: 'center' },
      { from: 'account', name: 'Account', link: linkTo('accounts', 'Show this account', 'var-account=${__data.fields.Account}') },
      { from: 'hostname', name: 'Host name' },
      { from: 'plan', name: 'Plan' },
      { from: 'location', name: 'Location' },
      { from: 'os', name: 'Operating system' },
      { from: '#price', name: 'Price', money: true, width: 98 },
      { from: '#share', name: 'Orderable in 30 d', unit: 'percentunit', decimals: 0, bar: true, max: 1, steps: steps.share, width: 190 },
      { from: '#created', name: 'Saved', unit: 'dateTimeFromNow', width: 130 },
    ],
  }, {
    // If there are none, a row says so.
    info: `${info('account, configuration', 'hostname, plan, location, os', own('configuration_info', account, plan, location))}`
      + ` or on () label_replace(0 * ${max('', own('configurations', account))}, "hostname", "None saved", "", "")`,
    stock: chosen(perConfiguration(own('configuration_in_stock', account))),
    ...inCurrencies('price', (currency) => chosen(perConfiguration(priced('configuration_price_CURRENCY_per_month', currency, account)))),
    share: chosen(share('account, configuration', own('configuration_in_stock', account), '30d')),
    created: milliseconds(`(${chosen(perConfiguration(own('configuration_created_timestamp_seconds', account)))})`),
  }),
];

export const stock = () => dashboard('stock', {
  description: 'Plans that match a watch, stock, prices and locations of plans, and how often plans are restocked. Prices are per month and exclude VAT.',
  from: 'now-7d', refresh: '2m', timezone: 'browser',
  rows: [
    { id: 600, title: 'Watches and plans', panels: [watches[0], plans, watches[1]] },
    { id: 100, title: 'At a glance', panels: glance },
    { id: 200, title: 'Restocks and history', panels: history },
    { id: 300, title: 'Prices', collapsed: true, panels: prices },
    { id: 400, title: 'Locations', collapsed: true, panels: places },
    { id: 500, title: 'Saved configurations', collapsed: true, panels: saved },
  ],
});
