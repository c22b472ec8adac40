// Accounts and servers: how long the balance lasts, which renewals are due, which top-ups
// are open, and which servers the money is for.

import * as barchart from '@grafana/grafana-foundation-sdk/barchart';
import { FieldColorModeId } from '@grafana/grafana-foundation-sdk/dashboard';
import {
  LegendDisplayMode, LegendPlacement, VisibilityMode, VizLegendOptionsBuilder, VizOrientation,
} from '@grafana/grafana-foundation-sdk/common';
import {
  between, colour, colours, common, course, dashboard, forName, forPattern, forQuery, linksFrom, mappings, now, palette, runbook, series, set, stat, steps, table, units, values,
} from './lib/family.js';
import { account, accounts as configured, atEnd, billed, chosenServers, end, info, known, location, max, milliseconds, noAccounts, orLast, orNoAccounts, orZero, own, plan, renewalDates, today, tokens } from './lib/promql.js';

const { linkTo, panelLink } = linksFrom('accounts');

const day = 86400;

/** Amounts with the VAT that the user entered, which titles name. @param {string} expr */
const taxed = (expr) => `(${expr}) * (1 + $vat / 100)`;
const vat = '${vat} % VAT';

const balance = max('account', own('account_balance_usd', account));
const cost = max('account', own('account_cost_usd_per_month', account));
const fundedUntil = max('account', own('account_funded_until_timestamp_seconds', account));

/** Servers of each account: 0 for an account without servers, absent without data. */
const serverCount = `sum by (account) (${max('account, status', own('servers', account))})`;
const allServers = `sum(${max('account, status', own('servers'))})`;

const perServer = (/** @type {string} */ metric) => max('account, server', own(metric, account));
const serverPrice = perServer('server_price_usd_per_month');
const renews = perServer('server_renews_timestamp_seconds');

const nextDates = `(${billed(renewalDates(renews, 30))})`;

/** The price of each renewal. @param {string} dates @param {string} price */
const amounts = (dates, price) => `(${dates} * 0 + on (account, server) group_left () ${price})`;
const nextAmounts = amounts(nextDates, serverPrice);

/** One series while some account is known, or if there is none. */
const current = `(${known.accounts} @ ${end} or on () ${noAccounts})`;
/** The status of each server, in parentheses if last known. @param {string} expr */
const orLastStatus = (expr) => `((${expr}) and on () ${current} or label_replace((${expr}) unless on () ${current}, "status", "($1)", "status", "(.+)"))`;

/**
 * A series that says that there is nothing, which is not the same as no data.
 * @param {string} expr @param {string} label of the series @param {string} text its value, in parentheses if last known @param {string} data one series if there is data
 */
const orRow = (expr, label, text, data) => `${expr} or on () label_replace((0 * ${data} or on () ${noAccounts}) and on () ${current}, "${label}", "${text}", "", "") or on () label_replace(0 * ${data}, "${label}", "(${text})", "", "")`;

// Over all accounts, whichever are chosen.
const allPrices = max('account, server', own('server_price_usd_per_month'));
const allDue = (/** @type {number} */ days) => orZero(`round(sum(${amounts(`(${billed(renewalDates(max('account, server', own('server_renews_timestamp_seconds')), days))})`, allPrices)}), 0.01)`, allServers);
/** Cells without a value. An empty table says "No data". */
const dash = forPattern('.*', { id: 'noValue', value: '–' });

/** Times after all others, of accounts that have nothing to pay, and of none at all. */
const never = 1e11;
const nobody = 2e11;
const paidUntil = `(${fundedUntil} or (${cost} == 0) + ${never})`;
/** The order of accounts: of two that run dry on the same day, that with less money is the first. */
const order = `(${paidUntil} + on (account) ${balance} / 1e4 or on (account) ${paidUntil})`;
/** The accounts that run dry before the others. @param {number} count */
const first = (count) => atEnd(`bottomk(${count}, ${order})`);
/** Days from today (UTC) to a date. @param {string} dates */
const left = (dates) => `(${dates}) / ${day} - scalar(floor(vector(time() / ${day})))`;
const driest = `${left(order)} and on (account) ${first(1)}`;
const noRenewals = (/** @type {number} */ from) => between(from, null, colours.plain, 'No renewals');

/** Until when to pay with each coin: what is funded, less the longest settlement. */
const settlement = max('account, coin', own('topup_settlement_seconds', account));
const payBy = `(${fundedUntil} - on (account) group_right () ${settlement})`;

const money = [
  stat({
    id: 104, title: 'First to run dry', w: 7, h: 6, unit: units.days, decimals: 0, steps: steps.daysLeft, text: /** @type {any} */ ('value_and_name'),
    mappings: [between(nobody / day / 2, null, colours.plain, 'No accounts'), between(1e5, nobody / day / 2, colours.plain, 'No renewals')],
    description: 'The account with the fewest days from today (UTC) to a renewal that its balance cannot pay, and these days: red from 2 and orange from 7 on, like the alert, and grey if last known; and the number of accounts of which this is not known.', links: [runbook('ServerRentalRenewalsUnfunded')],
    overrides: [forPattern('/, last known$/', set.colour(colours.unknown)), forName('accounts not known', set.unit('none'), set.steps(steps.always(colours.warn)))],
  }, now(`(${driest}) and on () ${current} or label_replace((${driest}) unless on () ${current}, "account", "$1, last known", "account", "(.+)")`
    + ` or on () label_replace((${noAccounts}) + ${nobody / day}, "account", "configured", "", "")`, '{{account}}'),
  now(`count(${configured} unless on (account) ${paidUntil})`, 'accounts not known', 'unknown')),
  table({
    id: 109, title: 'Pay by', w: 17, h: 6, unit: 'none', sort: 'Pay by', overrides: [dash], links: [runbook('ServerRentalRenewalsUnfunded')],
    description: 'Until when each account has to be topped up with each coin that it has used: the date until which it is funded, less the longest of the last 20 settlements with this coin.',
    columns: [
      { from: 'account', name: 'Account', minWidth: 145, filter: false },
      { from: 'coin', name: 'Coin', width: 88, filter: false },
      { from: '#by', name: 'Pay by', unit: units.minute, width: 140 },
      { from: '#left', name: 'Left', unit: 'dtdurations', decimals: 0, width: 110, mappings: [between(-1e18, 0, colours.bad, 'Passed')], steps: steps.falling(2 * day, 7 * day) },
      { from: '#settles', name: 'Settles in', unit: 'dtdurations', decimals: 0, width: 110, mappings: values({ 0: ['–', colours.unknown] }), steps: steps.always(colours.muted) },
    ], key: ['account', 'coin'],
  }, {
    settles: orRow(settlement, 'coin', 'None used', `sum(${serverCount})`),
    by: milliseconds(payBy),
    left: `${payBy} - time()`,
  }),
  table({
    id: 107, title: `Accounts, ${vat} in the monthly cost`, w: 24, h: 7, unit: 'none', sort: 'Days left', overrides: [dash], key: ['account'],
    links: [runbook('ServerRentalRenewalsUnfunded'), runbook('ServerRentalBalanceLow'), runbook('ServerRentalTokenRejected')],
    description: 'The chosen accounts, the first to run dry first and those without data before them: days until the first renewal that the balance cannot pay, and its date, ten years ahead at most; '
      + 'the balance; the amount by which the renewals of the next 30 days exceed it, an overdue one once and then each month; the monthly cost of the servers at current prices, with the VAT chosen above. '
      + 'Everything else excludes VAT. Servers that are no longer billed or without a known price do not count.',
    columns: [
      { from: 'account', name: 'Account', minWidth: 165, filter: false, link: linkTo('accounts', 'Show only this account', 'var-account=${__value.raw}') },
      { from: '#left', name: 'Days left', unit: 'none', decimals: 0, width: 85, steps: steps.daysLeft, mappings: [noRenewals(1e5)] },
      { from: '#until', name: 'Funded until', unit: units.date, width: 115, mappings: [noRenewals(never * 1000)] },
      { from: '#balance', name: 'Balance', unit: units.usd, decimals: 2, width: 120, steps: steps.notBelowZero },
      { from: '#missing', name: 'Missing, 30 d', unit: units.usd, decimals: 2, width: 115 },
      { from: '#cost', name: 'Per month', unit: units.usd, decimals: 2, width: 115 },
      { from: '#token', name: 'Token', mappings: mappings.token, width: 90, align: 'center', background: true },
    ],
  }, {
    token: tokens,
    left: left(order),
    until: milliseconds(paidUntil),
    balance,
    missing: `clamp_min((${orZero(`round(sum by (account) (${nextAmounts}), 0.01)`, cost)}) - on (account) ${balance}, 0)`,
    cost: taxed(`${cost} or ${serverCount} == 0`),
  }),
];

/** Today and the 30 days after it, one series each, with the day as its value. */
const days = `(${Array.from({ length: 31 }, (_, i) => `label_replace(vector(${i}), "renewal", "${i}", "", "")`).join(' or ')}) * ${day} + ${today}`;
/** A row for each day if the exporter knows the servers. */
const eachDay = `((${days}) + on () group_left () (0 * sum(${serverCount}) or ${noAccounts}))`;

const calendar = common(new barchart.PanelBuilder(), {
  id: 201, title: `Renewals by day, ${vat}`, w: 24, h: 6, unit: units.usd, decimals: 0, links: [runbook('ServerRentalRenewalsUnfunded')],
  description: 'The amount due on each of the next 30 days, of the chosen accounts, plans and locations. An overdue renewal counts today.',
  overrides: [forName('Day', set.unit('time:MMM DD'))],
})
  .targets(Object.entries({
    amount: `${taxed(chosenServers(nextAmounts))} or 0 * ${eachDay}`,
    date: milliseconds(`(clamp_max(clamp_min(${chosenServers(nextDates)}, ${today}), ${today} + 30 * ${day}) or ${eachDay})`),
  }).map(([refId, expr]) => now(expr, refId, refId).format(/** @type {any} */ ('table'))))
  .transformations([
    { id: 'merge', options: {} },
    { id: 'groupBy', options: { fields: { 'Value #date': { operation: 'groupby', aggregations: [] }, 'Value #amount': { operation: 'aggregate', aggregations: ['sum'] } } } },
    { id: 'sortBy', options: { fields: {}, sort: [{ field: 'Value #date', desc: false }] } },
    { id: 'convertFieldType', options: { fields: {}, conversions: [{ targetField: 'Value #date', destinationType: 'time' }] } },
    { id: 'organize', options: { excludeByName: {}, indexByName: {}, renameByName: { 'Value #date': 'Day', 'Value #amount (sum)': 'Due' } } },
  ])
  .xField('Day').orientation(VizOrientation.Vertical).showValue(VisibilityMode.Never).barWidth(0.9).lineWidth(0).fillOpacity(80).xTickLabelSpacing(60)
  .colorScheme(colour(FieldColorModeId.Fixed, colours.plain))
  .legend(new VizLegendOptionsBuilder().displayMode(LegendDisplayMode.List).placement(LegendPlacement.Bottom).showLegend(true).calcs(['sum']));

const renewals = [
  calendar,
  table({
    id: 202, title: `Renewals of the next 30 days, ${vat}`, w: 24, h: 9, unit: 'none', sort: 'Day', overrides: [dash], links: [runbook('ServerRentalRenewalsUnfunded')],
    description: 'Every renewal of a billed server within 30 days with its price, the next one first. An overdue renewal has less than 0 days left and counts once.',
    columns: [
      { from: '#info', name: 'Day', unit: units.date, width: 100, mappings: values({ 0: ['–', colours.unknown] }), steps: steps.always(colours.muted) },
      { from: '#left', name: 'Days', unit: 'none', decimals: 0, width: 50, steps: steps.falling(0, 3) },
      { from: '#amount', name: 'Amount', unit: units.usd, decimals: 2, width: 105 },
      { from: 'account', name: 'Account', minWidth: 145, filter: false },
      { from: 'hostname', name: 'Host name', minWidth: 155, filter: false },
      { from: 'plan', name: 'Plan', filter: false, width: 135 },
      { from: 'location', name: 'Location', width: 78, filter: false },
    ], key: ['account', 'server', 'renewal'],
  }, {
    info: orRow(`${milliseconds(nextDates)} * on (account, server) group_left (hostname, plan, location) ${info('account, server', 'hostname, plan, location', own('server_info', account, plan, location))}`, 'hostname', 'No renewals', `sum(${serverCount})`),
    left: left(chosenServers(nextDates)),
    amount: taxed(chosenServers(nextAmounts)),
  }),
];

const perTopup = (/** @type {string} */ metric) => max('account, topup', own(metric, account));
const openTopups = info('account, topup', 'status, coin, network', own('topup_info', account));
const topupCount = (/** @type {string[]} */ ...matchers) => own('topups', account, ...matchers);

/**
 * The increase in the time range of a count over the whole history of an account, whichever
 * exporter fetches it. So a difference is correct across restarts and exact, while
 * increase() extrapolates. If some changed their status again, or were removed, it is 0 at least.
 * @param {string} labels @param {string} selector
 */
const added = (labels, selector) => `clamp_min(${max(labels, selector)} - min by (${labels}) (min_over_time(${selector}[$__range:$__interval])), 0)`;

const open = 'status=~"pending|confirming"';
const closed = 'status!~"pending|confirming"';

/** @param {string} color of a count above 0 */
const ifAny = (color) => set.steps([{ value: null, color: colours.muted }, { value: 1, color }]);

/** Seconds that are left where no rate is locked, so that these top-ups come last. */
const unlocked = 1e9;

const topups = [
  table({
    id: 402, title: 'Open top-ups', w: 24, h: 6, unit: 'none', sort: 'Time left', overrides: [dash], links: [runbook('ServerRentalTopupExpiring'), runbook('ServerRentalTopupStuck')],
    description: 'Top-ups that wait for a payment or its confirmations. A pending top-up has to be paid while its rate is locked; confirming usually takes less than an hour.',
    columns: [
      { from: '#left', name: 'Time left', unit: 'dtdurations', decimals: 0, background: true, width: 120, mappings: [between(unlocked / 2, null, colours.unknown, '–')], steps: steps.falling(0, 600) },
      { from: 'status', name: 'State', mappings: mappings.topupStatus, width: 92, filter: false },
      { from: 'account', name: 'Account', minWidth: 145, filter: false },
      { from: '#amount', name: 'Amount', unit: units.usd, decimals: 2, width: 100 },
      { from: 'coin', name: 'Coin', width: 90, filter: false },
      { from: 'network', name: 'Network', minWidth: 80, filter: false },
      { from: '#age', name: 'Open for', unit: 'dtdurations', decimals: 0, width: 90 },
      { from: '#have', name: 'Have', unit: 'none', decimals: 0, width: 55 },
      { from: '#need', name: 'Need', unit: 'none', decimals: 0, width: 57 },
      { from: '#bonus', name: 'Bonus', unit: 'percentunit', decimals: 0, width: 63 },
    ], key: ['account', 'topup'],
  }, {
    info: orRow(openTopups, 'status', 'None open', `sum(${topupCount()})`),
    amount: perTopup('topup_amount_usd'),
    bonus: perTopup('topup_bonus_ratio'),
    have: perTopup('topup_confirmations'),
    need: perTopup('topup_confirmations_needed'),
    left: orZero(`${perTopup('topup_rate_locked_until_timestamp_seconds')} - time()`, `${perTopup('topup_created_timestamp_seconds')} + ${unlocked}`),
    age: `time() - ${perTopup('topup_created_timestamp_seconds')}`,
  }),
  stat({
    id: 401, title: 'Top-ups in the time range', w: 24, h: 4, unit: 'none', titleSize: 12, steps: steps.always(colours.muted), links: [runbook('ServerRentalTopupFailed')],
    description: 'The top-ups of the chosen accounts by status: those that are open now, and those that were paid, expired, failed or were canceled in the time range.',
    overrides: [forPattern('^(pending|confirming)$', ifAny(colours.plain)), forName('paid', ifAny(colours.good)), forName('failed', ifAny(colours.bad))],
  }, now(orNoAccounts(`sum by (status) (${max('account, status', topupCount(open))} or ${added('account, status', topupCount(closed))})`, 'status'), '{{status}}')),
];

const ever = (/** @type {string} */ metric) => `sum by (type) (${max('account, type', own(metric, account))})`;

/**
 * The increase by type in the interval that begins at each step, also in the last one, which
 * has not ended. Each interval begins with the value at which the one before it ended, so that
 * no transaction is lost in a gap. A type that an account did not have begins with 0, and an
 * account that was not known with its first value: its history is older. If the provider
 * removed more than it added, the increase is 0.
 * @param {string} metric
 */
function grown(metric) {
  const later = ' offset -$__interval';
  const sum = (/** @type {string} */ offset) => max('account, type', own(metric, account) + offset);
  const last = (/** @type {string} */ range) => max('account, type', `last_over_time(${own(metric, account)}${range})`);
  const least = `min by (account, type) (min_over_time(${own(metric, account)}[$__interval]${later}))`;
  return `sum by (type) (clamp_min((${last(`[$__interval]${later}`)} > 0) - (${last('[1h]')} or 0 * ${sum(later)} and on (account) ${sum('')} or ${least}), 0))`;
}

const credit = 'transactions_credit_usd';
const debit = 'transactions_debit_usd';

/** Balances ahead are drawn over the whole time range, which stands for 30 days: seconds ahead at each step. */
const ahead = `scalar(clamp_min(vector(time() - \${__from:date:seconds}), 0) * ${30 * day} / $__range_s)`;
/** An expression as of the end of the time range, at each step. @param {string} expr */
const pinned = (expr) => atEnd(expr).replaceAll('time()', end).replaceAll('day_of_month()', `day_of_month(vector(${end}))`);

/** Each renewal as one number, because a join at each step is slow: its minute, and in the last eight digits the cents. */
const minutesAndCents = `floor(${nextDates} / 60) * 1e8 + on (account, server) group_left () round(${serverPrice} * 100)`;

const ranks = ['blue', 'purple', 'orange', 'yellow'];
const rankColours = ranks.map((color, i) => forPattern(`/^${i + 1}\\. /`, set.colour(color)));
/** Keeps these accounts, with the same place, and so colour, in all panels. @param {string} expr @param {string} [without] what is shown without data */
const ranked = (expr, without = '') => course(orNoAccounts(`max by (name) (label_join((${expr}) * on (account) group_left (rank)`
  + ` (${ranks.map((_, i) => `label_replace(0 * ${first(i + 1)} + 1, "rank", "${i + 1}.", "", "")`).join(' or on (account) ')}), "name", " ", "rank", "account"))`, 'name') + without, '{{name}}', 'ranked');

const flows = [
  series({
    id: 106, title: 'Balance of the first accounts to run dry', w: 12, h: 8, unit: units.usd, decimals: 2, stepped: true, softMin: 0, interval: '2m', points: 500,
    description: 'The balance of at most four accounts, those of the choice that run dry first. The dashed line is the monthly cost of the first one: below it, its balance does not last a month.', links: [runbook('ServerRentalBalanceLow')],
    overrides: [forQuery('cost', set.colour(colours.muted), set.dashed, set.noFill, set.thin), ...rankColours],
  },
  ranked(balance),
  course(`${cost} and on (account) ${first(1)}`, '{{account}} cost per month', 'cost')),
  series({
    // At least one step a day, also of a time range of ten minutes.
    id: 108, title: 'Balance in the next 30 days', w: 12, h: 8, unit: units.usd, decimals: 2, trend: true, stepped: true, steps: steps.notBelowZero, showSteps: true, fill: 0, interval: '10s', points: 240,
    description: 'The balance of the same accounts after each renewal, in the 30 days after the end of the time range and without further top-ups. An account runs dry on the day on which its line crosses zero.',
    links: [runbook('ServerRentalRenewalsUnfunded')], overrides: [forName('Days from now', set.unit('none'), set.decimals(1)), ...rankColours],
  },
  course(`vector(${ahead} / ${day})`, 'Days from now', 'days'),
  ranked(`${atEnd(balance)} - on (account) sum by (account) (((${pinned(minutesAndCents)} and on (account) ${first(4)})`
    + ` < ((${end} + ${ahead}) / 60 + 1) * 1e8) % 1e8) / 100 or on (account) ${atEnd(balance)} and on (account) ${atEnd(serverCount)}`,
  // The panel needs a line for its x axis.
  ` or on () label_replace(vector(NaN), "name", "no data", "", "")`)),
  series({
    id: 501, title: 'Money in and out', w: 13, h: 9, unit: units.usd, decimals: 2, bars: true, stacked: true, calcs: ['sum'], interval: '5m', points: 30, legendRight: true, after: true, axisWidth: 120,
    description: 'Credits and debits by type of transaction, in intervals that begin at the left edge of a bar; debits are below zero. Transactions before the first scrape do not count.',
    overrides: [...palette.transactions('in: '), ...palette.transactions('out: ')],
  },
  course(orNoAccounts(grown(credit), 'type'), 'in: {{type}}', 'in'),
  course(`-(${grown(debit)})`, 'out: {{type}}', 'out')),
  table({
    id: 502, title: 'All transactions by type', w: 11, h: 9, unit: 'none', sort: 'Out', descending: true, overrides: [dash],
    description: 'Transactions of the chosen accounts by type: the amounts and the number over the whole history.',
    columns: [
      { from: 'type', name: 'Type', filter: false, minWidth: 75 },
      { from: '#in', name: 'In', unit: units.usd, decimals: 2, width: 115 },
      { from: '#out', name: 'Out', unit: units.usd, decimals: 2, width: 115 },
      { from: '#count', name: 'Number', unit: 'none', decimals: 0, width: 75 },
    ], key: ['type'],
  }, {
    count: orNoAccounts(ever('transactions'), 'type'),
    in: ever(credit),
    out: ever(debit),
  }),
];

const serverInfo = info('account, server', 'hostname, plan, location, os', own('server_info', account, plan, location));
const chosenInfo = max('account, server, plan, location', own('server_info', account, plan, location));

/** Servers and their cost by a label. @param {'plan' | 'location'} label @param {string} name @param {number} id */
const serversBy = (label, name, id) => table({
  id, title: `Servers by ${label}, ${vat}`, w: 9, h: 8, unit: 'none', sort: 'Per month', descending: true, overrides: [dash], key: [label],
  description: `The number of servers of the chosen accounts, plans and locations by ${label}, and the monthly cost of those that are billed.`,
  columns: [
    { from: label, name, filter: false, minWidth: 120 },
    { from: '#count', name: 'Servers', unit: 'none', decimals: 0, width: 80 },
    { from: '#cost', name: 'Per month', unit: units.usd, decimals: 2, width: 120 },
  ],
}, {
  count: orRow(`count by (${label}) (${chosenInfo})`, label, 'No servers', `sum(${serverCount})`),
  cost: taxed(`sum by (${label}) ((${billed(serverPrice)}) * on (account, server) group_left (${label}) ${info('account, server', label, own('server_info', account, plan, location))})`),
});

/** Servers by account and status as they were last known, of the accounts whose servers are not known yet. */
const awaited = `(${max('account, status', `last_over_time(${own('servers', account)}[1d])`)} and on (account) ${configured} unless on (account) ${serverCount})`;

const machines = [
  stat({
    id: 301, title: 'Servers by status', w: 6, h: 8, unit: 'none', steps: steps.always(colours.muted), links: [runbook('ServerRentalServerSuspended'), runbook('ServerRentalServerCountDropped')],
    description: 'The number of servers of the chosen accounts by status, as the provider reports it; and, while the servers of some accounts are not known, such as after a restart, how many servers and accounts are.',
    overrides: [forName('active', ifAny(colours.good)), forName('suspended', set.steps(steps.noneIsGood)), forPattern('/ accounts known/', set.mappings([between(-1, null, colours.warn, ' ')]))],
  }, now(orNoAccounts(orLastStatus(`sum by (status) (${max('account, status', own('servers', account))})`), 'status'), '{{status}}'),
  now(`count_values("known", sum(${serverCount})) * on () group_left (all) count_values("all", sum(${serverCount}) + sum(${awaited}) or sum(${serverCount}))`
    + ` * on () group_left (with) count_values("with", count(${serverCount})) * on () group_left (accounts) count_values("accounts", count(${configured}))`
    + ` and on () count(${configured}) > count(${serverCount})`, '{{known}} of {{all}} servers ({{with}} of {{accounts}} accounts known)', 'known')),
  serversBy('plan', 'Plan', 302),
  serversBy('location', 'Location', 303),
  table({
    id: 304, title: `Servers, ${vat}`, w: 24, h: 11, unit: 'none', sort: 'Renews', overrides: [dash], links: [runbook('ServerRentalServerSuspended')],
    description: 'Every server of the chosen accounts, plans and locations, the next renewal first. The metrics contain no addresses.',
    columns: [
      { from: 'status', name: 'Status', mappings: mappings.serverStatus, background: true, width: 95, filter: false, align: 'center' },
      { from: 'hostname', name: 'Host name', minWidth: 155, filter: false },
      { from: 'account', name: 'Account', minWidth: 145, filter: false },
      { from: 'plan', name: 'Plan', filter: false, width: 138, link: linkTo('plan', 'Stock and price of this plan', 'var-plan=${__data.fields.Plan}') },
      { from: 'location', name: 'Location', width: 78, filter: false, link: linkTo('status', 'Status of this location', 'var-location=${__data.fields.Location}') },
      { from: '#price', name: 'Per month', unit: units.usd, decimals: 2, width: 105 },
      { from: '#date', name: 'Renews', unit: units.date, width: 98 },
      { from: 'os', name: 'System', width: 108, filter: false },
      { from: '#created', name: 'Created', unit: units.date, width: 100 },
      { from: 'server', name: 'Id', minWidth: 165 },
    ], key: ['account', 'server'],
  }, {
    info: orRow(`(${serverInfo} * on (account, server) group_left (status) ${orLastStatus(info('account, server', 'status', own('server_status', account)))} or on (account, server) ${serverInfo})`, 'hostname', 'No servers', `sum(${serverCount})`),
    price: taxed(chosenServers(serverPrice)),
    date: milliseconds(`(${chosenServers(renews)})`),
    created: milliseconds(`(${chosenServers(perServer('server_created_timestamp_seconds'))})`),
  }),
];

const totals = [
  stat({
    id: 701, title: 'Balance', w: 8, h: 5, unit: units.usd, decimals: 2, steps: steps.notBelowZero,
    description: 'The sum of the known balances of all accounts, red if negative.', links: [runbook('ServerRentalBalanceLow')],
  }, now(orNoAccounts(`sum(${max('account', own('account_balance_usd'))})`, 'account'), 'Balance')),
  stat({
    id: 702, title: `Per month, ${vat}`, w: 8, h: 5, unit: units.usd, decimals: 2,
    description: 'The monthly cost of the billed servers of all accounts. Servers without a known price do not count.',
  }, now(orNoAccounts(taxed(`sum(${max('account', own('account_cost_usd_per_month'))}) or ${allServers} == 0`), 'account'), 'Cost per month')),
  stat({
    id: 703, title: `Due, ${vat}`, w: 8, h: 5, horizontal: true, unit: units.usd, decimals: 2,
    description: 'The renewals of the next 7 and 30 days of all accounts: an overdue one once, then each month.', links: [runbook('ServerRentalRenewalsUnfunded')],
  }, now(orNoAccounts(taxed(allDue(7)), 'account'), '7 days', 'week'), now(orNoAccounts(taxed(allDue(30)), 'account'), '30 days', 'month')),
];

const perAccount = (/** @type {string} */ metric) => max('account', own(metric, account));

const security = [
  table({
    id: 601, title: 'Security of accounts', w: 24, h: 7, unit: 'none', sort: 'Account', overrides: [dash], links: [runbook('ServerRentalTwoFactorDisabled'), runbook('ServerRentalTokenRejected'), panelLink('status', 'Exporter health')],
    description: 'The chosen accounts: two-factor authentication, the number of SSH keys and saved configurations, and the last paid top-up.',
    columns: [
      { from: 'account', name: 'Account', minWidth: 165, link: linkTo('accounts', 'Show only this account', 'var-account=${__value.raw}') },
      { from: 'name', name: 'Name' },
      { from: '#factor', name: 'Two-factor', mappings: mappings.enabled, background: true, align: 'center', width: 105 },
      { from: '#keys', name: 'SSH keys', unit: 'none', width: 85 },
      { from: '#saved', name: 'Configurations', unit: 'none', width: 125 },
      { from: '#limit', name: 'of at most', unit: 'none', width: 95 },
      { from: '#paid', name: 'Last paid top-up', unit: 'dateTimeFromNow', width: 145 },
      { from: '#created', name: 'Created', unit: units.date, width: 100 },
    ], drop: ['id'], key: ['account'],
  }, {
    info: orNoAccounts(info('account', 'name', own('account_info', account)), 'account'),
    factor: orLast(perAccount('account_two_factor_enabled'), known.accounts),
    keys: perAccount('ssh_keys'),
    saved: perAccount('configurations'),
    limit: perAccount('configurations_limit'),
    paid: milliseconds(perAccount('topup_last_paid_timestamp_seconds')),
    created: milliseconds(perAccount('account_created_timestamp_seconds')),
  }),
  table({
    id: 602, title: 'SSH keys', w: 24, h: 8, unit: 'none', sort: 'Added', descending: true, overrides: [dash], links: [runbook('ServerRentalSSHKeysChanged')],
    description: 'The SSH keys of the chosen accounts, the newest first. Treat a key that nobody of you added as an emergency.',
    columns: [
      { from: '#created', name: 'Added', unit: units.date, width: 100 },
      { from: 'account', name: 'Account', minWidth: 145, filter: false },
      { from: 'name', name: 'Key', width: 120 },
      { from: 'type', name: 'Type', width: 110 },
      { from: 'fingerprint', name: 'Fingerprint' },
    ], key: ['account', 'ssh_key'],
  }, {
    info: orRow(info('account, ssh_key', 'name, type, fingerprint', own('ssh_key_info', account)), 'name', 'No keys', `sum(${perAccount('ssh_keys')})`),
    created: milliseconds(max('account, ssh_key', own('ssh_key_created_timestamp_seconds', account))),
  }),
];

export const accounts = () => dashboard('accounts', {
  description: 'How long the balance lasts, renewals, open top-ups, money in and out, and servers. Times are in UTC, like the provider\'s dates.',
  from: 'now-30d', refresh: '1m', timezone: 'utc',
  rows: [
    { id: 100, title: 'Money', panels: money },
    { id: 200, title: 'Renewals', panels: renewals },
    { id: 400, title: 'Top-ups', panels: topups },
    { id: 500, title: 'Balance, money in and out', panels: flows },
    { id: 300, title: 'Servers', panels: machines },
    { id: 700, title: 'All accounts', panels: totals, collapsed: true },
    { id: 600, title: 'Accounts and keys', panels: security, collapsed: true },
  ],
});
