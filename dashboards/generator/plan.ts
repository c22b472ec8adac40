// One plan: whether it can be ordered, what it costs, and how often and for how long it is in stock.

import { dashboard, inCurrency, linkTo, planOf } from './lib/dashboard.js';
import { address, fixed, flexible, forQuery, mappings, now, set, stat, steps, table, units, valueOf } from './lib/panels.js';
import { gauge, max, own, price } from './lib/promql.js';
import { configurations, pricesAndRestocks, stockOverTime } from './stock.js';

const plan = planOf('plan');
const recorded = (name: string) => max('plan', `plan:server_rental_plan_${name}{${plan}}`);
const tile = { w: 6, h: 4 };
const noValue = 'No data from alerts/stock.rules.yml';

const state = [
  stat({
    ...tile, id: 101, title: 'Stock', mappings: mappings.stock, background: true, alerts: ['PlanBackInStock', 'PlanSoldOut'],
    description: 'Whether the plan is in stock in any location.',
  }, now(gauge('plan', 'plan_in_stock', plan), 'stock')),
  stat({
    ...tile, id: 102, title: `Price, ${inCurrency}`, decimals: 2, alerts: ['PlanPriceChanged'],
    description: 'The price per month, excluding VAT.',
  }, now(gauge('plan', `plan_${price}`, plan), 'price')),
  stat({
    ...tile, id: 106, title: 'Share of time in stock', unit: 'percentunit', decimals: 0, names: true, steps: steps.muted, noValue,
    description: 'Which part of the last 1, 7, 30 and 90 days the plan was in stock. Needs the recording rules in alerts/stock.rules.yml.',
  }, ...[1, 7, 30, 90].map((days) => now(recorded(`in_stock:avg${days}d`), `${days} d`, `d${days}`))),
  stat({
    ...tile, id: 103, title: 'Restocks of 30 days', names: true, unit: units.hours, decimals: 1, steps: steps.muted, noValue,
    description: 'How many times the plan came back in stock within 30 days, how long it stays in stock and how long it is then sold out, on average. The averages need the recording rules in alerts/stock.rules.yml.',
    overrides: [forQuery('restocks', set.unit('none'), set.decimals(0))],
  },
  now(`round(${max('plan', `increase(${own('plan_restocks_total', plan)}[30d])`)})`, 'restocks', 'restocks'),
  now(`${recorded('stay_seconds:avg30d')} / 3600`, 'stays', 'stays'),
  now(`(${recorded('return_seconds:avg30d')} - ${recorded('stay_seconds:avg30d')}) / 3600`, 'gone', 'gone')),
  table({
    id: 105, title: 'Order', w: 24, h: 4, sort: 'Name', hidden: ['plan'], noValue: 'The plan is not known',
    description: 'The order form and hardware of the plan, and the alternative that the provider names while it is sold out.',
  }, [
    address('order', 'Order', gauge('plan, order', 'plan_links_info', plan)),
    flexible('name', 'Name', 140),
    fixed('family', 'Family', 102),
    valueOf.number('cores', 'Cores', 58, gauge('plan', 'plan_cpu_cores', plan)),
    valueOf.number('memory', 'Memory', 75, gauge('plan', 'plan_memory_bytes', plan), { unit: 'bytes', decimals: 0 }),
    fixed('gpu_model', 'GPU', 170),
    fixed('storage', 'Storage', 240),
    fixed('alternative', 'Alternative', 145, { expr: gauge('plan, alternative', 'plan_availability_info', plan), link: linkTo('plan', 'plan', 'This plan', 'var-plan=${__value.raw}') }),
  ], { info: gauge('plan, name, family, gpu_model, storage', 'plan_info', plan) }),
  table({
    id: 401, title: 'Locations', w: 6, h: 9, sort: 'Location', noValue: 'No location is known',
    description: 'The locations that offer the plan, in stock or not.',
  }, [
    fixed('location', 'Location', 80, { link: linkTo('plan', 'stock', 'This location', 'var-location=${__value.raw}') }),
    flexible('city', 'City', 100, { expr: `${gauge('location, city', 'location_info')} and on (location) ${own('plan_offered', plan)}` }),
  ]),
  configurations('plan', { w: 18, h: 9 }),
];

export const one = () => dashboard('plan', {
  description: 'One plan: stock, price, restocks, order form, locations and saved configurations.',
  from: 'now-7d', refresh: '1m', timezone: 'browser',
  rows: [
    { id: 100, title: '$plan', panels: state },
    { id: 200, title: 'History', panels: [stockOverTime({ w: 24, h: 6 }, plan, plan), ...pricesAndRestocks({ w: 12, h: 8 }, plan)] },
  ],
});
