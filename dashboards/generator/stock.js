// Stock and prices: what matches a watch, what can be ordered now and where, how often the
// rest is restocked, and what it costs.

import * as barchart from '@grafana/grafana-foundation-sdk/barchart';
import { VizLegendOptionsBuilder } from '@grafana/grafana-foundation-sdk/common';
import { FieldColorModeId } from '@grafana/grafana-foundation-sdk/dashboard';
import {
  between, colour, colours, common, course, dashboard, forPattern, linksFrom, mappings, now, palette, runbook, series, set, steps, table, timeline, units, values,
} from './lib/family.js';
import { account, atEnd, info, location, max, milliseconds, orNoAccounts, orLast, own, pinnedNow, plan, price } from './lib/promql.js';

const { linkTo, panelLink } = linksFrom('stock');

export const inStock = max('plan', own('plan_in_stock', plan));

/** The price of each plan in the chosen currency, which titles name. */
export const prices = max('plan', price('plan', plan));
export const inCurrency = '${currency:text}';

const planNames = info('plan', 'name', own('plan_info', plan));

/** The same for a chart: also those that are not known at a step, or any more. */
const namesInRange = atEnd(info('plan', 'name', `last_over_time(${own('plan_info', plan)}[$__range:$__interval])`));

const cores = max('plan', own('plan_cpu_cores', plan));
const memory = max('plan', own('plan_memory_bytes', plan));

/**
 * The present value of a time that only grows, or its highest in 30 days: an exporter knows
 * what happened since its start only. A restart hides the last quarter of an hour before it.
 * @param {string} selector
 */
const latest = (selector) => `(${selector} or max_over_time(${selector}[30d:15m]))`;

/** Since when each plan in stock is: the last change, or a later time at which it was sold out. */
const inStockSince = `max by (plan) (${latest(own('plan_stock_changed_timestamp_seconds', plan))}`
  + ` or label_replace(${max('plan', `max_over_time(timestamp(${own('plan_in_stock', plan)} == 0)[30d:15m])`)}, "from", "gauge", "", ""))`
  + ` and on (plan) (${inStock} == 1)`;

const lastInStock = max('plan', latest(own('plan_last_in_stock_timestamp_seconds', plan)));

/** Values of a time that is not known: before the 30 days, or before the first data. */
const unknownSince = { window: 1, data: 0 };
export const since = `(${inStockSince} or ${lastInStock} and on (plan) (${inStock} == 0) or ${unknownSince.window} + 0 * ${max('plan', `last_over_time(${own('plan_in_stock', plan)}[1d] offset 29d)`)}`
  + ` or ${unknownSince.data} * ${inStock}) and on (plan) ${inStock}`;
export const sinceTexts = values({ [unknownSince.window * 1000]: ['30 days or longer', colours.muted], [unknownSince.data]: ['Before first data', colours.muted] });

/**
 * The share of 30 days in which a gauge of 0 and 1 was 1. By steps, because there may be more
 * samples in some hours than in others; in the first hour there is none.
 * @param {string} expr
 */
const share = (expr) => `(avg_over_time((${expr})[30d:1h]) or ${expr})`;

/** A figure that rules record, of the plans of the catalog. @param {string} rule @param {(selector: string) => string} [use] */
export const recorded = (rule, use = (selector) => selector) => `${max('plan', use(`plan:server_rental_plan_${rule}{${plan}}`))} and on (plan) ${own('plan_info', plan)}`;

export const restocksOfMonth = recorded('restocks:max1h', (hourly) => `sum_over_time(${hourly}[30d:1h])`);
export const gone = recorded('return_seconds:avg30d', (time) => `(${time} - on (plan) plan:server_rental_plan_stay_seconds:avg30d{${plan}})`);

export const planLink = linkTo('plan', 'This plan', 'var-plan=${__data.fields.Id}');

// Without watches, or without a match, a row says so. Without data there is none.
const watchesInStock = max('watch', own('watch_plans_in_stock'));
const noWatches = `label_replace(0 * ${max('', own('exporter_build_info'))} unless on () ${watchesInStock}, "watch", "None configured", "", "")`;
const matching = `${max('watch, plan', own('watch_plan_in_stock'))} == 1`;
/** The address of the order form, as a link. */
export const orderForm = { from: 'order', name: 'Order', width: 60, filter: false, mappings: mappings.order, link: { title: 'Order form', url: '${__value.raw}', targetBlank: true } };
/**
 * Adds the address of the order form if it is known.
 * @param {string} key @param {string} expr @param {string} selector @param {string} [keys] of the rows
 */
const withOrder = (key, expr, selector, keys = key) => `${expr} * on (${key}) group_left (order) ${info(key, 'order', selector)} or on (${keys}) ${expr}`;

/** A column of prices. */
export const money = { unit: 'none', decimals: 2, width: 75 };

const watches = [
  table({
    id: 601, title: 'Watches', w: 12, h: 7, unit: 'none', sort: 'Watch', links: [runbook('ServerRentalWatchHit'), runbook('ServerRentalWatchEmpty')],
    description: 'The watches of the configuration: the number of plans that match and are in stock now, the last time a plan in stock began to match within 30 days, '
      + 'the share of the last 30 days with at least one match, and the number of plans that match, in stock or not. If that is 0, check the criteria.',
    key: ['watch'],
    columns: [
      { from: 'watch', name: 'Watch', minWidth: 140, filter: false },
      { from: '#now', name: 'Now', unit: 'none', decimals: 0, width: 55, steps: [{ value: null, color: colours.muted }, { value: 1, color: colours.good }] },
      { from: '#last', name: 'Last hit', unit: 'dateTimeFromNow', width: 145 },
      { from: '#share', name: 'Share', unit: 'percentunit', decimals: 0, width: 65 },
      { from: '#all', name: 'Plans', unit: 'none', decimals: 0, width: 60, steps: [{ value: null, color: colours.warn }, { value: 1, color: colours.muted }] },
    ],
  }, {
    now: `${watchesInStock} or ${noWatches}`,
    last: milliseconds(`(${max('watch', latest(own('watch_last_hit_timestamp_seconds')))} and on (watch) ${watchesInStock})`),
    share: `${share(`${watchesInStock} > bool 0`)} and on (watch) ${watchesInStock}`,
    all: max('watch', own('watch_plans')),
  }),
  table({
    id: 602, title: `Plans that match a watch now, ${inCurrency}`, w: 12, h: 7, unit: 'none', sort: 'Price', links: [runbook('ServerRentalWatchHit')],
    description: 'The plans in stock that match a watch, cheapest first, whichever plans are chosen above. Prices are per month, excluding VAT.',
    key: ['watch', 'plan'],
    columns: [
      { from: 'name', name: 'Plan', minWidth: 150, filter: false },
      { from: '#price', name: 'Price', ...money },
      { from: 'watch', name: 'Watch', minWidth: 140 },
      orderForm,
    ],
  }, {
    name: withOrder('plan', `(${matching}) * on (plan) group_left (name) ${info('plan', 'name', own('plan_info'))}`, own('plan_links_info'), 'watch, plan')
      + ` or on (watch) label_replace(${watchesInStock} == 0, "name", "None in stock", "", "") or on () label_replace(${noWatches}, "name", "None", "", "")`,
    price: `0 * (${matching}) + on (plan) group_left () ${max('plan', price('plan'))}`,
  }),
];

/** @param {number} h @param {...string} where matchers of the locations */
export const plans = (h, ...where) => table({
  id: 110, title: `Plans, ${inCurrency}`, w: 24, h, unit: 'none', sort: 'Price', links: [runbook('ServerRentalPlanPriceChanged')],
  description: 'Every chosen plan, cheapest first; in grey what was last known while the exporter is down. Prices are per month, excluding VAT, in the currency chosen above. '
    + '"Since" is when a plan in stock came back, and when one that is sold out was last seen in stock, within 30 days. Below each location, a full dot is a plan offered there '
    + 'and in stock, an empty dot a plan offered there but sold out. "Stays" is how long a plan stays in stock, "Gone" how long it is then sold out, on average over 30 days, '
    + '"Restocks" and "Share" how often and for which share of them it was in stock: these need the recording rules of this project. To the right are the alternative while sold out and prices per core and GiB.',
  // The first column of the matrix is renamed to the column that the other queries have,
  // because joinByField joins on the name of a column.
  before: [
    { id: 'groupingToMatrix', filter: { id: 'byRefId', options: 'offered' }, options: { columnField: 'location', rowField: 'plan', valueField: 'Value #offered', emptyValue: 'null' } },
    { id: 'organize', options: { renameByName: { 'plan\\location': 'plan' }, excludeByName: {}, indexByName: {} } },
  ],
  key: ['plan'], first: 5,
  columns: [
    { from: '#stock', name: 'Stock', mappings: mappings.stock, background: true, width: 72, align: 'center' },
    { from: 'name', name: 'Plan', width: 168, link: planLink, filter: false },
    { from: '#price', name: 'Price', ...money, width: 66 },
    { from: '#since', name: 'Since', unit: 'dateTimeFromNow', width: 145, mappings: sinceTexts, steps: steps.always(colours.muted) },
    orderForm,
    { from: '#stays', name: 'Stays', unit: 's', decimals: 0, width: 72 },
    { from: '#gone', name: 'Gone', unit: 's', decimals: 0, width: 72 },
    { from: '#cores', name: 'Cores', unit: 'none', width: 58 },
    { from: '#memory', name: 'Memory', unit: 'bytes', decimals: 0, width: 75 },
    { from: '#restocks', name: 'Restocks', unit: 'none', decimals: 0, width: 80 },
    { from: '#share', name: 'Share', unit: 'percentunit', decimals: 0, width: 65 },
    { from: 'alternative', name: 'Alternative', width: 130 },
    { from: 'family', name: 'Family', width: 102, filter: false },
    { from: 'gpu_model', name: 'GPU', width: 180 },
    { from: 'storage', name: 'Storage', width: 265 },
    { from: '#core', name: 'Per core', ...money },
    { from: '#gib', name: 'Per GiB', ...money },
    { from: 'id', name: 'Id', width: 145 },
  ],
}, {
  stock: orLast(inStock),
  name: planNames,
  price: prices,
  since: milliseconds(`(${since})`),
  order: info('plan', 'order', own('plan_links_info', plan)),
  offered: orLast(`${max('plan, location', own('plan_offered', plan, ...where))} * on (plan) group_left () ${inStock}`),
  stays: recorded('stay_seconds:avg30d'),
  gone,
  // Text, of which a part at the edge of the screen is no false number.
  family: info('plan', 'family', own('plan_info', plan)),
  cores,
  memory,
  hardware: info('plan', 'gpu_model, storage', own('plan_info', plan)),
  restocks: restocksOfMonth,
  share: recorded('in_stock:avg30d'),
  alternative: info('plan', 'alternative', own('plan_availability_info', 'alternative!=""', plan)),
  core: `${prices} / on (plan) ${cores}`,
  gib: `${prices} / on (plan) (${memory} / 2^30)`,
  id: `label_replace(${inStock}, "id", "$1", "plan", "(.+)")`,
})
  // One column for each location.
  .withOverride(forPattern('/^[a-z]{2,4}[0-9]?$/', set.mappings(mappings.offered), { id: 'custom.width', value: 50 }, { id: 'custom.align', value: 'center' }, { id: 'custom.cellOptions', value: { type: 'color-text' } }));

/** Configurations of the plans and locations chosen. @param {string} expr */
const chosen = (expr) => `${expr} and on (account, configuration) ${own('configuration_info', account, plan, location)}`;
const perConfiguration = (/** @type {string} */ selector) => max('account, configuration', selector);

/** Steps with two scrapes, as shorter ones could have none; and not too many, for speed. */
const resolution = { interval: '2m', points: 280 };

/** @param {{w: number, h: number}} size @param {...{build: () => any}} more rows */
export const stockOverTime = (size, ...more) => timeline({
  ...size, id: 201, title: 'Stock over time', unit: 'none', mappings: [...mappings.stock, between(0, 1, colours.fair, 'Part of the time')], ...resolution,
  description: 'When each chosen plan was in stock: in each step all the time, never, or part of it. Gaps are times without data. '
    + 'A watch is in stock if in the step at some time a plan in stock matched it, whichever plans are chosen.',
}, course(`avg by (plan) (avg_over_time(${own('plan_in_stock', plan)}[$__interval] offset -$__interval)) * on (plan) group_left (name) ${namesInRange}`, '{{name}}'), ...more);

/** @param {{w: number, h: number}} size */
export const restocksByHour = (size) => common(new barchart.PanelBuilder(), {
  ...size, id: 205, title: 'Restocks by hour of the day (UTC)', unit: 'none', decimals: 0,
  description: 'How many times the chosen plans came back in stock in each hour of the day, in the last 30 days. Needs the recording rules of this project.',
})
  .targets([now(`sum by (hour) (sum_over_time(plan_hour:server_rental_plan_restocks:max1h{${plan}}[30d:1h])) or on () label_replace(0 * ${max('', own('exporter_build_info'))}, "hour", "none known", "", "")`, '', 'A').format(/** @type {any} */ ('table'))])
  .transformations([
    { id: 'sortBy', options: { fields: {}, sort: [{ field: 'hour', desc: false }] } },
    { id: 'organize', options: { excludeByName: { Time: true }, indexByName: {}, renameByName: { hour: 'Hour', Value: 'Restocks' } } },
  ])
  .xField('Hour').xTickLabelSpacing(30).barWidth(0.9).lineWidth(0).fillOpacity(80)
  .colorScheme(colour(FieldColorModeId.Fixed, colours.plain))
  .legend(new VizLegendOptionsBuilder().showLegend(false));

const history = [
  stockOverTime({ w: 16, h: 14 }, course(`${max('watch', `max_over_time(${own('watch_plans_in_stock')}[$__interval] offset -$__interval)`)} > bool 0`, 'Watch {{watch}}', 'watches')),
  series({
    id: 604, title: 'Hits of watches', overrides: palette.names(), w: 8, h: 7, unit: 'none', decimals: 0, min: 0, softMax: 1, bars: true, after: true, stacked: true, interval: '1h', points: 60,
    description: 'How many times a plan in stock began to match each watch, in intervals that begin at the left edge of a bar. Whichever plans are chosen.', links: [runbook('ServerRentalWatchHit')],
  }, course(`sum by (watch) (round(${max('watch, plan', `increase(${own('watch_hits_total')}[$__interval] offset -$__interval)`)})) or on () ${noWatches}`, '{{watch}}')),
  restocksByHour({ w: 8, h: 7 }),
];

/** Prices change so rarely that longer steps show as much. */
const changes = { interval: '2m', points: 140 };

/** Each price at a step, or the last one before a gap of up to a day; and at the next step, or the last one if that has not come. */
const before = max('plan', `(${price('plan', plan)} or last_over_time(${price('plan', plan)}[1d:1h]))`);
const after = max('plan', `(${price('plan', plan)} offset -$__interval or ${atEnd(price('plan', plan))} and on () vector(time()) > ${pinnedNow('$at')} - $__interval_ms / 1000)`);
const inRange = (/** @type {string} */ func) => atEnd(`${func} by (plan) (${func}_over_time(${price('plan', plan)}[$__range:$__interval]))`);

const pricesOf = [
  series({
    id: 301, title: 'Price above the lowest in the time range', overrides: palette.names(), w: 12, h: 10, unit: 'percentunit', decimals: 1, min: 0, softMax: 0.02, ...changes, stepped: true, fill: 0,
    description: 'How much the monthly price of each plan was above the lowest in the time range. Plans whose price did not change are left out.', links: [runbook('ServerRentalPlanPriceChanged')],
  }, course(`${prices} / on (plan) (${inRange('min')} != on (plan) ${inRange('max')}) - 1 or on () label_replace(0 * max(${prices}), "plan", "no change", "", "")`, '{{plan}}')),
  table({
    id: 303, title: `Changes of prices, ${inCurrency}`, w: 12, h: 10, unit: 'none', sort: 'After', descending: true, history: true, links: [runbook('ServerRentalPlanPriceChanged')],
    description: 'Each change of a price in the time range, the latest first: the old and the new price, and the beginning of the interval in which it changed.',
    columns: [
      { from: 'Time', name: 'After', unit: units.minute, width: 140, filter: false },
      { from: 'plan', name: 'Plan', minWidth: 150, filter: false },
      { from: '#old', name: 'Old', ...money },
      { from: '#new', name: 'New', ...money },
    ],
  }, {
    // What may be absent is on the left of !=: VictoriaMetrics takes it on the right for a difference.
    new: `${after} and on (plan) (${before} != on (plan) ${after})`,
    old: `${before} and on (plan) (${after} != on (plan) ${before})`,
  }).interval(changes.interval).maxDataPoints(changes.points),
];

const places = [
  table({
    id: 403, title: 'Locations by stock', w: 11, h: 11, unit: 'none', sort: 'In stock', descending: true, key: ['location'], links: [runbook('ServerRentalLocationSoldOut')],
    description: 'The locations that offer the chosen plans, by the number in stock.',
    columns: [
      { from: 'location', name: 'Location', width: 80, filter: false, link: linkTo('stock', 'Show only this location', 'var-location=${__data.fields.Location}') },
      { from: 'city', name: 'City', filter: false, minWidth: 100 },
      { from: 'country', name: 'Country', width: 120, filter: false },
      { from: '#stock', name: 'In stock', unit: 'none', decimals: 0, width: 80, steps: steps.noneIsBad },
      { from: '#plans', name: 'Offered', unit: 'none', decimals: 0, width: 80 },
    ],
  }, {
    place: info('location', 'city, country', own('location_info', location)),
    stock: `sum by (location) (${max('plan, location', own('plan_offered', plan, location))} * on (plan) group_left () ${inStock})`,
    plans: `count by (location) (${max('plan, location', own('plan_offered', plan, location))})`,
  }),
  timeline({
    id: 402, title: 'Plans in stock per location', w: 13, h: 11, unit: 'none', decimals: 0, ...resolution,
    mappings: [...values({ 0: ['None', colours.gone] }), between(0, 4, colours.warn, 'Fewer than 4'), between(4, null, colours.good, '4 or more')],
    description: 'The number of plans that are offered in each location and in stock, whichever plans are chosen.', links: [runbook('ServerRentalLocationSoldOut')],
  }, course(max('location', own('location_plans_in_stock', location)), '{{location}}')),
];

const saved = [
  table({
    id: 501, title: `Saved configurations, ${inCurrency}`, w: 24, h: 8, unit: 'none', sort: 'Stock', descending: true, links: [runbook('ServerRentalConfigurationBackInStock'), panelLink('accounts', 'Accounts and servers')],
    description: 'The saved configurations of the chosen accounts, plans and locations: whether each can be ordered now, and its monthly price including options, excluding VAT.',
    key: ['account', 'configuration'],
    columns: [
      { from: '#stock', name: 'Stock', mappings: mappings.orderable, background: true, width: 130, align: 'center' },
      { from: 'account', name: 'Account', link: linkTo('accounts', 'Show this account', 'var-account=${__data.fields.Account}') },
      { from: 'hostname', name: 'Host name', minWidth: 150, filter: false },
      { from: 'plan', name: 'Plan', minWidth: 125, filter: false },
      { from: 'location', name: 'Location', width: 80, filter: false },
      { from: 'os', name: 'System', minWidth: 105, filter: false },
      orderForm,
      { from: '#price', name: 'Price', ...money },
      { from: '#share', name: 'Orderable 30 d', unit: 'percentunit', decimals: 0, width: 125 },
      { from: '#created', name: 'Saved', unit: 'dateTimeFromNow', width: 145 },
    ],
  }, {
    // If there are none, a row says so.
    info: orNoAccounts(withOrder('account, configuration', info('account, configuration', 'hostname, plan, location, os', own('configuration_info', account, plan, location)), own('configuration_links_info', account))
      + ` or on () label_replace(0 * ${max('', own('configurations', account))}, "hostname", "None saved", "", "")`, 'hostname'),
    stock: orLast(chosen(perConfiguration(own('configuration_in_stock', account)))),
    price: chosen(perConfiguration(price('configuration', account))),
    share: chosen(share(perConfiguration(own('configuration_in_stock', account)))),
    created: milliseconds(`(${chosen(perConfiguration(own('configuration_created_timestamp_seconds', account)))})`),
  }),
];

export const stock = () => dashboard('stock', {
  description: 'Plans that match a watch, stock, prices and locations of plans, and how often plans are restocked. Prices are per month and exclude VAT.',
  from: 'now-7d', refresh: '1m', timezone: 'browser',
  rows: [
    { id: 600, title: 'Watches and plans', panels: [...watches, plans(17, location)] },
    { id: 200, title: 'Restocks and history', panels: history },
    { id: 300, title: 'Prices', collapsed: true, panels: pricesOf },
    { id: 400, title: 'Locations', collapsed: true, panels: places },
    { id: 500, title: 'Saved configurations', collapsed: true, panels: saved },
  ],
});
