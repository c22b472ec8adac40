// Stock and prices: what can be ordered now of what a watch or a saved configuration waits
// for, what else can be ordered and where, how often the rest is restocked, and what it costs.

import * as barchart from '@grafana/grafana-foundation-sdk/barchart';
import { VizLegendOptionsBuilder } from '@grafana/grafana-foundation-sdk/common';
import { FieldColorModeId } from '@grafana/grafana-foundation-sdk/dashboard';
import {
  between, colour, colours, common, course, dashboard, forPattern, linksFrom, mappings, now, palette, runbook, series, set, steps, table, timeline, units, values,
} from './lib/family.js';
import { account, atEnd, end, info, known, location, max, milliseconds, orNoAccounts, orLast, own, plan, price } from './lib/promql.js';

const { linkTo, panelLink } = linksFrom('stock');

export const inCurrency = '${currency:text}';

/**
 * The present value of a time that only grows, or its highest in some days: an exporter knows
 * what happened since its start only. A restart hides the last quarter of an hour before it.
 * @param {string} selector @param {number} [days]
 */
const latest = (selector, days = 30) => `(${selector} or max_over_time(${selector}[${days}d:15m]))`;

/** Recorded whenever the rules and the catalog are there. Saved configurations may be known for longer than the catalog. */
const rules = max('', 'last_over_time(plan:server_rental_plan_in_stock:max{}[1h])');

/** Texts of a time that is not known: 0 is before the first data, and a number of days longer ago. */
export const sinceTexts = values({ 7000: ['7 days or longer', colours.muted], 30000: ['30 days or longer', colours.muted], 0: ['Before first data', colours.muted] });

/**
 * The stock of plans or of saved configurations, since when it is so, and prices.
 * @param {'plan' | 'configuration'} of @param {string} by the labels of one @param {7 | 30} days in which times are looked for @param {...string} where matchers
 */
export function stockOf(of, by, days, ...where) {
  const metric = (/** @type {string} */ name) => own(`${of}_${name}`, ...where);
  const inStock = max(by, metric('in_stock'));
  // The last change, or a later time at which it was sold out.
  const began = `max by (${by}) (${latest(metric('stock_changed_timestamp_seconds'), days)}`
    + ` or label_replace(${max(by, `max_over_time(timestamp(${metric('in_stock')} == 0)[${days}d:15m])`)}, "from", "gauge", "", "")) and on (${by}) (${inStock} == 1)`;
  const last = max(by, latest(metric('last_in_stock_timestamp_seconds'), days));
  const prefix = by.replace(', ', '_');
  /** A figure that rules record. @param {string} rule @param {(expr: string) => string} [use] @param {string[]} [matchers] */
  const recorded = (rule, use = (expr) => expr, matchers = where) => `(${use(max(by, `${prefix}:server_rental_${of}_${rule}{${matchers.join(', ')}}`))} or on (${by}) (0 * ${inStock} - 1 unless on () ${rules}))`;
  const hours = (/** @type {string} */ expr) => `${expr} / 3600`;
  const stay = `${prefix}:server_rental_${of}_stay_seconds:avg30d{${where.join(', ')}}`;
  const gone = (/** @type {string} */ time) => `(${time} - on (${by}) ${stay})`;
  return {
    inStock,
    price: max(by, price(of, ...where)),
    since: milliseconds(`((${began} or ${last} and on (${by}) (${inStock} == 0) or ${days} + 0 * ${max(by, `last_over_time(${metric('in_stock')}[1d] offset ${days - 1}d)`)} or 0 * ${inStock}) and on (${by}) ${inStock})`),
    /** When it usually is back, if it is sold out. */
    back: milliseconds(`((${last} and on (${by}) (${inStock} == 0)) + on (${by}) (${recorded('return_seconds:avg30d', gone)} >= 0))`),
    stays: recorded('stay_seconds:avg30d', hours),
    gone: recorded('return_seconds:avg30d', (time) => hours(gone(time))),
    restocks: recorded('restocks:max1h', (hourly) => `sum_over_time((${hourly})[30d:1h])`),
    share: recorded('in_stock:avg30d'),
  };
}

export const chosen = stockOf('plan', 'plan', 30, plan);
const everyPlan = stockOf('plan', 'plan', 7);
const perConfiguration = 'account, configuration';
const everySaved = stockOf('configuration', perConfiguration, 7);

const cores = max('plan', own('plan_cpu_cores', plan));
const memory = max('plan', own('plan_memory_bytes', plan));

export const planLink = linkTo('plan', 'This plan', 'var-plan=${__data.fields.Id}');

/** The address of the order form, as a link. */
export const orderForm = { from: 'order', name: 'Order', width: 60, filter: false, mappings: mappings.order, link: { title: 'Order form', url: '${__value.raw}', targetBlank: true } };
/** A column of prices. */
export const money = { unit: 'none', decimals: 2, width: 66 };
export const stockColumn = { from: '#stock', name: 'Stock', mappings: mappings.stock, background: true, width: 72, align: /** @type {'center'} */ ('center') };
const sinceColumn = { from: '#since', name: 'Since', unit: 'dateTimeFromNow', width: 145, mappings: sinceTexts, steps: steps.always(colours.muted) };
/** Columns of what rules record. */
const recordedColumns = [
  { from: '#stays', name: 'Stays', unit: units.hours, decimals: 1, width: 72 },
  { from: '#gone', name: 'Gone', unit: units.hours, decimals: 1, width: 72 },
  { from: '#restocks', name: 'Restocks', unit: 'none', decimals: 0, width: 80 },
  { from: '#share', name: 'Share', unit: 'percentunit', decimals: 0, width: 68 },
].map((column) => ({ ...column, mappings: mappings.recorded, steps: steps.always(colours.muted) }));
const recordedText = '"Stays" is how long it stays in stock, "Gone" how long it is then sold out, on average over 30 days; "Restocks" and "Share" are how often it came back, and for which share of them it was in stock: these need the recording rules of this project.';

// Without watches, a row says so. Without data, and without the locations that a watch may need, there is none.
const watchesInStock = max('watch', own('watch_plans_in_stock'));
const noWatches = `label_replace(0 * ${max('', known.plans)} unless on () ${watchesInStock} unless on () ${own('exporter_collector_success', 'collector="locations"')} == 0, "watch", "None configured", "", "")`;

/** Figures of watched plans and saved configurations, by the label item. @param {string} ofPlan @param {string} ofSaved @param {string} [labels] */
const perItem = (ofPlan, ofSaved, labels = 'item') => `max by (${labels}) (label_join(${ofPlan}, "item", "/", "plan") or label_join(${atEnd(ofSaved, 'saved')}, "item", "/", "account", "configuration"))`;
/** @param {'price' | 'since' | 'stays' | 'back'} figure */
const ofItems = (figure) => perItem(everyPlan[figure], everySaved[figure]);
const watched = max('plan', own('watch_plan_in_stock'));
const items = perItem(orLast(watched, known.plans), orLast(everySaved.inStock, known.saved));
const there = `${items} % 10 == 1`;

const orderNow = [table({
  id: 602, title: `Order now, ${inCurrency}`, w: 24, h: 8, unit: 'none', sort: 'Price', key: ['item'], only: ['stock'], links: [runbook('ServerRentalWatchHit'), runbook('ServerRentalConfigurationBackInStock')],
  description: 'The plans that match a watch and the saved configurations that can be ordered now, cheapest first, since when, and how long they usually stay. If there are none: when each was last in stock, and when it is usually back. '
    + 'In grey what was last known. Prices are per month, excluding VAT.',
  columns: [
    stockColumn,
    { from: 'name', name: 'Plan', minWidth: 150, filter: false },
    { from: '#price', name: 'Price', ...money },
    { ...orderForm, background: true },
    sinceColumn,
    recordedColumns[0],
    { from: '#back', name: 'Usually back', unit: 'dateTimeFromNow', width: 130 },
    { from: 'why', name: 'Watch or host name', minWidth: 140 },
  ],
}, {
  stock: `${items} and on (item) ${there} or (${items} unless on () ${there})`
    + ` or on () label_replace(0 * ${max('', known.plans)} - 1, "item", "none", "", "")`,
  name: perItem(info('plan', 'name', own('plan_info')), `label_join(${info(perConfiguration, 'plan, location', own('configuration_info'))}, "name", ", ", "plan", "location")`, 'item, name')
    + ` or on (item) label_replace(label_replace(0 * ${max('', known.plans)}, "item", "none", "", ""), "name", "No watch, nothing saved", "", "")`,
  price: ofItems('price'),
  order: perItem(info('plan', 'order', own('plan_links_info')), info(perConfiguration, 'order', own('configuration_links_info')), 'item, order'),
  since: ofItems('since'),
  stays: ofItems('stays'),
  back: ofItems('back'),
  why: perItem(`label_replace(${info('plan', 'watch', own('watch_plan_in_stock'))}, "why", "$1", "watch", "(.+)")`, `label_replace(${info(perConfiguration, 'hostname', own('configuration_info'))}, "why", "$1", "hostname", "(.+)")`, 'item, why'),
})];

const hits = `count_values by (watch) ("now", ${watchesInStock} or ${noWatches})`;

const watches = [table({
  id: 601, title: 'Watches', w: 24, h: 6, unit: 'none', sort: 'Watch', links: [runbook('ServerRentalWatchHit'), runbook('ServerRentalWatchEmpty')],
  description: 'The watches of the configuration: the number of plans that match and are in stock now, in grey and parentheses what was last known, the last time a plan in stock began to match within 30 days, '
    + 'the share of the last 30 days with at least one match, and the number of plans that match, in stock or not. If that is 0, check the criteria.',
  key: ['watch'],
  columns: [
    { from: 'watch', name: 'Watch', minWidth: 140, filter: false },
    { from: 'now', name: 'Now', width: 55, filter: false, align: 'right', mappings: mappings.hits },
    { from: '#all', name: 'Plans', unit: 'none', decimals: 0, width: 60, steps: [{ value: null, color: colours.warn }, { value: 1, color: colours.muted }] },
    { from: '#share', name: 'Share', unit: 'percentunit', decimals: 0, width: 65 },
    { from: '#last', name: 'Last hit', unit: 'dateTimeFromNow', width: 145 },
  ],
}, {
  now: `${hits} and on () ${known.plans} @ ${end} or on (watch) label_replace(${hits}, "now", "($1)", "now", "(.+)")`,
  last: milliseconds(`(${max('watch', latest(own('watch_last_hit_timestamp_seconds')))} and on (watch) ${watchesInStock})`),
  // By steps, because there may be more samples in some hours than in others; in the first hour there is none.
  share: `(avg_over_time((${watchesInStock} > bool 0)[30d:1h]) or ${watchesInStock} > bool 0) and on (watch) ${watchesInStock}`,
  all: max('watch', own('watch_plans')),
})];

/** @param {number} h @param {...string} where matchers of the locations */
export const plans = (h, ...where) => table({
  id: 110, title: `Plans, ${inCurrency}`, w: 24, h, unit: 'none', sort: 'Price', links: [runbook('ServerRentalPlanPriceChanged')],
  description: 'Every chosen plan, cheapest first; in grey what was last known while the exporter or the provider is down. Prices are per month, excluding VAT, in the currency chosen above. '
    + '"Since" is when a plan in stock came back, and when one that is sold out was last seen in stock, within 30 days. Below each location, a full dot is a plan offered there '
    + `and in stock, an empty dot a plan offered there but sold out. ${recordedText} To the right are the alternative while sold out and prices per core and GiB.`,
  // The first column of the matrix is renamed to the column that the other queries have,
  // because joinByField joins on the name of a column.
  before: [
    { id: 'groupingToMatrix', filter: { id: 'byRefId', options: 'offered' }, options: { columnField: 'location', rowField: 'plan', valueField: 'Value #offered', emptyValue: 'null' } },
    { id: 'organize', options: { renameByName: { 'plan\\location': 'plan' }, excludeByName: {}, indexByName: {} } },
  ],
  key: ['plan'], first: 5, only: ['stock'],
  columns: [
    stockColumn,
    { from: 'name', name: 'Plan', width: 164, link: planLink, filter: false },
    { from: '#price', name: 'Price', ...money },
    orderForm,
    sinceColumn,
    ...recordedColumns.slice(0, 2),
    { from: '#cores', name: 'Cores', unit: 'none', width: 58 },
    { from: '#memory', name: 'Memory', unit: 'bytes', decimals: 0, width: 75 },
    ...recordedColumns.slice(2),
    { from: 'alternative', name: 'Alternative', width: 130 },
    { from: 'family', name: 'Family', width: 102, filter: false },
    { from: 'gpu_model', name: 'GPU', width: 180 },
    { from: 'storage', name: 'Storage', width: 265 },
    { from: '#core', name: 'Per core', ...money, width: 75 },
    { from: '#gib', name: 'Per GiB', ...money, width: 75 },
    { from: 'id', name: 'Id', width: 145 },
  ],
}, {
  stock: orLast(chosen.inStock, known.plans),
  name: info('plan', 'name', own('plan_info', plan)),
  price: chosen.price,
  order: info('plan', 'order', own('plan_links_info', plan)),
  since: chosen.since,
  offered: orLast(`${max('plan, location', own('plan_offered', plan, ...where))} * on (plan) group_left () ${chosen.inStock}`, known.plans),
  // Text, of which a part at the edge of the screen is no false number.
  family: info('plan', 'family', own('plan_info', plan)),
  stays: chosen.stays,
  gone: chosen.gone,
  cores,
  memory,
  hardware: info('plan', 'gpu_model, storage', own('plan_info', plan)),
  restocks: chosen.restocks,
  share: chosen.share,
  alternative: info('plan', 'alternative', own('plan_availability_info', 'alternative!=""', plan)),
  core: `${chosen.price} / on (plan) ${cores}`,
  gib: `${chosen.price} / on (plan) (${memory} / 2^30)`,
  id: `label_replace(${chosen.inStock}, "id", "$1", "plan", "(.+)")`,
})
  // One column for each location.
  .withOverride(forPattern('/^[a-z]{2,4}[0-9]?$/', set.mappings(mappings.offered), { id: 'custom.width', value: 50 }, { id: 'custom.align', value: 'center' }, { id: 'custom.cellOptions', value: { type: 'color-text' } }));

/** The saved configurations of the chosen plans. @param {{w: number, h: number}} size @param {string[]} accounts matchers of the accounts @param {string[]} where of plans and locations */
export function saved(size, accounts, where) {
  const one = stockOf('configuration', perConfiguration, 7, ...accounts);
  const infos = info(perConfiguration, 'plan, location, hostname, os', own('configuration_info', ...accounts, ...where));
  const order = info(perConfiguration, 'order', own('configuration_links_info', ...accounts));
  // If there are none, a row says so.
  const rows = `${infos} * on (${perConfiguration}) group_left (order) ${order} or on (${perConfiguration}) ${infos} or on () label_replace(0 * ${max('', own('configurations', ...accounts))}, "plan", "None saved", "", "")`;
  const queries = {
    info: accounts.length ? orNoAccounts(rows, 'plan') : rows,
    stock: orLast(one.inStock, known.saved),
    price: one.price,
    since: one.since,
    stays: one.stays,
    gone: one.gone,
    restocks: one.restocks,
    share: one.share,
    created: milliseconds(max(perConfiguration, own('configuration_created_timestamp_seconds', ...accounts))),
  };
  return table({
    ...size, id: 501, title: `Saved configurations, ${inCurrency}`, unit: 'none', sort: 'Stock', descending: true, only: ['info'], links: [runbook('ServerRentalConfigurationBackInStock')],
    description: 'The saved configurations of the chosen accounts, plans and locations: whether each can be ordered now, in grey what was last known, since when, and its monthly price including options, excluding VAT. '
      + `This is the only stock by location that the provider reports. ${recordedText}`,
    key: ['account', 'configuration'],
    columns: [
      stockColumn,
      { from: 'plan', name: 'Plan', minWidth: 125, filter: false },
      { from: '#price', name: 'Price', ...money },
      orderForm,
      { from: 'location', name: 'Location', width: 78, filter: false },
      sinceColumn,
      { from: 'hostname', name: 'Host name', minWidth: 165, filter: false },
      ...recordedColumns,
      { from: 'account', name: 'Account', width: 100, link: linkTo('accounts', 'Show this account', 'var-account=${__value.raw}') },
      { from: 'os', name: 'System', width: 115, filter: false },
      { from: '#created', name: 'Saved', unit: 'dateTimeFromNow', width: 145 },
    ],
  }, Object.fromEntries(Object.entries(queries).map(([refId, expr]) => [refId, atEnd(expr, 'saved')])));
}

/** Steps with two scrapes, as shorter ones could have none; and not too many, for speed. */
const resolution = { interval: '2m', points: 280 };

/** The share of each step that begins at a time. @param {string} selector */
const inStep = (selector) => `avg_over_time(${selector}[$__interval] offset -$__interval)`;

/** @param {{w: number, h: number}} size @param {string[]} accounts matchers of saved configurations @param {...{build: () => any}} more rows */
export const stockOverTime = (size, accounts, ...more) => timeline({
  ...size, id: 201, title: 'Stock over time', unit: 'none', mappings: [...mappings.stock, between(0, 1, colours.fair, 'Part of the time')], ...resolution,
  description: 'When each chosen plan and saved configuration was in stock: in each step all the time, never, or part of it. Gaps are times without data. '
    + 'A watch is in stock if in the step at some time a plan in stock matched it, whichever plans are chosen.',
},
course(`avg by (plan) (${inStep(own('plan_in_stock', plan))})`, '{{plan}}'),
...more,
course(`avg by (${perConfiguration}) (${inStep(own('configuration_in_stock', ...accounts))}) * on (${perConfiguration}) group_left (plan, location)`
  + ` ${atEnd(info(perConfiguration, 'plan, location', own('configuration_info', ...accounts, plan)), 'saved')}`, 'Saved {{plan}}, {{location}}', 'saved'));

/**
 * The restocks of 30 days by the parts of a period. The axis begins now, so that Grafana
 * writes the next times in the viewer's time zone.
 * @param {{w: number, h: number, id: number, title: string, description: string}} o @param {'hour' | 'day_of_week'} func the part, of seconds, and of days @param {number} seconds @param {number} days @param {string} unit
 */
function whenToLook(o, func, seconds, days, unit) {
  const restocks = 'plan:server_rental_plan_restocks:max1h';
  // Each result of the rule is of the hour before it.
  const parts = `count_values("part", ${func}(vector(time() - 1800)))`;
  const begins = `floor(vector((time() - 1800) / ${seconds})) * ${seconds} + ${days * 86400}`;
  const next = `1000 * max by (part) (max_over_time((${parts} * on () group_left () (${begins}))[${days}d:1h])) and on () ${rules} or on () label_replace(0 * ${max('', known.plans)} - 1 unless on () ${rules}, "part", "none", "", "")`;
  return common(new barchart.PanelBuilder(), { ...o, unit: 'none', decimals: 0, mappings: values({ [-1]: [' ', colours.unknown] }), overrides: [forPattern('^At$', set.unit(unit), set.mappings(values({ [-1]: ['Needs the recording rules', colours.muted] })), { id: 'noValue', value: ' ' })] })
    .targets([
      now(`sum by (part) (sum_over_time((sum(${restocks}{${plan}}) * on () group_left (part) ${parts})[30d:1h])) or clamp_max(${next}, 0)`, '', 'restocks').format(/** @type {any} */ ('table')),
      now(next, '', 'at').format(/** @type {any} */ ('table')),
    ])
    .transformations([
      { id: 'filterFieldsByName', options: { exclude: { pattern: '/^Time$/' } } },
      { id: 'joinByField', options: { byField: 'part', mode: 'outer' } },
      { id: 'sortBy', options: { fields: {}, sort: [{ field: 'Value #at', desc: false }] } },
      { id: 'convertFieldType', options: { fields: {}, conversions: [{ targetField: 'Value #at', destinationType: 'time' }] } },
      { id: 'organize', options: { excludeByName: { part: true }, indexByName: {}, renameByName: { 'Value #at': 'At', 'Value #restocks': 'Restocks' } } },
    ])
    .min(0).xField('At').xTickLabelSpacing(40).barWidth(0.9).lineWidth(0).fillOpacity(80)
    .colorScheme(colour(FieldColorModeId.Fixed, colours.plain))
    .legend(new VizLegendOptionsBuilder().showLegend(false));
}

/** @param {{w: number, h: number}} size of each */
export const restocksBy = (size) => [
  whenToLook({ ...size, id: 205, title: 'Restocks by hour', description: 'How many times the chosen plans came back in stock in each hour of the day, in the last 30 days, the coming hour first. Needs the recording rules of this project.' }, 'hour', 3600, 1, 'time:HH:mm'),
  whenToLook({ ...size, id: 206, title: 'Restocks by weekday', description: 'How many times the chosen plans came back in stock on each day of the week (UTC), in the last 30 days. Needs the recording rules of this project.' }, 'day_of_week', 86400, 7, 'time:ddd'),
];

const inSteps = max('watch', `max_over_time(${own('watch_plans_in_stock')}[$__interval] offset -$__interval)`);

const history = [
  stockOverTime({ w: 16, h: 21 }, [account], course(`${inSteps} > bool 0`, 'Watch {{watch}}', 'watches')),
  series({
    id: 604, title: 'Hits of watches', overrides: palette.names(), w: 8, h: 7, unit: 'none', decimals: 0, min: 0, softMax: 1, bars: true, after: true, stacked: true, interval: '10m', points: 40,
    description: 'How many times a plan in stock began to match each watch, in intervals that begin at the left edge of a bar. Whichever plans are chosen.', links: [runbook('ServerRentalWatchHit')],
  }, course(`sum by (watch) (round(${max('watch, plan', `increase(${own('watch_hits_total')}[$__interval] offset -$__interval)`)})) or 0 * ${inSteps} or on () ${noWatches}`, '{{watch}}')),
  ...restocksBy({ w: 8, h: 7 }),
];

/** Prices change so rarely that longer steps show as much. */
const changes = { interval: '2m', points: 140 };

/** Each price at a time, or the last one before a gap of up to a day. @param {string} [offset] */
const lastPrice = (offset = '') => max('plan', `(${price('plan', plan)}${offset} or last_over_time(${price('plan', plan)}[30m]${offset}) or last_over_time(${price('plan', plan)}[1d:2h]${offset}))`);
const before = lastPrice();
/** At the next step or, if that has not come, at the end. */
const after = `(${atEnd(lastPrice())} and on () vector(time() + $__interval_ms / 1000) > ${end} or ${lastPrice(' offset -$__interval')})`;
const inRange = (/** @type {string} */ func) => atEnd(`${func} by (plan) (${func}_over_time(${price('plan', plan)}[$__range:$__interval]))`);

const pricesOf = [
  series({
    id: 301, title: 'Price above the lowest in the time range', overrides: palette.names(), w: 12, h: 10, unit: 'percentunit', decimals: 1, min: 0, softMax: 0.02, ...changes, stepped: true, fill: 0,
    description: 'How much the monthly price of each plan was above the lowest in the time range. Plans whose price did not change are left out.', links: [runbook('ServerRentalPlanPriceChanged')],
  }, course(`${chosen.price} / on (plan) (${inRange('min')} != on (plan) ${inRange('max')}) - 1 or on () label_replace(0 * max(${chosen.price}), "plan", "no change", "", "")`, '{{plan}}')),
  table({
    id: 303, title: `Changes of prices, ${inCurrency}`, w: 12, h: 10, unit: 'none', sort: 'After', descending: true, history: true, only: ['old', 'new'], // VictoriaMetrics takes what is absent for a difference
    links: [runbook('ServerRentalPlanPriceChanged')],
    description: 'Each change of a price in the time range, the latest first: the old and the new price, and the beginning of the interval in which it changed.',
    columns: [
      { from: 'Time', name: 'After', unit: units.minute, width: 140, filter: false },
      { from: 'plan', name: 'Plan', minWidth: 150, filter: false },
      { from: '#old', name: 'Old', ...money },
      { from: '#new', name: 'New', ...money },
    ],
  }, {
    new: `${after} != on (plan) ${before}`,
    old: `${before} != on (plan) ${after}`,
  }).interval(changes.interval).maxDataPoints(changes.points),
];

const offered = max('plan, location', own('plan_offered', location));
const offeredInStock = `sum by (location) (${offered} * on (plan) group_left () ${everyPlan.inStock})`;
const counted = max('location', own('location_plans_in_stock', location));
const savedStock = `(${everySaved.inStock} * on (${perConfiguration}) group_left (plan, location, hostname) ${info(perConfiguration, 'plan, location, hostname', own('configuration_info', location))})`;

const places = [
  table({
    id: 403, title: 'Stock by location', w: 12, h: 11, unit: 'none', sort: 'Here', descending: true, key: ['location'], links: [runbook('ServerRentalLocationSoldOut')],
    description: 'The plans in stock in each location by the provider\'s own count, and those that are offered there and in stock anywhere, whichever plans are chosen. If some of these are not here, stock differs by location.',
    columns: [
      { from: 'location', name: 'Location', width: 80, filter: false, link: linkTo('stock', 'Show only this location', 'var-location=${__data.fields.Location}') },
      { from: '#here', name: 'Here', unit: 'none', decimals: 0, width: 60, steps: steps.noneIsBad },
      { from: '#anywhere', name: 'Anywhere', unit: 'none', decimals: 0, width: 85 },
      { from: '#missing', name: 'Not here', unit: 'none', decimals: 0, width: 78, steps: steps.noneIsWarning },
      { from: '#plans', name: 'Offered', unit: 'none', decimals: 0, width: 75 },
      { from: 'city', name: 'City', filter: false, minWidth: 100 },
    ],
  }, {
    place: info('location', 'city', own('location_info', location)),
    here: counted,
    anywhere: offeredInStock,
    missing: `${offeredInStock} - on (location) ${counted}`,
    plans: `count by (location) (${offered})`,
  }),
  timeline({
    id: 402, title: 'Plans in stock per location', w: 12, h: 11, unit: 'none', decimals: 0, ...resolution,
    mappings: [...values({ 0: ['None', colours.gone] }), between(0, 4, colours.warn, 'Fewer than 4'), between(4, null, colours.good, '4 or more')],
    description: 'The number of plans that are offered in each location and in stock, the lowest in each step, whichever plans are chosen.', links: [runbook('ServerRentalLocationSoldOut')],
  }, course(max('location', `min_over_time(${own('location_plans_in_stock', location)}[$__interval] offset -$__interval)`), '{{location}}')),
  table({
    id: 404, title: 'Saved configurations that contradict the catalog', w: 24, h: 6, unit: 'none', sort: 'Plan', key: ['account', 'configuration'], links: [panelLink('accounts', 'Accounts and servers')],
    description: 'Saved configurations that are in stock although their plan is sold out, or the reverse: stock differs by location, or the catalog is older than the configuration.',
    columns: [
      { from: 'plan', name: 'Plan', minWidth: 125, filter: false },
      { from: 'location', name: 'Location', width: 80, filter: false },
      { ...stockColumn, name: 'Saved', width: 90 },
      { ...stockColumn, from: '#catalog', name: 'Catalog', width: 90 },
      { from: 'hostname', name: 'Host name', minWidth: 130 },
    ],
  }, {
    stock: `${savedStock} != on (plan) group_left () ${everyPlan.inStock} or on () label_replace(0 * ${max('', known.saved)} - 1, "plan", "None", "", "")`,
    catalog: `(1 - ${savedStock}) == on (plan) group_left () ${everyPlan.inStock}`,
  }),
];

export const stock = () => dashboard('stock', {
  description: 'What can be ordered now, stock, prices and locations of plans and saved configurations, and how often they are restocked. Prices are per month and exclude VAT.',
  from: 'now-7d', refresh: '1m', timezone: 'browser',
  top: [{ id: 700, title: 'My watches and saved configurations', panels: orderNow }],
  rows: [
    { id: 600, title: 'Watches and plans', panels: [...watches, plans(15, location)] },
    { id: 500, title: 'Saved configurations', panels: [saved({ w: 24, h: 7 }, [account], [plan, location])] },
    { id: 200, title: 'Restocks and history', panels: history },
    { id: 300, title: 'Prices', collapsed: true, panels: pricesOf },
    { id: 400, title: 'Locations', collapsed: true, panels: places },
  ],
});
