// Accounts and servers: how long the balance lasts, which renewals are due, which servers
// they are for, and which top-ups are open.

import * as barchart from '@grafana/grafana-foundation-sdk/barchart';
import { FieldColorModeId } from '@grafana/grafana-foundation-sdk/dashboard';
import { LegendDisplayMode, LegendPlacement, VisibilityMode, VizLegendOptionsBuilder, VizOrientation } from '@grafana/grafana-foundation-sdk/common';
import {
  colour, colours, common, course, dashboard, forName, forPattern, forQuery, gauge, linksFrom, mappings, now, runbook, series, set, stat, steps, table,
} from './lib/family.js';
import { account, billed, chosenServers, info, location, max, milliseconds, own, plan, renewalDates } from './lib/promql.js';

const { linkTo, panelLink } = linksFrom('accounts');

const day = 86400;

const balance = max('account', own('account_balance_usd', account));
const cost = max('account', own('account_cost_usd_per_month', account));
const fundedUntil = max('account', own('account_funded_until_timestamp_seconds', account));

const perServer = (/** @type {string} */ metric) => max('account, server', own(metric, account));
const serverPrice = perServer('server_price_usd_per_month');
const renews = perServer('server_renews_timestamp_seconds');

const nextDates = `(${billed(renewalDates(renews, 30))})`;

/** The price of each renewal. @param {string} dates @param {string} price */
const amounts = (dates, price) => `(${dates} * 0 + on (account, server) group_left () ${price})`;
const nextAmounts = amounts(nextDates, serverPrice);

// Over all accounts, whichever are chosen.
const allPrices = max('account, server', own('server_price_usd_per_month'));
const allDue = (/** @type {number} */ days) => `round(sum(${amounts(`(${billed(renewalDates(max('account, server', own('server_renews_timestamp_seconds')), days))})`, allPrices)}), 0.01)`
  + ` or 0 * sum(${max('account', own('account_cost_usd_per_month'))})`;
const costBy = (/** @type {string} */ label) => `sort_desc(sum by (${label}) ((${billed(allPrices)}) * on (account, server) group_left (${label}) ${info('account, server', label, own('server_info'))}))`;

/** The provider's dates are days in UTC, and so is the dashboard. */
const dateOnly = forPattern('.*', set.unit('time:YYYY-MM-DD'));

const money = [
  stat({
    id: 101, title: 'Balance', w: 5, h: 5, unit: 'currencyUSD', decimals: 2, steps: steps.notBelowZero, noValue: 'No account',
    description: 'The balance of each chosen account, red if negative.', links: [runbook('ServerRentalBalanceLow')],
  }, now(balance, '{{account}}')),
  stat({
    id: 102, title: 'Cost per month', w: 5, h: 5, unit: 'currencyUSD', decimals: 2, noValue: 'No servers',
    description: 'The monthly cost of the servers of each chosen account at current prices. Servers without a known price do not count.',
  }, now(cost, '{{account}}')),
  stat({
    id: 103, title: 'Funded until', w: 4, h: 5, unit: 'dateTimeAsIso', noValue: 'No servers', overrides: [dateOnly],
    description: 'The first renewal that the current balance cannot pay if each server renews monthly at its current price; ten years ahead at most.', links: [runbook('ServerRentalRenewalsUnfunded')],
  }, now(milliseconds(fundedUntil), '{{account}}')),
  stat({
    id: 104, title: 'Days left', w: 5, h: 5, unit: 'd', decimals: 1, steps: steps.daysLeft, noValue: 'No servers',
    description: 'Days until the first renewal that the current balance cannot pay: red below 2, orange below 7, like the alert.', links: [runbook('ServerRentalRenewalsUnfunded')],
  }, now(`(${fundedUntil} - time()) / ${day}`, '{{account}}')),
  stat({
    id: 105, title: 'Missing for the next 30 days', w: 5, h: 5, unit: 'currencyUSD', decimals: 2, steps: steps.aboveZeroIsBad, noValue: 'Nothing is due',
    description: 'The amount by which the renewals of the next 30 days exceed the balance, an overdue one once and then each month. Servers that are no longer billed do not count.', links: [runbook('ServerRentalRenewalsUnfunded')],
  }, now(`clamp_min(round(sum by (account) (${nextAmounts}), 0.01) - on (account) ${balance}, 0)`, '{{account}}')),
  series({
    id: 106, title: 'Balance against the cost per month', w: 24, h: 9, unit: 'currencyUSD', decimals: 2, stepped: true, calcs: ['min', 'max', 'lastNotNull'],
    description: 'The balance of each account as a line, the monthly cost of its servers as a dashed line. Below the dashed line the balance does not last a month.', links: [runbook('ServerRentalBalanceLow')],
    overrides: [forQuery('cost', set.dashed, set.noFill, set.thin)],
  },
  course(balance, '{{account}}: balance', 'balance'),
  course(cost, '{{account}}: cost per month', 'cost')),
];

const totals = [
  stat({
    id: 701, title: 'Balance of all accounts', w: 4, h: 7, unit: 'currencyUSD', decimals: 2, steps: steps.notBelowZero, noValue: 'No account',
    description: 'The sum of the balances of all accounts, red if negative.', links: [runbook('ServerRentalBalanceLow')],
  }, now(`sum(${max('account', own('account_balance_usd'))})`, 'Balance')),
  stat({
    id: 702, title: 'Cost of all accounts', w: 4, h: 7, unit: 'currencyUSD', decimals: 2, noValue: 'No servers',
    description: 'The monthly cost of the billed servers of all accounts, excluding VAT. Servers without a known price do not count.',
  }, now(`sum(${max('account', own('account_cost_usd_per_month'))})`, 'Cost per month')),
  stat({
    id: 703, title: 'Due in all accounts', w: 4, h: 7, unit: 'currencyUSD', decimals: 2, noValue: 'No servers',
    description: 'The renewals of the next 7 and 30 days of all accounts, excluding VAT: an overdue one once, then each month.', links: [runbook('ServerRentalRenewalsUnfunded')],
  }, now(allDue(7), '7 days', 'week'), now(allDue(30), '30 days', 'month')),
  gauge({
    id: 704, title: 'Cost by plan', w: 6, h: 7, unit: 'currencyUSD', decimals: 2, noValue: 'No servers', description: 'The monthly cost of the billed servers of all accounts by plan, excluding VAT.',
  }, now(costBy('plan'), '{{plan}}')),
  gauge({
    id: 705, title: 'Cost by location', w: 6, h: 7, unit: 'currencyUSD', decimals: 2, noValue: 'No servers', description: 'The monthly cost of the billed servers of all accounts by location, excluding VAT.',
  }, now(costBy('location'), '{{location}}')),
];

const calendar = common(new barchart.PanelBuilder(), {
  id: 201, title: 'Renewals of the next 30 days by day', w: 10, h: 11, unit: 'currencyUSD', decimals: 2, noValue: 'Nothing is due', links: [runbook('ServerRentalRenewalsUnfunded')],
  description: 'The amount due on each of the next 30 days, over all chosen accounts, plans and locations. An overdue renewal is on its own day. Days without renewals are not shown.',
})
  .targets(Object.entries({
    amount: chosenServers(nextAmounts),
    date: milliseconds(`(${chosenServers(nextDates)})`),
  }).map(([refId, expr]) => now(expr, '{{server}}', refId).format(/** @type {any} */ ('table'))))
  .transformations([
    { id: 'merge', options: {} },
    { id: 'convertFieldType', options: { fields: {}, conversions: [{ targetField: 'Value #date', destinationType: 'time' }] } },
    { id: 'groupBy', options: { fields: { 'Value #date': { operation: 'groupby', aggregations: [] }, 'Value #amount': { operation: 'aggregate', aggregations: ['sum'] } } } },
    { id: 'sortBy', options: { fields: {}, sort: [{ field: 'Value #date', desc: false }] } },
    { id: 'organize', options: { excludeByName: {}, indexByName: {}, renameByName: { 'Value #date': 'Day', 'Value #amount (sum)': 'Due' } } },
  ])
  .withOverride(forName('Day', set.unit('time:MMM DD')))
  .xField('Day').orientation(VizOrientation.Vertical).showValue(VisibilityMode.Auto).barWidth(0.8).fillOpacity(70).xTickLabelSpacing(50)
  .colorScheme(colour(FieldColorModeId.Fixed, colours.plain))
  .legend(new VizLegendOptionsBuilder().displayMode(LegendDisplayMode.List).placement(LegendPlacement.Bottom).showLegend(false).calcs([]));

const renewals = [
  calendar,
  table({
    id: 202, title: 'Renewals of the next 30 days', w: 14, h: 11, unit: 'none', sort: 'Day', noValue: '–', links: [runbook('ServerRentalRenewalsUnfunded')],
    description: 'Every renewal of a billed server within 30 days with its price, the next one first. An overdue renewal has less than 0 days left and counts once.',
    columns: [
      { from: '#date', name: 'Day', unit: 'time:YYYY-MM-DD', width: 110 },
      { from: '#left', name: 'Days left', unit: 'none', decimals: 0, width: 95, steps: steps.falling(0, 3) },
      { from: '#amount', name: 'Amount', unit: 'currencyUSD', decimals: 2, width: 100 },
      { from: 'account', name: 'Account', width: 110 },
      { from: 'hostname', name: 'Host name' },
      { from: 'plan', name: 'Plan' },
      { from: 'location', name: 'Location', width: 90 },
    ], drop: ['server', 'renewal'],
  }, {
    info: `${nextDates} * on (account, server) group_left (hostname, plan, location) ${info('account, server', 'hostname, plan, location', own('server_info', account, plan, location))}`,
    date: milliseconds(`(${chosenServers(nextDates)})`),
    left: `(${chosenServers(nextDates)}) / ${day} - scalar(floor(vector(time() / ${day})))`,
    amount: chosenServers(nextAmounts),
  }),
];

const chosenInfo = max('account, server, plan, location', own('server_info', account, plan, location));

const machines = [
  stat({
    id: 301, title: 'Servers by status', w: 6, h: 8, unit: 'none', noValue: 'No servers', steps: steps.always(colours.muted), links: [runbook('ServerRentalServerSuspended'), runbook('ServerRentalServerCountDropped')],
    description: 'The number of servers of the chosen accounts by status, as the provider reports it.',
    overrides: [
      forName('active', set.steps([{ value: null, color: colours.muted }, { value: 1, color: colours.good }])),
      forName('suspended', set.steps(steps.noneIsGood)),
    ],
  }, now(`sum by (status) (${max('account, status', own('servers', account))})`, '{{status}}')),
  gauge({
    id: 302, title: 'Servers by plan', w: 9, h: 8, unit: 'none', decimals: 0, noValue: 'No servers', description: 'The number of servers of the chosen accounts by plan.',
  }, now(`sort_desc(count by (plan) (${chosenInfo}))`, '{{plan}}')),
  gauge({
    id: 303, title: 'Servers by location', w: 9, h: 8, unit: 'none', decimals: 0, noValue: 'No servers', description: 'The number of servers of the chosen accounts by location.',
  }, now(`sort_desc(count by (location) (${chosenInfo}))`, '{{location}}')),
  table({
    id: 304, title: 'Servers', w: 24, h: 11, unit: 'none', sort: 'Renews', noValue: '–', links: [runbook('ServerRentalServerSuspended')],
    description: 'Every server of the chosen accounts, plans and locations, the next renewal first. The metrics contain no addresses.',
    columns: [
      { from: 'status', name: 'Status', mappings: mappings.serverStatus, background: true, width: 110, align: 'center' },
      { from: 'hostname', name: 'Host name' },
      { from: 'account', name: 'Account', width: 110 },
      { from: 'name', name: 'Product' },
      { from: 'plan', name: 'Plan', link: linkTo('stock', 'Stock and price of this plan', 'var-plan=${__data.fields.Plan}') },
      { from: 'location', name: 'Location', width: 95, link: linkTo('status', 'Status of this location', 'var-location=${__data.fields.Location}') },
      { from: 'os', name: 'Operating system' },
      { from: '#price', name: 'Price per month', unit: 'currencyUSD', decimals: 2, width: 135 },
      { from: '#date', name: 'Renews', unit: 'time:YYYY-MM-DD', width: 110 },
      { from: '#left', name: 'Days left', unit: 'none', decimals: 0, width: 95, steps: steps.falling(0, 3) },
      { from: '#created', name: 'Created', unit: 'time:YYYY-MM-DD', width: 110 },
      { from: 'server', name: 'Id' },
    ],
  }, {
    info: info('account, server', 'name, hostname, plan, location, os', own('server_info', account, plan, location)),
    status: chosenServers(info('account, server', 'status', own('server_status', account))),
    price: chosenServers(serverPrice),
    date: milliseconds(`(${chosenServers(renews)})`),
    left: `(${chosenServers(renews)}) / ${day} - scalar(floor(vector(time() / ${day})))`,
    created: milliseconds(`(${chosenServers(perServer('server_created_timestamp_seconds'))})`),
  }),
];

const perTopup = (/** @type {string} */ metric) => max('account, topup', own(metric, account));
const openTopups = info('account, topup', 'status, coin, network', own('topup_info', account));

const topups = [
  stat({
    id: 401, title: 'Top-ups by state', w: 7, h: 9, unit: 'none', steps: steps.always(colours.muted), noValue: 'None', links: [runbook('ServerRentalTopupFailed')],
    description: 'The number of top-ups of the chosen accounts by status, over their whole history.',
    overrides: [
      forName('pending', set.steps([{ value: null, color: colours.muted }, { value: 1, color: colours.plain }])),
      forName('confirming', set.steps([{ value: null, color: colours.muted }, { value: 1, color: colours.plain }])),
      forName('paid', set.steps([{ value: null, color: colours.muted }, { value: 1, color: colours.good }])),
      forName('failed', set.steps([{ value: null, color: colours.muted }, { value: 1, color: colours.bad }])),
    ],
  }, now(`sum by (status) (${max('account, status', own('topups', account))})`, '{{status}}')),
  table({
    id: 402, title: 'Open top-ups', w: 17, h: 9, unit: 'none', sort: 'Rate locked for', noValue: '–', links: [runbook('ServerRentalTopupExpiring'), runbook('ServerRentalTopupStuck')],
    description: 'Top-ups that wait for a payment or its confirmations. A pending top-up has to be paid while its rate is locked; confirming usually takes less than an hour. Empty if none is open.',
    columns: [
      { from: 'status', name: 'State', mappings: mappings.topupStatus, background: true, width: 105, align: 'center' },
      { from: 'account', name: 'Account', width: 95 },
      { from: '#amount', name: 'Amount', unit: 'currencyUSD', decimals: 2, width: 95 },
      { from: '#bonus', name: 'Bonus', unit: 'percentunit', decimals: 0, width: 75 },
      { from: 'coin', name: 'Coin', width: 105 },
      { from: 'network', name: 'Network' },
      { from: '#have', name: 'Confirmations', unit: 'none', decimals: 0, width: 120 },
      { from: '#need', name: 'Needed', unit: 'none', decimals: 0, width: 80 },
      { from: '#share', name: 'Confirmed', unit: 'percentunit', decimals: 0, bar: true, max: 1, steps: steps.always(colours.plain), width: 160 },
      { from: '#left', name: 'Rate locked for', unit: 's', decimals: 0, width: 125, steps: steps.falling(0, 600) },
      { from: '#age', name: 'Open for', unit: 's', decimals: 0, width: 100 },
    ], drop: ['topup'],
  }, {
    info: openTopups,
    amount: perTopup('topup_amount_usd'),
    bonus: perTopup('topup_bonus_ratio'),
    have: perTopup('topup_confirmations'),
    need: perTopup('topup_confirmations_needed'),
    share: `${perTopup('topup_confirmations')} / on (account, topup) ${perTopup('topup_confirmations_needed')}`,
    left: `${perTopup('topup_rate_locked_until_timestamp_seconds')} - time()`,
    age: `time() - ${perTopup('topup_created_timestamp_seconds')}`,
  }),
];

const perType = (/** @type {string} */ expr) => `sum by (type) (${expr})`;
const inAll = (/** @type {string} */ metric) => max('account, type', own(metric, account));

/**
 * The increase over a time. The totals cover the whole history of an account, whichever
 * exporter fetches it. So a difference is correct across restarts and exact, while
 * increase() extrapolates.
 * @param {string} metric @param {string} range
 */
const added = (metric, range) => `${inAll(metric)} - min by (account, type) (min_over_time(${own(metric, account)}[${range}]))`;

const grown = (/** @type {string} */ metric) => `${inAll(metric)} - ${max('account, type', `${own(metric, account)} offset $__interval`)}`;

const credit = 'transactions_credit_usd_total';
const debit = 'transactions_debit_usd_total';

const flows = [
  series({
    id: 501, title: 'Money in and out', w: 13, h: 10, unit: 'currencyUSD', decimals: 2, bars: true, stacked: true, calcs: ['sum'], interval: '5m', points: 90,
    description: 'Credits and debits in each interval by type of transaction; debits are below zero. Transactions before the first scrape do not count.',
  },
  // What any exporter knows at the end of a bar, without what any knew at its begin: a
  // transaction that a second exporter sees later stands in one bar only.
  course(`${perType(grown(credit))} > 0`, 'in: {{type}}', 'in'),
  course(`-(${perType(grown(debit))} > 0)`, 'out: {{type}}', 'out')),
  table({
    id: 502, title: 'Transactions by type', w: 11, h: 10, unit: 'none', sort: 'Out, in all', descending: true, noValue: '–',
    description: 'Transactions of the chosen accounts by type: in the time range, and over the whole history.',
    columns: [
      { from: 'type', name: 'Type' },
      { from: '#in', name: 'In, time range', unit: 'currencyUSD', decimals: 2 },
      { from: '#out', name: 'Out, time range', unit: 'currencyUSD', decimals: 2 },
      { from: '#allin', name: 'In, in all', unit: 'currencyUSD', decimals: 2 },
      { from: '#allout', name: 'Out, in all', unit: 'currencyUSD', decimals: 2 },
      { from: '#count', name: 'Number, in all', unit: 'none', decimals: 0 },
    ],
  }, {
    in: perType(added(credit, '$__range')),
    out: perType(added(debit, '$__range')),
    allin: perType(inAll(credit)),
    allout: perType(inAll(debit)),
    count: perType(inAll('transactions_total')),
  }),
];

const perAccount = (/** @type {string} */ metric) => max('account', own(metric, account));

const security = [
  table({
    id: 601, title: 'Accounts', w: 13, h: 9, unit: 'none', sort: 'Account', noValue: '–', links: [runbook('ServerRentalTwoFactorDisabled'), runbook('ServerRentalTokenRejected'), panelLink('status', 'Exporter health')],
    description: 'The chosen accounts: two-factor authentication, the number of SSH keys and saved configurations, and the last paid top-up.',
    columns: [
      { from: 'account', name: 'Account', link: linkTo('accounts', 'Show only this account', 'var-account=${__data.fields.Account}') },
      { from: 'name', name: 'Name' },
      { from: '#factor', name: 'Two-factor', mappings: mappings.enabled, background: true, align: 'center', width: 105 },
      { from: '#keys', name: 'SSH keys', unit: 'none', width: 90 },
      { from: '#saved', name: 'Configurations', unit: 'none', width: 125 },
      { from: '#limit', name: 'of at most', unit: 'none', width: 95 },
      { from: '#paid', name: 'Last payment', unit: 'dateTimeFromNow', width: 130 },
      { from: '#created', name: 'Created', unit: 'time:YYYY-MM-DD', width: 110 },
    ], drop: ['id'],
  }, {
    info: info('account', 'name', own('account_info', account)),
    factor: perAccount('account_two_factor_enabled'),
    keys: perAccount('ssh_keys'),
    saved: perAccount('configurations'),
    limit: perAccount('configurations_limit'),
    paid: milliseconds(perAccount('topup_last_paid_timestamp_seconds')),
    created: milliseconds(perAccount('account_created_timestamp_seconds')),
  }),
  table({
    id: 602, title: 'SSH keys', w: 11, h: 9, unit: 'none', sort: 'Added', descending: true, noValue: '–', links: [runbook('ServerRentalSSHKeysChanged')],
    description: 'The SSH keys of the chosen accounts, the newest first. Treat a key that nobody of you added as an emergency.',
    columns: [
      { from: 'account', name: 'Account', width: 100 },
      { from: 'name', name: 'Key' , width: 130 },
      { from: 'type', name: 'Type', width: 120 },
      { from: 'fingerprint', name: 'Fingerprint' },
      { from: '#created', name: 'Added', unit: 'time:YYYY-MM-DD', width: 110 },
    ], drop: ['ssh_key'],
  }, {
    info: info('account, ssh_key', 'name, type, fingerprint', own('ssh_key_info', account)),
    created: milliseconds(max('account, ssh_key', own('ssh_key_created_timestamp_seconds', account))),
  }),
];

export const accounts = () => dashboard('accounts', {
  description: 'Cost of servers, balance, renewals and open top-ups. Times are in UTC, like the provider\'s dates.',
  from: 'now-30d', refresh: '1m', timezone: 'utc',
  rows: [
    { id: 100, title: 'Money', panels: money },
    { id: 700, title: 'All accounts', panels: totals },
    { id: 200, title: 'Renewals', panels: renewals },
    { id: 300, title: 'Servers', panels: machines },
    { id: 400, title: 'Top-ups', panels: topups },
    { id: 500, title: 'Money in and out', panels: flows },
    { id: 600, title: 'Accounts and keys', panels: security },
  ],
});
