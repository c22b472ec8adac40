// Stock and prices: which plans that a watch waits for, which saved configurations and which
// other plans can be ordered, and the history of stock and prices.

import { type Name, dashboard, inCurrency, linkTo, planOf } from './lib/dashboard.js';
import { address, between, colours, course, fixed, flexible, mappings, series, steps, table, timeline, valueOf, values } from './lib/panels.js';
import { account, gauge, location, max, own, plan, price } from './lib/promql.js';

export const planColumn = (from: Name, width = 145) => fixed('plan', 'Plan', width, { link: linkTo(from, 'plan', 'This plan', 'var-plan=${__value.raw}') });

/** The columns of stock, in this order in all tables. */
export const stockColumn = (expr: string) => valueOf.state('stock', 'Stock', 76, expr, { mappings: mappings.stock });
export const priceColumn = (expr: string) => valueOf.price('price', 'Price', 70, expr);
const agoColumn = (refId: string, name: string, expr: string) => valueOf.ago(refId, name, 113, expr);

/** Keeps the plans that a watch waits for and that are in stock. */
const awaited = (expr: string) => `${expr} and on (plan) ${own('watch_plan_in_stock')} == 1`;

const orderNow = table({
  id: 602, title: `Order now, ${inCurrency}`, w: 12, h: 7, sort: 'Price', hidden: ['plan'], noValue: 'No plan that a watch waits for is known to be in stock', alerts: ['WatchHit'],
  description: 'The plans that match a watch and are in stock, cheapest first, with their order form and when they last came back in stock. Whichever plans are chosen. Prices are per month, excluding VAT.',
}, [
  planColumn('stock'),
  priceColumn(awaited(gauge('plan', `plan_${price}`))),
  address('order', 'Order', awaited(gauge('plan, order', 'plan_links_info'))),
  agoColumn('restock', 'Restocked', awaited(gauge('plan', 'plan_last_restock_timestamp_seconds'))),
  flexible('watch', 'Watch', 120),
], { watches: `${gauge('plan, watch', 'watch_plan_in_stock')} == 1` });

const watches = table({
  id: 601, title: 'Watches', w: 12, h: 7, sort: 'Watch', noValue: 'No watch is known', alerts: ['WatchEmpty'],
  description: 'The watches of the configuration: how many plans match, how many of these are in stock, and when one of them last began to match in stock. If no plan matches, check the criteria.',
}, [
  flexible('watch', 'Watch', 120),
  valueOf.number('plans', 'Plans', 70, gauge('watch', 'watch_plans'), { steps: steps.rising(colours.warn, [1, colours.muted]) }),
  valueOf.number('now', 'In stock', 80, gauge('watch', 'watch_plans_in_stock'), { steps: steps.rising(colours.muted, [1, colours.good]) }),
  agoColumn('hit', 'Last hit', gauge('watch', 'watch_last_hit_timestamp_seconds')),
]);

const saved = 'account, configuration';

/** The saved configurations of the chosen accounts, or of one plan. */
export function configurations(from: Name, size: { w: number, h: number }) {
  const matcher = from === 'plan' ? planOf(from) : account;
  const of = (metric: string, labels = '') => gauge(saved + labels, `configuration_${metric}`, matcher);
  /** Keeps the configurations of the plan, or of the accounts, of what has no such label or is recorded. */
  const only = (expr: string) => `${expr} and on (${saved}) ${own('configuration_in_stock', matcher)}`;
  const without = (metric: string, labels = '') => (from === 'plan' ? only(gauge(saved + labels, `configuration_${metric}`)) : of(metric, labels));
  return table({
    ...size, id: 501, title: `Saved configurations, ${inCurrency}`, sort: 'Stock', descending: true, hidden: ['configuration'], noValue: 'No saved configuration is known', alerts: ['ConfigurationBackInStock'],
    description: 'Whether each saved configuration can be ordered, its price per month including options and excluding VAT, and when it last came back in stock and sold out. Share is of 30 days in stock, and needs alerts/stock.rules.yml. '
      + 'This is the only stock of a plan in a location that the provider reports.',
  }, [
    stockColumn(of('in_stock')),
    planColumn(from),
    priceColumn(without(price)),
    address('order', 'Order', without('links_info', ', order')),
    fixed('location', 'Location', 80),
    agoColumn('restock', 'Restocked', of('last_restock_timestamp_seconds')),
    agoColumn('sellout', 'Sold out', of('last_sellout_timestamp_seconds')),
    flexible('hostname', 'Host name', 130, { expr: of('info', ', plan, location, hostname') }),
    valueOf.percent('share', 'Share', 68, only(max(saved, 'account_configuration:server_rental_configuration_in_stock:avg30d'))),
    fixed('account', 'Account', 110, { link: linkTo(from, 'accounts', 'This account', 'var-account=${__value.raw}') }),
  ]);
}

const ofPlans = (metric: string, labels = '') => gauge(`plan${labels}`, `plan_${metric}`, plan);
/** Recorded series of the plans that are in the catalog. */
const recorded = (expr: string) => max('plan', `${expr} and on (plan) ${own('plan_in_stock', plan)}`);

const plans = table({
  id: 110, title: `Plans, ${inCurrency}`, w: 24, h: 17, sort: 'Price', noValue: 'No plan is known', alerts: ['PlanBackInStock', 'PlanPriceChanged'],
  description: 'The chosen plans, cheapest first: price per month, excluding VAT; the order form; when each last came back in stock and sold out while the exporter ran; hardware. '
    + 'Share is of 30 days in stock, Stays how long it stays in stock, and Gone how long it is then sold out, on average: they need alerts/stock.rules.yml.',
}, [
  stockColumn(ofPlans('in_stock')),
  planColumn('stock'),
  priceColumn(gauge('plan', `plan_${price}`, plan)),
  address('order', 'Order', ofPlans('links_info', ', order')),
  agoColumn('restock', 'Restocked', ofPlans('last_restock_timestamp_seconds')),
  agoColumn('sellout', 'Sold out', ofPlans('last_sellout_timestamp_seconds')),
  fixed('family', 'Family', 95, { expr: ofPlans('info', ', family, gpu_model, storage') }),
  valueOf.number('cores', 'Cores', 58, ofPlans('cpu_cores')),
  valueOf.number('memory', 'Memory', 75, ofPlans('memory_bytes'), { unit: 'bytes', decimals: 0 }),
  fixed('gpu_model', 'GPU', 160), fixed('storage', 'Storage', 205),
  valueOf.percent('share', 'Share', 65, recorded('plan:server_rental_plan_in_stock:avg30d')),
  valueOf.hours('stays', 'Stays', 72, recorded('plan:server_rental_plan_stay_seconds:avg30d')),
  valueOf.hours('gone', 'Gone', 72, recorded('plan:server_rental_plan_return_seconds:avg30d - plan:server_rental_plan_stay_seconds:avg30d')),
]);

/** The mean in each interval. */
const mean = (labels: string, metric: string, ...matchers: string[]) => max(labels, `avg_over_time(${own(metric, ...matchers)}[$__interval])`);

/** The history of stock, by matchers of plans and of saved configurations, with more bands. */
export const stockOverTime = (size: { w: number, h: number }, plans: string, configurations: string, ...more: ReturnType<typeof course>[]) => timeline({
  ...size, id: 201, title: 'Stock over time', mappings: [...mappings.stock, between(0, 1, colours.warn, 'Part of the time')],
  description: 'Whether each plan, and each plan and location that is saved as a configuration, was in stock: all of the time in an interval, part of it, or never. A watch is in stock if a plan that matches was. Gaps are times without data.',
},
course(mean('plan', 'plan_in_stock', plans), '{{plan}}'),
...more,
course(mean('plan, location', 'configuration_in_stock', configurations), 'Saved {{plan}}, {{location}}', 'saved'));

/** The history of prices and restocks, by a matcher of plans. */
export const pricesAndRestocks = (size: { w: number, h: number }, plans: string) => [
  series({
    ...size, id: 301, title: `Prices, ${inCurrency}`, decimals: 2, stepped: true, alerts: ['PlanPriceChanged'],
    description: 'The price of each plan per month, excluding VAT.',
  }, course(gauge('plan', `plan_${price}`, plans), '{{plan}}')),
  series({
    ...size, id: 208, title: 'Restocks', decimals: 0, min: 0, softMax: 1, bars: true, interval: '10m', points: 60, alerts: ['PlanBackInStock'], // the last interval has not ended
    description: 'How many times each plan came back in stock in the interval that begins at the left edge of each bar, also between two scrapes.',
  }, course(`round(${max('plan', `increase(${own('plan_restocks_total', plans)}[$__interval] offset -$__interval)`)})`, '{{plan}}')),
];

const locations = [
  table({
    id: 403, title: 'Locations', w: 10, h: 9, sort: 'In stock', descending: true, noValue: 'No location is known', alerts: ['LocationSoldOut'],
    description: 'How many plans each location offers, and how many of them are in stock, as the provider counts them.',
  }, [
    fixed('location', 'Location', 80, { link: linkTo('stock', 'stock', 'Only this location', 'var-location=${__value.raw}') }),
    valueOf.number('stock', 'In stock', 80, gauge('location', 'location_plans_in_stock', location), { steps: steps.noneIsBad }),
    valueOf.number('offered', 'Offered', 75, gauge('location', 'location_plans', location)),
    flexible('city', 'City', 100, { expr: gauge('location, city', 'location_info', location) }),
  ]),
  timeline({
    id: 402, title: 'Plans in stock by location', w: 14, h: 9, decimals: 0, alerts: ['LocationSoldOut'],
    mappings: [values({ 0: ['None', colours.gone] }), between(1, 3, colours.warn, 'Up to 3'), between(4, null, colours.good, '4 or more')],
    description: 'The least number of plans in stock that each location offered in each interval.',
  }, course(max('location', `min_over_time(${own('location_plans_in_stock', location)}[$__interval])`), '{{location}}')),
];

export const stock = () => dashboard('stock', {
  description: 'What can be ordered now, and stock, prices and restocks of plans and saved configurations over time. Prices are per month and exclude VAT.',
  from: 'now-7d', refresh: '1m', timezone: 'browser',
  rows: [
    { id: 700, title: 'Watches and saved configurations', panels: [orderNow, watches, configurations('stock', { w: 24, h: 7 })] },
    { id: 600, title: 'Plans', panels: [plans] },
    { id: 200, title: 'History', panels: [
      stockOverTime({ w: 24, h: 14 }, plan, account, course(`${max('watch', `max_over_time(${own('watch_plans_in_stock')}[$__interval])`)} > bool 0`, 'Watch {{watch}}', 'watches')),
      ...pricesAndRestocks({ w: 12, h: 9 }, plan),
    ] },
    { id: 400, title: 'Locations', panels: locations },
  ],
});
