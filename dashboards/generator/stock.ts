// Stock and prices: what can be ordered now of what a watch or a saved configuration waits
// for, what else can be ordered and where, how often the rest is restocked, and what it costs.

import { VizLegendOptionsBuilder } from '@grafana/grafana-foundation-sdk/common';
import { bars, between, colours, valueOf, course, dashboard, fixed, flexible, forPattern, joinBy, linksFrom, mappings, palette, series, set, steps, table, timeline, units, values, withoutTime } from './lib/family.js';
import { account, atEnd, day, end, info, known, labelled, location, max, orNoAccounts, orLast, orSays, own, plan, price } from './lib/promql.js';

const { linkTo, panelLink } = linksFrom('stock');
export const inCurrency = '${currency:text}';

/** A time that only grows, or its highest in some days, because an exporter knows what happened since its start. A restart hides the half hour before it. */
const latest = (selector: string, days = 30) => `(${selector} or max_over_time(${selector}[${days}d:30m]))`;

/** Recorded whenever the rules and the catalog are there. Saved configurations may be known for longer than the catalog. */
const rules = max('', 'last_over_time(plan:server_rental_plan_in_stock:max{}[1h])');
const catalog = `0 * ${max('', known.plans)}`;

/** Texts of a time that is not known: 0 is before the first data, and a number of days longer ago. */
export const sinceTexts = values({ 7000: ['7 days or longer', colours.muted], 30000: ['30 days or longer', colours.muted], 0: ['Before first data', colours.muted] });

/** The stock of plans or of saved configurations by the labels of one, prices, and times within some days. */
export function stockOf(of: 'plan' | 'configuration', by: string, days: 7 | 30, ...where: string[]) {
  const metric = (name: string) => own(`${of}_${name}`, ...where);
  const inStock = max(by, metric('in_stock'));
  // The last change, or a later time at which it was sold out.
  const began = `max by (${by}) (${latest(metric('stock_changed_timestamp_seconds'), days)}`
    + ` or label_replace(${max(by, `max_over_time(timestamp(${metric('in_stock')} == 0)[${days}d:30m])`)}, "from", "gauge", "", "")) and on (${by}) (${inStock} == 1)`;
  const last = `${max(by, latest(metric('last_in_stock_timestamp_seconds'), days))} and on (${by}) (${inStock} == 0)`;
  const rule = (name: string) => `${by.replace(', ', '_')}:server_rental_${of}_${name}{${where.join(', ')}}`;
  /** A figure that rules record. */
  const recorded = (name: string, use = (expr: string) => expr) => `(${use(max(by, rule(name)))} or on (${by}) (0 * ${inStock} - 1 unless on () ${rules}))`;
  const hours = (expr: string) => `${expr} / 3600`;
  const gone = (time: string) => `(${time} - on (${by}) ${rule('stay_seconds:avg30d')})`;
  return {
    inStock,
    price: max(by, price(of, ...where)),
    since: `((${began} or ${last} or ${days} + 0 * ${max(by, `last_over_time(${metric('in_stock')}[1d] offset ${days - 1}d)`)} or 0 * ${inStock}) and on (${by}) ${inStock})`,
    /** When it usually is back, if it is sold out. */
    back: `((${last}) + on (${by}) (${recorded('return_seconds:avg30d', gone)} >= 0))`,
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
export const orderForm = { from: 'order', name: 'Order', width: 60, filter: false, mappings: mappings.order, link: { title: 'Order form', url: '${__value.raw}', targetBlank: true } };
export const stockColumn = (expr: string, name = 'Stock', refId = 'stock', width = 72) => valueOf.state(refId, name, width, expr, { mappings: mappings.stock });
export const priceColumn = (expr: string) => valueOf.price('price', 'Price', 66, expr);
const sinceColumn = (expr: string) => valueOf.ago('since', 'Since', 145, expr, { mappings: sinceTexts, steps: steps.muted });
/** Columns of what rules record. */
const recorded = { mappings: mappings.recorded, steps: steps.muted };
const inHours = { ...recorded, unit: units.hours, decimals: 1 };
const staysColumn = (expr: string) => valueOf.number('stays', 'Stays', 72, expr, inHours);
const recordedColumns = ({ stays, gone, restocks, share }: ReturnType<typeof stockOf>) => [
  staysColumn(stays),
  valueOf.number('gone', 'Gone', 72, gone, inHours),
  valueOf.count('restocks', 'Restocks', 80, restocks, recorded),
  valueOf.percent('share', 'Share', 68, share, recorded),
];
const recordedText = '"Stays" is how long it stays in stock, "Gone" how long it is then sold out, on average over 30 days; "Restocks" and "Share" are how often it came back, and for which share of them it was in stock: these need the recording rules of this project.';

// Without watches, a row says so. Without data, and without the locations that a watch may need, there is none.
const watchesInStock = max('watch', own('watch_plans_in_stock'));
const orNoWatches = orSays(`${catalog} unless on () ${watchesInStock} unless on () ${own('exporter_collector_success', 'collector="locations"')} == 0`, 'watch', 'None configured');

/** Figures of watched plans and saved configurations, by the label item. */
const perItem = (ofPlan: string, ofSaved: string, labels = 'item') => `max by (${labels}) (label_join(${ofPlan}, "item", "/", "plan") or label_join(${atEnd(ofSaved, 'saved')}, "item", "/", "account", "configuration"))`;
const ofItems = (figure: 'price' | 'since' | 'stays' | 'back') => perItem(everyPlan[figure], everySaved[figure]);
const watched = max('plan', own('watch_plan_in_stock'));
const items = perItem(orLast(watched, known.plans), orLast(everySaved.inStock, known.saved));
const there = `${items} % 10 == 1`;

const orderNow = table({
  id: 602, title: `Order now, ${inCurrency}`, w: 24, h: 8, sort: 'Price', key: ['item'], only: ['stock'], alerts: ['WatchHit', 'ConfigurationBackInStock'],
  description: 'The plans that match a watch and the saved configurations that can be ordered now, cheapest first, since when, and how long they usually stay. If there are none: when each was last in stock, and when it is usually back. '
    + 'In grey what was last known. Prices are per month, excluding VAT.',
}, [
  stockColumn(`${items} and on (item) ${there} or (${items} unless on () ${there})${orSays(`${catalog} - 1`, 'item', 'none')}`),
  flexible('name', 'Plan', 150),
  priceColumn(ofItems('price')),
  { ...orderForm, background: true },
  sinceColumn(ofItems('since')),
  staysColumn(ofItems('stays')),
  valueOf.ago('back', 'Usually back', 130, ofItems('back')),
  flexible('why', 'Watch or host name', 140, { filter: true }),
], {
  name: perItem(info('plan', 'name', own('plan_info')), `label_join(${info(perConfiguration, 'plan, location', own('configuration_info'))}, "name", ", ", "plan", "location")`, 'item, name')
    + ` or on (item) ${labelled(labelled(catalog, 'item', 'none'), 'name', 'No watch, nothing saved')}`,
  order: perItem(info('plan', 'order', own('plan_links_info')), info(perConfiguration, 'order', own('configuration_links_info')), 'item, order'),
  why: perItem(`label_replace(${info('plan', 'watch', own('watch_plan_in_stock'))}, "why", "$1", "watch", "(.+)")`, `label_replace(${info(perConfiguration, 'hostname', own('configuration_info'))}, "why", "$1", "hostname", "(.+)")`, 'item, why'),
});

const hits = `count_values by (watch) ("now", ${watchesInStock}${orNoWatches})`;

const watches = table({
  id: 601, title: 'Watches', w: 24, h: 6, sort: 'Watch', alerts: ['WatchHit', 'WatchEmpty'],
  description: 'The watches of the configuration: the number of plans that match and are in stock now, in grey and parentheses what was last known, the last time a plan in stock began to match within 30 days, '
    + 'the share of the last 30 days with at least one match, and the number of plans that match, in stock or not. If that is 0, check the criteria.',
  key: ['watch'],
}, [
  flexible('watch', 'Watch', 140),
  fixed('now', 'Now', 55, { align: 'right', mappings: mappings.hits }),
  valueOf.count('all', 'Plans', 60, max('watch', own('watch_plans')), { steps: steps.rising(colours.warn, [1, colours.muted]) }),
  // By steps, because there may be more samples in some hours than in others; in the first hour there is none.
  valueOf.percent('share', 'Share', 65, `(avg_over_time((${watchesInStock} > bool 0)[30d:1h]) or ${watchesInStock} > bool 0) and on (watch) ${watchesInStock}`),
  valueOf.ago('last', 'Last hit', 145, `(${max('watch', latest(own('watch_last_hit_timestamp_seconds')))} and on (watch) ${watchesInStock})`),
], { now: `${hits} and on () ${known.plans} @ ${end} or on (watch) label_replace(${hits}, "now", "($1)", "now", "(.+)")` });

/** The chosen plans, at the locations that match. */
export const plans = (h: number, ...where: string[]) => table({
  id: 110, title: `Plans, ${inCurrency}`, w: 24, h, sort: 'Price', alerts: ['PlanPriceChanged'],
  description: 'Every chosen plan, cheapest first; in grey what was last known while the exporter or the provider is down. Prices are per month, excluding VAT, in the currency chosen above. '
    + '"Since" is when a plan in stock came back, and when one that is sold out was last seen in stock, within 30 days. Below each location, a full dot is a plan offered there '
    + `and in stock, an empty dot a plan offered there but sold out. ${recordedText} To the right are the alternative while sold out and prices per core and GiB.`,
  // The first column of the matrix gets the name by which the other queries are joined.
  before: [
    { id: 'groupingToMatrix', filter: { id: 'byRefId', options: 'offered' }, options: { columnField: 'location', rowField: 'plan', valueField: 'Value #offered', emptyValue: 'null' } },
    { id: 'organize', options: { renameByName: { 'plan\\location': 'plan' }, excludeByName: {}, indexByName: {} } },
  ],
  key: ['plan'], first: 5, only: ['stock'],
}, [
  stockColumn(orLast(chosen.inStock, known.plans)),
  fixed('name', 'Plan', 164, { link: planLink, expr: info('plan', 'name', own('plan_info', plan)) }),
  priceColumn(chosen.price),
  { ...orderForm, expr: info('plan', 'order', own('plan_links_info', plan)) },
  sinceColumn(chosen.since),
  // Text, of which a part at the edge of the screen is no false number.
  fixed('family', 'Family', 102, { expr: info('plan', 'family', own('plan_info', plan)) }),
  ...recordedColumns(chosen).slice(0, 2),
  valueOf.number('cores', 'Cores', 58, cores),
  valueOf.count('memory', 'Memory', 75, memory, { unit: 'bytes' }),
  fixed('gpu_model', 'GPU', 180, { filter: true, expr: info('plan', 'gpu_model, storage', own('plan_info', plan)) }),
  fixed('storage', 'Storage', 265, { filter: true }),
  ...recordedColumns(chosen).slice(2),
  fixed('alternative', 'Alternative', 130, { filter: true, expr: info('plan', 'alternative', own('plan_availability_info', 'alternative!=""', plan)) }),
  valueOf.price('core', 'Per core', 75, `${chosen.price} / on (plan) ${cores}`),
  valueOf.price('gib', 'Per GiB', 75, `${chosen.price} / on (plan) (${memory} / 2^30)`),
  fixed('id', 'Id', 145, { filter: true, expr: `label_replace(${chosen.inStock}, "id", "$1", "plan", "(.+)")` }),
], { offered: orLast(`${max('plan, location', own('plan_offered', plan, ...where))} * on (plan) group_left () ${chosen.inStock}`, known.plans) })
  // One column for each location.
  .withOverride(forPattern('/^[a-z]{2,4}[0-9]?$/', set.mappings(mappings.offered), set.custom('width', 50), set.custom('align', 'center'), set.custom('cellOptions', { type: 'color-text' })));

/** The saved configurations of the chosen plans, by matchers of the accounts, and of plans and locations. */
export function saved(size: { w: number, h: number }, accounts: string[], where: string[]) {
  const figures = stockOf('configuration', perConfiguration, 7, ...accounts);
  const infos = info(perConfiguration, 'plan, location, hostname, os', own('configuration_info', ...accounts, ...where));
  const order = info(perConfiguration, 'order', own('configuration_links_info', ...accounts));
  // If there are none, a row says so.
  const rows = `${infos} * on (${perConfiguration}) group_left (order) ${order} or on (${perConfiguration}) ${infos}${orSays(`0 * ${max('', own('configurations', ...accounts))}`, 'plan', 'None saved')}`;
  return table({
    ...size, id: 501, title: `Saved configurations, ${inCurrency}`, sort: 'Stock', descending: true, only: ['info'], at: 'saved', alerts: ['ConfigurationBackInStock'],
    description: 'The saved configurations of the chosen accounts, plans and locations: whether each can be ordered now, in grey what was last known, since when, and its monthly price including options, excluding VAT. '
      + `This is the only stock of a plan in a location that the provider reports. ${recordedText}`,
    key: ['account', 'configuration'],
  }, [
    stockColumn(orLast(figures.inStock, known.saved)),
    flexible('plan', 'Plan', 125),
    priceColumn(figures.price),
    orderForm,
    fixed('location', 'Location', 78),
    sinceColumn(figures.since),
    flexible('hostname', 'Host name', 165),
    ...recordedColumns(figures),
    fixed('account', 'Account', 100, { filter: true, link: linkTo('accounts', 'Show this account', 'var-account=${__value.raw}') }),
    fixed('os', 'System', 115),
    valueOf.ago('created', 'Saved', 145, max(perConfiguration, own('configuration_created_timestamp_seconds', ...accounts))),
  ], { info: accounts.length ? orNoAccounts(rows, 'plan') : rows });
}

/** The value in each step, by a function. A chart has steps with two scrapes, as shorter ones could have none; and not too many, for speed. */
const inStep = (func: string, selector: string) => `${func}_over_time(${selector}[$__interval] offset -$__interval)`;

/** By matchers of saved configurations, with more rows. */
export const stockOverTime = (size: { w: number, h: number }, accounts: string[], ...more: ReturnType<typeof course>[]) => timeline({
  ...size, id: 201, title: 'Stock over time', mappings: [...mappings.stock, between(0, 1, colours.fair, 'Part of the time')],
  description: 'When each chosen plan and saved configuration was in stock: in each step all the time, never, or part of it. Gaps are times without data. '
    + 'A watch is in stock if in the step at some time a plan in stock matched it, whichever plans are chosen.',
},
course(`avg by (plan) (${inStep('avg', own('plan_in_stock', plan))})`, '{{plan}}'),
...more,
course(`avg by (${perConfiguration}) (${inStep('avg', own('configuration_in_stock', ...accounts))}) * on (${perConfiguration}) group_left (plan, location)`
  + ` ${atEnd(info(perConfiguration, 'plan, location', own('configuration_info', ...accounts, plan)), 'saved')}`, 'Saved {{plan}}, {{location}}', 'saved')).interval('2m').maxDataPoints(280);

/** The restocks of 30 days by parts of a number of days. The axis begins now, so that Grafana writes the next times in the viewer's time zone. */
function whenToLook(o: { w: number, h: number, id: number, title: string, description: string }, func: 'hour' | 'day_of_week', seconds: number, days: number, unit: string) {
  // Each result of the rule is of the hour before it.
  const parts = `count_values("part", ${func}(vector(time() - 1800)))`;
  const begins = `floor(vector((time() - 1800) / ${seconds})) * ${seconds} + ${days * day}`;
  const next = `1000 * max by (part) (max_over_time((${parts} * on () group_left () (${begins}))[${days}d:1h])) and on () ${rules}${orSays(`${catalog} - 1 unless on () ${rules}`, 'part', 'none')}`;
  return bars({
    ...o, decimals: 0, mappings: values({ [-1]: [' ', colours.unknown] }), x: 'at', spacing: 40, before: [withoutTime, joinBy('part')], names: { 'Value #at': 'At', 'Value #restocks': 'Restocks' }, hidden: { part: true },
    overrides: [forPattern('^At$', set.unit(unit), set.mappings(values({ [-1]: ['Needs the recording rules', colours.muted] })), set.noValue(' '))],
  }, {
    restocks: `sum by (part) (sum_over_time((sum(plan:server_rental_plan_restocks:max1h{${plan}}) * on () group_left (part) ${parts})[30d:1h])) or clamp_max(${next}, 0)`,
    at: next,
  }).min(0).legend(new VizLegendOptionsBuilder().showLegend(false));
}

export const restocksBy = (size: { w: number, h: number }) => [
  whenToLook({ ...size, id: 205, title: 'Restocks by hour', description: 'How many times the chosen plans came back in stock in each hour of the day, in the last 30 days, the coming hour first. Needs the recording rules of this project.' }, 'hour', 3600, 1, 'time:HH:mm'),
  whenToLook({ ...size, id: 206, title: 'Restocks by weekday', description: 'How many times the chosen plans came back in stock on each day of the week (UTC), in the last 30 days. Needs the recording rules of this project.' }, 'day_of_week', day, 7, 'time:ddd'),
];

const inSteps = max('watch', inStep('max', own('watch_plans_in_stock')));

const history = [
  stockOverTime({ w: 16, h: 21 }, [account], course(`${inSteps} > bool 0`, 'Watch {{watch}}', 'watches')),
  series({
    id: 604, title: 'Hits of watches', overrides: palette.names(), w: 8, h: 7, decimals: 0, min: 0, softMax: 1, bars: 'after', stacked: true, interval: '10m', points: 40,
    description: 'How many times a plan in stock began to match each watch, in intervals that begin at the left edge of a bar. Whichever plans are chosen.', alerts: ['WatchHit'],
  }, course(`sum by (watch) (round(${max('watch, plan', `increase(${own('watch_hits_total')}[$__interval] offset -$__interval)`)})) or 0 * ${inSteps}${orNoWatches}`, '{{watch}}')),
  ...restocksBy({ w: 8, h: 7 }),
];

/** Each price at a time, or the last one before a gap of up to a day. */
const lastPrice = (offset = '') => max('plan', `(last_over_time(${price('plan', plan)}[30m]${offset}) or last_over_time(${price('plan', plan)}[1d:2h]${offset}))`);
/** At the next step or, if that has not come, at the end. */
const after = `(${atEnd(lastPrice())} and on () vector(time() + $__interval_ms / 1000) > ${end} or ${lastPrice(' offset -$__interval')})`;
const inRange = (func: string) => atEnd(`${func} by (plan) (${func}_over_time(${price('plan', plan)}[$__range:$__interval]))`);

const pricesOf = [
  series({
    id: 301, title: 'Price above the lowest in the time range', overrides: palette.names(), w: 12, h: 10, unit: 'percentunit', decimals: 1, min: 0, softMax: 0.02, interval: '2m', points: 140, stepped: true, fill: 0, // changes are rare
    description: 'How much the monthly price of each plan was above the lowest in the time range. Plans whose price did not change are left out.', alerts: ['PlanPriceChanged'],
  }, course(`${chosen.price} / on (plan) (${inRange('min')} != on (plan) ${inRange('max')}) - 1${orSays(catalog, 'plan', 'no change')}`, '{{plan}}')),
  table({
    id: 303, title: `Changes of prices, ${inCurrency}`, w: 12, h: 10, sort: 'After', descending: true, history: true, alerts: ['PlanPriceChanged'],
    only: ['old', 'new'], // VictoriaMetrics takes what is absent for a difference
    description: 'Each change of a price in the time range, the latest first: the old and the new price, and the beginning of the interval in which it changed.',
  }, [
    fixed('Time', 'After', 140, { unit: units.minute }),
    flexible('plan', 'Plan', 150),
    valueOf.price('old', 'Old', 66, `${lastPrice()} != on (plan) ${after}`),
    valueOf.price('new', 'New', 66, `${after} != on (plan) ${lastPrice()}`),
  ]).interval('2m').maxDataPoints(140),
];

const offered = max('plan, location', own('plan_offered', location));
const offeredInStock = `sum by (location) (${offered} * on (plan) group_left () ${everyPlan.inStock})`;
const counted = max('location', own('location_plans_in_stock', location));
const savedStock = `(${everySaved.inStock} * on (${perConfiguration}) group_left (plan, location, hostname) ${info(perConfiguration, 'plan, location, hostname', own('configuration_info', location))})`;

const places = [
  table({
    id: 403, title: 'Stock by location', w: 12, h: 11, sort: 'Here', descending: true, key: ['location'], alerts: ['LocationSoldOut'],
    description: 'The plans in stock in each location by the provider\'s own count, and those that are offered there and in stock anywhere, whichever plans are chosen. If some of these are not here, stock differs by location.',
  }, [
    fixed('location', 'Location', 80, { link: linkTo('stock', 'Show only this location', 'var-location=${__data.fields.Location}') }),
    valueOf.count('here', 'Here', 60, counted, { steps: steps.noneIsBad }),
    valueOf.count('anywhere', 'Anywhere', 85, offeredInStock),
    valueOf.count('missing', 'Not here', 78, `${offeredInStock} - on (location) ${counted}`, { steps: steps.noneIsWarning }),
    valueOf.count('plans', 'Offered', 75, `count by (location) (${offered})`),
    flexible('city', 'City', 100),
  ], { place: info('location', 'city', own('location_info', location)) }),
  timeline({
    id: 402, title: 'Plans in stock per location', w: 12, h: 11, decimals: 0,
    mappings: [...values({ 0: ['None', colours.gone] }), between(0, 4, colours.warn, 'Fewer than 4'), between(4, null, colours.good, '4 or more')],
    description: 'The number of plans that are offered in each location and in stock, the lowest in each step, whichever plans are chosen.', alerts: ['LocationSoldOut'],
  }, course(max('location', inStep('min', own('location_plans_in_stock', location))), '{{location}}')).interval('2m').maxDataPoints(280),
  table({
    id: 404, title: 'Saved configurations that contradict the catalog', w: 24, h: 6, sort: 'Plan', key: ['account', 'configuration'], links: [panelLink('accounts', 'Accounts and servers')],
    description: 'Saved configurations that are in stock although their plan is sold out, or the reverse: stock differs by location, or the catalog is older than the configuration.',
  }, [
    flexible('plan', 'Plan', 125), fixed('location', 'Location', 80),
    stockColumn(`${savedStock} != on (plan) group_left () ${everyPlan.inStock}${orSays(`0 * ${max('', known.saved)} - 1`, 'plan', 'None')}`, 'Saved', 'stock', 90),
    stockColumn(`(1 - ${savedStock}) == on (plan) group_left () ${everyPlan.inStock}`, 'Catalog', 'catalog', 90),
    flexible('hostname', 'Host name', 130, { filter: true }),
  ]),
];

export const stock = () => dashboard('stock', {
  description: 'What can be ordered now, stock, prices and locations of plans and saved configurations, and how often they are restocked. Prices are per month and exclude VAT.',
  from: 'now-7d', refresh: '1m', timezone: 'browser',
  top: [{ id: 700, title: 'My watches and saved configurations', panels: [orderNow] }],
  rows: [
    { id: 600, title: 'Watches and plans', panels: [watches, plans(15, location)] },
    { id: 500, title: 'Saved configurations', panels: [saved({ w: 24, h: 7 }, [account], [plan, location])] },
    { id: 200, title: 'Restocks and history', panels: history },
    { id: 300, title: 'Prices', collapsed: true, panels: pricesOf },
    { id: 400, title: 'Locations', collapsed: true, panels: places },
  ],
});
