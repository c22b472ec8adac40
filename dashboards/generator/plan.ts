// One plan: whether it can be ordered and since when, what it costs, how fast a customer has
// to be, and what else to order.

import { valueOf, course, dashboard, flexible, forPattern, forQuery, mappings, now, series, set, stat, steps, table, units } from './lib/family.js';
import { info, known, max, milliseconds, orLast, own, plan, price } from './lib/promql.js';
import { chosen, inCurrency, orderForm, planLink, plans, priceColumn, restocksBy, saved, sinceTexts, stockColumn, stockOverTime } from './stock.js';

const size = { w: 5, h: 6, horizontal: true };
const low = { w: 5, h: 3, names: true };

/** An expression for this plan and the provider's alternative, from one for each plan. */
const both = (expr: string) => `${expr} and on (plan) (${own('plan_info', plan)} or label_replace(${max('alternative', own('plan_availability_info', plan, 'alternative!=""'))}, "plan", "$1", "alternative", "(.+)"))`;
const restocksOfDay = `round(${max('plan', `increase(${own('plan_restocks_total', plan)}[24h])`)})`;

/** The time of the present restock, while it lasts, as one exporter saw it. */
const restock = `min(${own('plan_stock_changed_timestamp_seconds', plan)} and on (job, instance, plan) ${own('plan_in_stock', plan)} == 1)`;
const named = `count_values("began", ${restock})`;
/** Of each restock of 30 days, to two minutes. */
const ofRestocks = (func: string, expr: string) => `max by (began) (${func}_over_time((${expr})[30d:2m]))`;

const state = [
  table({
    id: 105, title: 'Order', w: 9, h: 6, sort: 'Price', key: ['plan'],
    description: 'The plan and the alternative that the provider names while it is sold out. Prices are per month, excluding VAT.',
  }, [
    stockColumn(orLast(both(max('plan', own('plan_in_stock'))), known.plans)),
    flexible('name', 'Plan', 110, { link: planLink, expr: info('plan', 'name', both(own('plan_info'))) }),
    priceColumn(both(max('plan', price('plan')))),
    { ...orderForm, expr: info('plan', 'order', both(own('plan_links_info'))) },
    { from: 'plan', name: 'Id', hidden: true },
  ]),
  stat({
    ...size, id: 101, title: 'Stock', mappings: mappings.stock, alerts: ['PlanBackInStock', 'PlanSoldOut'],
    description: 'Whether the plan can be ordered now, in grey what was last known while the exporter or the provider is down; and when it came back, or was last seen in stock, within 30 days.',
    overrides: [forQuery('since', set.unit(units.ago), set.mappings(sinceTexts), set.steps(steps.muted))],
  }, now(orLast(chosen.inStock, known.plans), 'state', 'stock'), now(milliseconds(chosen.since), 'since', 'since')),
  stat({
    ...size, id: 102, title: `Price, ${inCurrency}`, decimals: 2,
    description: 'The monthly price, excluding VAT, and the lowest one in the time range.', overrides: [forQuery('lowest', set.steps(steps.muted))],
  }, now(chosen.price, 'price', 'price'), now(max('plan', `min_over_time(${price('plan', plan)}[$__range])`), 'lowest in range', 'lowest')),
  stat({
    ...low, id: 103, title: 'Restocks', decimals: 0, steps: steps.muted, mappings: mappings.recorded,
    description: 'How many times the plan came back in stock within 24 hours, those shorter than a scrape interval included, and within 30 days, by full hours without a gap, which needs the recording rules of this project.',
  }, now(restocksOfDay, '24 hours', 'day'), now(`(${restocksOfDay} > on (plan) (${chosen.restocks} >= 0) or ${chosen.restocks})`, '30 days', 'month')),
  stat({
    ...low, id: 104, title: 'On average', unit: units.hours, decimals: 1, steps: steps.muted, mappings: mappings.recorded,
    description: 'How long the plan stays in stock, and how long it is then sold out, on average over 30 days. Needs the recording rules of this project.',
  }, now(chosen.stays, 'stays', 'stays'), now(chosen.gone, 'gone', 'gone')),
];

const details = [
  // The columns that no other panel shows.
  plans(4).title('Hardware and locations')
    .withOverride(forPattern('/^(Stock|Plan|Price|Order|Since|Stays|Gone|Restocks|Alternative|Id)$/', set.custom('hidden', true))),
  stockOverTime({ w: 24, h: 5 }, []),
  saved({ w: 14, h: 7 }, [], [plan]),
  table({
    id: 207, title: `The last five restocks, ${inCurrency}`, w: 10, h: 7, sort: 'Began', descending: true, key: ['began'], only: ['start'], noValue: 'None known',
    description: 'The last restocks within 30 days: when each began, how long it lasted, to two minutes and at most until a restart of the exporter, and the monthly price then, excluding VAT. Those that no scrape saw are missing.',
  }, [
    valueOf.minute('start', 'Began', 145, `topk(5, ${ofRestocks('max', `${named} * scalar(${restock})`)})`),
    { from: '#lasted', name: 'Lasted', unit: units.duration, width: 110, expr: `120 * ${ofRestocks('count', named)}` },
    priceColumn(ofRestocks('last', `${named} * scalar(${max('', price('plan', plan))})`)),
  ]),
  series({
    id: 301, title: `Price over time, ${inCurrency}`, w: 8, h: 8, decimals: 2, stepped: true, interval: '2m', points: 140,
    description: 'The monthly price, excluding VAT.', alerts: ['PlanPriceChanged'],
  }, course(chosen.price, '{{plan}}')),
  ...restocksBy({ w: 8, h: 8 }),
];

export const one = () => dashboard('plan', {
  description: 'One plan: stock, price, restocks, how long it stays and is gone, its alternative and the order form.',
  from: 'now-7d', refresh: '1m', timezone: 'browser',
  top: [{ id: 100, title: '$plan', panels: state }],
  rows: [{ id: 200, title: 'Details and history', panels: details }],
});
