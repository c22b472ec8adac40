// Stock and prices: what can be ordered now, how often the rest is restocked, what it
// costs and where it is offered.

import * as geomap from '@grafana/grafana-foundation-sdk/geomap';
import { MapLayerOptionsBuilder } from '@grafana/grafana-foundation-sdk/common';
import { FieldColorModeId } from '@grafana/grafana-foundation-sdk/dashboard';
import {
  colour, colours, common, course, dashboard, forQuery, linksFrom, mappings, now, runbook, series, set, stat, steps, table, timeline,
} from './lib/family.js';
import { account, info, location, max, milliseconds, named, offeredHere, own, plan, priced } from './lib/promql.js';

const { linkTo, panelLink } = linksFrom('stock');

const inStock = max('plan', own('plan_in_stock', plan));

/** The price of each plan. @param {'usd'|'eur'} currency */
const price = (currency) => max('plan', priced('plan_price_CURRENCY_per_month', currency, plan));

const cores = max('plan', own('plan_cpu_cores', plan));
const gibibytes = `(${max('plan', own('plan_memory_bytes', plan))} / 2^30)`;

const cheapest = (/** @type {'usd'|'eur'} */ currency) => offeredHere(`${named(price(currency), 'name, family')} and on (plan) (${inStock} == 1)`);

/** The unit of the query in euros. */
const euros = forQuery('eur', set.unit('currencyEUR'));

/**
 * Looks back a day in steps of a minute, else 90 days in steps of five minutes: exact for
 * recent changes, and not too slow for old ones. A new Prometheus can have no sample yet
 * at the steps of five minutes.
 * @param {(range: string) => string} query
 */
const lookBack = (query) => `(${query('[1d:1m]')} or ${query('[90d:5m]')})`;

/** Since when a plan is in stock: its last sample as sold out, or its oldest sample if there is none. */
const inStockSince = `(${lookBack((range) => max('plan', `max_over_time(timestamp(${own('plan_in_stock', plan)} == 0)${range})`))}`
  + ` or min by (plan) (min_over_time(timestamp(${own('plan_in_stock', plan)})[90d:5m])) or min by (plan) (min_over_time(timestamp(${own('plan_in_stock', plan)})[1d:1m])))`
  + ` and on (plan) (${inStock} == 1)`;

/** The maximum, because the series is absent after a restart until the plan is in stock. */
const lastInStock = max('plan', `max_over_time(${own('plan_last_in_stock_timestamp_seconds', plan)}[90d])`);

const windows = [
  { range: '24h', step: '1m' },
  { range: '7d', step: '1m' },
  { range: '30d', step: '5m' },
  { range: '90d', step: '5m' },
];

/** Restocks counted by the exporter, including those between two scrapes. @param {string} range */
const restocks = (range) => `round(${max('plan', `increase(${own('plan_restocks_total', plan)}[${range}])`)})`;

/** Aggregated before it is averaged, so that a newer exporter does not count more than its time. @param {{range: string, step: string}} w */
const share = (w) => `(avg_over_time(${inStock}[${w.range}:${w.step}]) or avg_over_time(${inStock}[24h:1m]))`;

const planLink = { title: 'Show only this plan', url: '/d/server-rental-stock?${datasource:queryparam}&${job:queryparam}&${instance:queryparam}&${currency:queryparam}&var-plan=${__data.fields.Id}', targetBlank: false };

const glance = [
  stat({
    id: 101, title: 'Plans in stock', w: 4, h: 5, unit: 'none', steps: steps.noneIsBad, links: [runbook('ServerRentalPlanBackInStock'), runbook('ServerRentalPlanSoldOut')],
    description: 'The number of chosen plans that can be ordered now, and of those sold out.',
    overrides: [forQuery('gone', set.steps(steps.always(colours.muted)))],
  },
  now(`sum(${offeredHere(inStock)})`, 'in stock', 'here'),
  now(`sum(1 - (${offeredHere(inStock)}))`, 'sold out', 'gone')),
  stat({
    id: 102, title: 'Cheapest in stock', w: 6, h: 5, unit: 'currencyUSD', decimals: 2, text: /** @type {any} */ ('value_and_name'), noValue: 'Nothing in stock',
    description: 'The chosen plan in stock with the lowest monthly price, excluding VAT.', overrides: [euros],
  },
  now(`bottomk(1, ${cheapest('usd')})`, '{{name}}', 'usd'),
  now(`bottomk(1, ${cheapest('eur')})`, '{{name}}', 'eur')),
  stat({
    id: 103, title: 'Restocks in 24 hours', w: 4, h: 5, unit: 'none', steps: [{ value: null, color: colours.muted }, { value: 1, color: colours.good }],
    description: 'Restocks of the chosen plans within the last 24 hours, including those shorter than a scrape interval.',
  }, now(`sum(${offeredHere(restocks('24h'))})`, 'restocks')),
  stat({
    id: 104, title: 'Saved configurations', w: 4, h: 5, unit: 'none', noValue: 'None saved', steps: [{ value: null, color: colours.muted }, { value: 1, color: colours.good }],
    description: 'The number of saved configurations of the chosen accounts that can be ordered now, and the number of all.', links: [runbook('ServerRentalConfigurationBackInStock')],
    overrides: [forQuery('saved', set.steps(steps.always(colours.muted)))],
  },
  now(`sum(${max('account, configuration', own('configuration_in_stock', account))})`, 'can be ordered', 'orderable'),
  now(`count(${max('account, configuration', own('configuration_in_stock', account))})`, 'saved', 'saved')),
  stat({
    id: 105, title: 'Age of the catalog', w: 6, h: 5, unit: 's', decimals: 0, steps: steps.rising(180, 600), links: [runbook('ServerRentalDataStale'), runbook('ServerRentalCatalogFrozen'), panelLink('status', 'Exporter health')],
    description: 'Time since the exporter last fetched the catalog, and since the provider generated it. The provider caches it for a minute and the exporter fetches it once a minute, so up to two minutes are normal.',
  },
  now(`time() - ${max('', own('exporter_collector_last_success_timestamp_seconds', 'collector="plans"'))}`, 'fetched', 'fetched'),
  now(`time() - ${max('', own('catalog_generated_timestamp_seconds'))}`, 'generated', 'generated')),
];

const plans = table({
  id: 110, title: 'Plans', w: 24, h: 14, unit: 'none', sort: 'Price per month', links: [runbook('ServerRentalPlanPriceChanged')],
  description: 'Every chosen plan, cheapest first. Click a heading to sort by it. Prices are per month, excluding VAT, in the currency chosen above. '
    + '"In stock since" looks back 90 days; a plan that was never sold out shows its oldest sample. Below each location, a full dot is a plan offered there and in stock, '
    + 'an empty dot a plan offered there but sold out.',
  // The first column of the matrix is renamed to the column that the other queries have,
  // because joinByField joins on the name of a column.
  before: [
    { id: 'groupingToMatrix', filter: { id: 'byRefId', options: 'offered' }, options: { columnField: 'location', rowField: 'plan', valueField: 'Value #offered', emptyValue: 'null' } },
    { id: 'filterFieldsByName', options: { exclude: { pattern: '/^Time$/' } } },
    { id: 'organize', options: { renameByName: { 'plan\\location': 'plan' }, excludeByName: {}, indexByName: {} } },
  ],
  key: ['plan'],
  columns: [
    { from: '#stock', name: 'Stock', mappings: mappings.stock, background: true, width: 95, align: 'center' },
    { from: 'name', name: 'Plan', width: 150, link: planLink },
    { from: 'family', name: 'Family', width: 105 },
    { from: '#usd', name: 'Price per month', unit: 'currencyUSD', decimals: 2, width: 130 },
    { from: '#usdcore', name: 'Per core', unit: 'currencyUSD', decimals: 2, width: 85 },
    { from: '#usdgib', name: 'Per GiB', unit: 'currencyUSD', decimals: 2, width: 80 },
    { from: '#eur', name: 'Price per month (EUR)', unit: 'currencyEUR', decimals: 2, width: 165 },
    { from: '#eurcore', name: 'Per core (EUR)', unit: 'currencyEUR', decimals: 2, width: 120 },
    { from: '#eurgib', name: 'Per GiB (EUR)', unit: 'currencyEUR', decimals: 2, width: 115 },
    { from: '#cores', name: 'Cores', unit: 'none', width: 70 },
    { from: '#memory', name: 'Memory', unit: 'bytes', decimals: 0, width: 90 },
    { from: 'storage', name: 'Storage', width: 170 },
    { from: 'gpu_model', name: 'GPU', width: 130 },
    { from: '#since', name: 'In stock since', unit: 'dateTimeAsIso', width: 150 },
    { from: 'alternative', name: 'Alternative when sold out', width: 175 },
    { from: 'plan', name: 'Id', width: 125 },
  ],
}, {
  info: offeredHere(info('plan', 'name, family, storage, gpu_model', own('plan_info', plan))),
  stock: offeredHere(inStock),
  usd: offeredHere(price('usd')),
  usdcore: offeredHere(`${price('usd')} / on (plan) ${cores}`),
  usdgib: offeredHere(`${price('usd')} / on (plan) ${gibibytes}`),
  eur: offeredHere(price('eur')),
  eurcore: offeredHere(`${price('eur')} / on (plan) ${cores}`),
  eurgib: offeredHere(`${price('eur')} / on (plan) ${gibibytes}`),
  cores: offeredHere(cores),
  memory: offeredHere(max('plan', own('plan_memory_bytes', plan))),
  since: milliseconds(`(${offeredHere(inStockSince)})`),
  alternative: offeredHere(info('plan', 'alternative', own('plan_availability_info', 'alternative!=""', plan))),
  offered: offeredHere(`${max('plan, location', own('plan_offered', plan))} * on (plan) group_left () ${inStock}`),
});
// One column for each location.
plans.withOverride({ matcher: { id: 'byRegexp', options: '^[a-z]{2,4}[0-9]?$' }, properties: [set.mappings(mappings.offered), { id: 'custom.width', value: 52 }, { id: 'custom.align', value: 'center' }, { id: 'custom.cellOptions', value: { type: 'color-text' } }] });

const history = [
  timeline({
    id: 201, title: 'Stock of each plan', w: 16, h: 14, unit: 'none', mappings: mappings.stock, steps: [{ value: null, color: colours.gone }, { value: 1, color: colours.good }],
    description: 'When each chosen plan was in stock. Gaps are times without data.',
  }, course(offeredHere(named(inStock)), '{{name}}')),
  table({
    id: 202, title: 'Cheapest in stock per family', w: 8, h: 7, unit: 'none', sort: 'Price per month', noValue: '–',
    description: 'The number of plans in stock of each family, and the one with the lowest monthly price, excluding VAT.',
    columns: [
      { from: 'family', name: 'Family', width: 110 },
      { from: '#count', name: 'In stock', unit: 'none', decimals: 0, width: 80, steps: steps.noneIsBad },
      { from: 'name', name: 'Cheapest' },
      { from: '#usd', name: 'Price per month', unit: 'currencyUSD', decimals: 2, width: 130 },
      { from: '#eur', name: 'Price per month (EUR)', unit: 'currencyEUR', decimals: 2, width: 165 },
    ], drop: ['plan'],
  }, { count: `sum by (family) (${offeredHere(named(inStock, 'family'))})`, usd: `bottomk by (family) (1, ${cheapest('usd')})`, eur: `bottomk by (family) (1, ${cheapest('eur')})` }),
  series({
    id: 203, title: 'Plans in stock by family', w: 8, h: 7, unit: 'none', decimals: 0, min: 0, stacked: true, stepped: true,
    description: 'The number of chosen plans of each family in stock.',
  }, course(`sum by (family) (${offeredHere(named(inStock, 'family'))})`, '{{family}}')),
  table({
    id: 204, title: 'Restocks and share of time in stock', w: 24, h: 11, unit: 'none', sort: 'Restocks 30 d', descending: true,
    description: 'Restocks of each chosen plan and its share of time in stock, over 24 hours, 7, 30 and 90 days. If there is less history than that, all of it counts. '
      + 'A plan with many restocks and a small share sells out fast: use the alert for it.',
    columns: [
      { from: 'name', name: 'Plan', width: 160, link: planLink },
      ...windows.map((w) => ({ from: `#restocks${w.range}`, name: `Restocks ${w.range.replace(/(\d+)/, '$1 ')}`, unit: 'none', decimals: 0, width: 115 })),
      ...windows.map((w) => ({ from: `#share${w.range}`, name: `In stock ${w.range.replace(/(\d+)/, '$1 ')}`, unit: 'percentunit', decimals: 0, bar: true, max: 1, steps: steps.share })),
      { from: '#last', name: 'Last seen in stock', unit: 'dateTimeFromNow', width: 150 },
      { from: 'plan', name: 'Id', width: 130 },
    ],
  }, {
    name: offeredHere(info('plan', 'name', own('plan_info', plan))),
    ...Object.fromEntries(windows.map((w) => [`restocks${w.range}`, offeredHere(restocks(w.range))])),
    ...Object.fromEntries(windows.map((w) => [`share${w.range}`, offeredHere(share(w))])),
    last: milliseconds(`(${offeredHere(lastInStock)})`),
  }),
];

/** @param {'usd'|'eur'} currency @param {'min'|'max'} extreme */
const over = (currency, extreme) => offeredHere(`${extreme} by (plan) (${extreme}_over_time(${priced('plan_price_CURRENCY_per_month', currency, plan)}[$__range]))`);

const prices = [
  series({
    id: 301, title: 'Price of each plan', w: 14, h: 11, unit: 'currencyUSD', decimals: 2, stepped: true, legendRight: true, fill: 0, calcs: ['min', 'max', 'lastNotNull'],
    description: 'Monthly price, excluding VAT, in the currency chosen above.', links: [runbook('ServerRentalPlanPriceChanged')], overrides: [euros],
  },
  course(offeredHere(named(price('usd'))), '{{name}}', 'usd'),
  course(offeredHere(named(price('eur'))), '{{name}}', 'eur')),
  table({
    id: 302, title: 'Prices in the time range', w: 10, h: 11, unit: 'none', sort: 'Above the lowest', descending: true, links: [runbook('ServerRentalPlanPriceChanged')],
    description: 'The lowest and the highest price of each plan in the time range, and how much the current price is above the lowest. Zero means that it was never cheaper.',
    columns: [
      { from: 'name', name: 'Plan' },
      { from: '#lowusd', name: 'Lowest', unit: 'currencyUSD', decimals: 2, width: 90 },
      { from: '#usd', name: 'Now', unit: 'currencyUSD', decimals: 2, width: 90 },
      { from: '#highusd', name: 'Highest', unit: 'currencyUSD', decimals: 2, width: 90 },
      { from: '#loweur', name: 'Lowest (EUR)', unit: 'currencyEUR', decimals: 2, width: 110 },
      { from: '#eur', name: 'Now (EUR)', unit: 'currencyEUR', decimals: 2, width: 100 },
      { from: '#higheur', name: 'Highest (EUR)', unit: 'currencyEUR', decimals: 2, width: 115 },
      { from: '#above', name: 'Above the lowest', unit: 'percentunit', decimals: 1, width: 135, steps: [{ value: null, color: colours.good }, { value: 0.001, color: colours.warn }] },
    ], drop: ['plan'],
  }, {
    name: offeredHere(info('plan', 'name', own('plan_info', plan))),
    lowusd: over('usd', 'min'), usd: offeredHere(price('usd')), highusd: over('usd', 'max'),
    loweur: over('eur', 'min'), eur: offeredHere(price('eur')), higheur: over('eur', 'max'),
    above: offeredHere(`${max('plan', `{__name__=~"server_rental_plan_price_\${currency}_per_month", job=~"$job", instance=~"$instance", ${plan}}`)} / on (plan) min by (plan) (min_over_time({__name__=~"server_rental_plan_price_\${currency}_per_month", job=~"$job", instance=~"$instance", ${plan}}[$__range])) - 1`),
  }),
];

const map = common(new geomap.PanelBuilder(), {
  id: 401, title: 'Locations by stock', w: 13, h: 13, unit: 'none', links: [runbook('ServerRentalLocationSoldOut')],
  steps: [{ value: null, color: colours.bad }, { value: 1, color: colours.warn }, { value: 4, color: colours.good }],
  description: 'The number of plans in stock in each location, as the provider reports it: red for none, orange for few. The background map comes from the map server configured in Grafana.',
})
  .targets(Object.entries({
    place: info('location', 'city, country', own('location_info', location)),
    lat: max('location', own('location_latitude_degrees', location)),
    lon: max('location', own('location_longitude_degrees', location)),
    stock: max('location', own('location_plans_in_stock', location)),
    plans: max('location', own('location_plans', location)),
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
  .view(new geomap.MapViewConfigBuilder().id('coords').lat(25).lon(15).zoom(1.6))
  .controls(new geomap.ControlsOptionsBuilder().showZoom(true).mouseWheelZoom(false).showAttribution(true))
  .basemap(new MapLayerOptionsBuilder().type('default').name('Map'))
  .layers([new MapLayerOptionsBuilder().type('markers').name('Locations').tooltip(true)
    .location({ build: () => /** @type {any} */ ({ mode: 'coords', latitude: 'Latitude', longitude: 'Longitude' }) })
    .config({
      showLegend: false,
      style: {
        size: { fixed: 10, field: 'In stock', min: 7, max: 18 },
        color: { field: 'In stock', fixed: 'dark-green' },
        opacity: 0.7,
        symbol: { fixed: 'img/icons/marker/circle.svg', mode: 'fixed' },
        text: { field: 'City', fixed: '', mode: 'field' },
        textConfig: { fontSize: 12, offsetX: 0, offsetY: -18, textAlign: 'center', textBaseline: 'middle' },
        rotation: { fixed: 0, min: -360, max: 360, mode: 'mod' },
      },
    })])
  .tooltip(new geomap.TooltipOptionsBuilder().mode(geomap.TooltipMode.Details));

const places = [
  map,
  series({
    id: 402, title: 'Plans in stock per location', w: 11, h: 13, unit: 'none', decimals: 0, min: 0, stepped: true, fill: 0, calcs: ['min', 'max', 'lastNotNull'],
    description: 'The number of plans in stock in each location, as the provider reports it.', links: [runbook('ServerRentalLocationSoldOut')],
  }, course(`${max('location', own('location_plans_in_stock', location))} * on (location) group_left (city) ${info('location', 'city', own('location_info', location))}`, '{{city}}')),
];

/** Configurations of the plans and locations chosen. @param {string} expr */
const chosen = (expr) => `${expr} and on (account, configuration) ${own('configuration_info', account, plan, location)}`;
const perConfiguration = (/** @type {string} */ selector) => max('account, configuration', selector);

const saved = [
  table({
    id: 501, title: 'Saved configurations', w: 24, h: 8, unit: 'none', sort: 'Order', descending: true, noValue: '–', links: [runbook('ServerRentalConfigurationBackInStock'), panelLink('accounts', 'Accounts and servers')],
    description: 'The saved configurations of the chosen accounts: whether each can be ordered now, and its monthly price including options, excluding VAT.',
    columns: [
      { from: '#stock', name: 'Order', mappings: mappings.orderable, background: true, width: 130, align: 'center' },
      { from: 'account', name: 'Account', link: linkTo('accounts', 'Show this account', 'var-account=${__data.fields.Account}') },
      { from: 'hostname', name: 'Host name' },
      { from: 'plan', name: 'Plan' },
      { from: 'location', name: 'Location' },
      { from: 'os', name: 'Operating system' },
      { from: '#usd', name: 'Price per month', unit: 'currencyUSD', decimals: 2 },
      { from: '#eur', name: 'Price per month (EUR)', unit: 'currencyEUR', decimals: 2 },
      { from: '#share', name: 'Orderable in 30 d', unit: 'percentunit', decimals: 0, bar: true, max: 1, steps: steps.share, width: 190 },
      { from: '#created', name: 'Saved', unit: 'dateTimeFromNow', width: 130 },
    ], drop: ['configuration'],
  }, {
    info: info('account, configuration', 'hostname, plan, location, os', own('configuration_info', account, plan, location)),
    stock: chosen(perConfiguration(own('configuration_in_stock', account))),
    usd: chosen(perConfiguration(priced('configuration_price_CURRENCY_per_month', 'usd', account))),
    eur: chosen(perConfiguration(priced('configuration_price_CURRENCY_per_month', 'eur', account))),
    share: chosen(`(avg_over_time(${perConfiguration(own('configuration_in_stock', account))}[30d:5m]) or avg_over_time(${perConfiguration(own('configuration_in_stock', account))}[24h:1m]))`),
    created: milliseconds(`(${chosen(perConfiguration(own('configuration_created_timestamp_seconds', account)))})`),
  }),
];

export const stock = () => dashboard('stock', {
  description: 'Stock, prices and locations of plans, and how often plans are restocked. Prices are per month and exclude VAT.',
  from: 'now-7d', refresh: '2m', timezone: 'browser',
  rows: [
    { id: 100, title: 'Now', panels: [...glance, plans] },
    { id: 200, title: 'Restocks and history', panels: history },
    { id: 300, title: 'Prices', panels: prices },
    { id: 400, title: 'Locations', panels: places },
    { id: 500, title: 'Saved configurations', panels: saved },
  ],
});
