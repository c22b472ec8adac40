// Accounts and servers: how long the balance lasts, which renewals are due, which top-ups
// are open, and which servers the money is for.

import { LegendDisplayMode, LegendPlacement, VisibilityMode, VizLegendOptionsBuilder, VizOrientation } from '@grafana/grafana-foundation-sdk/common';
import { bars, between, colours, valueOf, course, dashboard, fixed, flexible, forName, forPattern, forQuery, linksFrom, mappings, now, palette, series, set, stat, steps, table, text, units, values } from './lib/family.js';
import { account, accounts as configured, atEnd, billed, chosenServers, day, end, info, known, labelled, location, max, milliseconds, noAccounts, orLast, orNoAccounts, orSays, orZero, own, plan, renewalDates, today, tokens } from './lib/promql.js';

const { linkTo, panelLink } = linksFrom('accounts');
/** Amounts with the VAT that the user entered, which titles name. */
const taxed = (expr: string) => `(${expr}) * (1 + $vat / 100)`;
const vat = '${vat} % VAT';

const perAccount = (metric: string) => max('account', own(metric, account));
const balance = perAccount('account_balance_usd');
const cost = perAccount('account_cost_usd_per_month');
const fundedUntil = perAccount('account_funded_until_timestamp_seconds');

/** Servers of each account: 0 for an account without servers, absent without data. */
const serverCount = `sum by (account) (${max('account, status', own('servers', account))})`;
const perServer = (metric: string) => max('account, server', own(metric, account));
const serverPrice = perServer('server_price_usd_per_month');
const renews = perServer('server_renews_timestamp_seconds');
const serverInfo = (labels: string) => info('account, server', labels, own('server_info', account, plan, location));
const everyServer = serverInfo('hostname, plan, location, os');

/** The price of each renewal. */
const amounts = (dates: string, price: string) => `(${dates} * 0 + on (account, server) group_left () ${price})`;
const nextDates = `(${billed(renewalDates(renews, 30))})`;
const nextAmounts = amounts(nextDates, serverPrice);

/** One series while some account is known, or if there is none. */
const current = `(${known.accounts} @ ${end} or on () ${noAccounts})`;
/** The status of each server, in parentheses if last known. */
const orLastStatus = (expr: string) => `((${expr}) and on () ${current} or label_replace((${expr}) unless on () ${current}, "status", "($1)", "status", "(.+)"))`;
/** A series that says in a label that there is nothing, in parentheses if last known, if there is data. */
const orNone = (expr: string, label: string, text: string, data = `sum(${serverCount})`) => expr + orSays(`(0 * ${data} or on () ${noAccounts}) and on () ${current}`, label, text) + orSays(`0 * ${data}`, label, `(${text})`);

/** Cells without a value. An empty table says "No data". */
const dash = forPattern('.*', set.noValue('–'));

/** Times after all others, of accounts that have nothing to pay, and of none at all. */
const never = 1e11;
const nobody = 2e11;
const paidUntil = `(${fundedUntil} or (${cost} == 0) + ${never})`;
/** The order of accounts: of two that run dry on the same day, that with less money is the first. */
const order = `(${paidUntil} + on (account) ${balance} / 1e4 or on (account) ${paidUntil})`;
/** The accounts that run dry before the others. */
const first = (count: number) => atEnd(`bottomk(${count}, ${order})`);
/** Days from today (UTC) to a date. */
const left = (dates: string) => `(${dates}) / ${day} - scalar(floor(vector(time() / ${day})))`;
const driest = left(`bottomk(1, ${order})`);
const noRenewals = (from: number) => between(from, null, colours.plain, 'No renewals');
const none = values({ 0: ['–', colours.unknown] });

/** Until when to pay with each coin: what is funded, less the longest settlement. */
const settlement = max('account, coin', own('topup_settlement_seconds', account));
const payBy = `(${fundedUntil} - on (account) group_right () ${settlement})`;

const money = [
  stat({
    id: 104, title: 'First to run dry', w: 7, h: 6, unit: 'suffix:days', decimals: 0, steps: steps.daysLeft, names: true,
    mappings: [between(nobody / day / 2, null, colours.plain, 'No accounts'), between(1e5, nobody / day / 2, colours.plain, 'No renewals')],
    description: 'The account with the fewest days from today (UTC) to a renewal that its balance cannot pay, and these days: red from 2 and orange from 7 on, like the alert, and grey if last known; and the number of accounts of which this is not known.', alerts: ['RenewalsUnfunded'],
    overrides: [forPattern('/, last known$/', set.colour(colours.unknown)), forName('accounts not known', set.unit('none'), set.steps(steps.rising(colours.warn)))],
  }, now(`(${driest}) * on () group_left (known) (${labelled(`vector(1) unless on () ${current}`, 'known', ', last known')} or on () vector(1))`
    + orSays(`(${noAccounts}) + ${nobody / day}`, 'account', 'configured'), '{{account}}{{known}}'),
  now(`count(${configured} unless on (account) ${paidUntil})`, 'accounts not known', 'unknown')),
  table({
    id: 109, title: 'Pay by', w: 17, h: 6, sort: 'Pay by', overrides: [dash], alerts: ['RenewalsUnfunded'], key: ['account', 'coin'],
    description: 'Until when each account has to be topped up with each coin that it has used: the date until which it is funded, less the longest of the last 20 settlements with this coin.',
  }, [
    flexible('account', 'Account', 145), fixed('coin', 'Coin', 88),
    valueOf.minute('by', 'Pay by', 140, payBy),
    valueOf.duration('left', 'Left', 110, `${payBy} - time()`, { mappings: [between(-1e18, 0, colours.bad, 'Passed')], steps: steps.falling(2 * day, 7 * day) }),
    { from: '#settles', name: 'Settles in', unit: 'dtdurations', decimals: 0, width: 110, mappings: none, steps: steps.muted },
  ], { settles: orNone(settlement, 'coin', 'None used') }),
  table({
    id: 107, title: `Accounts, ${vat} in the monthly cost`, w: 24, h: 7, sort: 'Days left', overrides: [dash], key: ['account'],
    alerts: ['RenewalsUnfunded', 'BalanceLow', 'TokenRejected'],
    description: 'The chosen accounts, the first to run dry first and those without data before them: days until the first renewal that the balance cannot pay, and its date, ten years ahead at most; '
      + 'the balance; the amount by which the renewals of the next 30 days exceed it, an overdue one once and then each month; the monthly cost of the servers at current prices, with the VAT chosen above. '
      + 'Everything else excludes VAT. Servers that are no longer billed or without a known price do not count.',
  }, [
    flexible('account', 'Account', 165, { link: linkTo('accounts', 'Show only this account', 'var-account=${__value.raw}') }),
    valueOf.count('left', 'Days left', 85, left(order), { steps: steps.daysLeft, mappings: [noRenewals(1e5)] }),
    valueOf.date('until', 'Funded until', 115, paidUntil, { mappings: [noRenewals(never * 1000)] }),
    valueOf.usd('balance', 'Balance', 120, balance, { steps: steps.notBelowZero }),
    valueOf.usd('missing', 'Missing, 30 d', 115, `clamp_min((${orZero(`round(sum by (account) (${nextAmounts}), 0.01)`, cost)}) - on (account) ${balance}, 0)`),
    valueOf.usd('cost', 'Per month', 115, taxed(`${cost} or ${serverCount} == 0`)),
    { from: '#token', name: 'Token', mappings: mappings.token, width: 90, align: 'center', background: true },
  ], { token: tokens }),
];

/** Today and the 30 days after it, one series each, with the day as its value. */
const days = `(${Array.from({ length: 31 }, (_, i) => labelled(`vector(${i})`, 'renewal', `${i}`)).join(' or ')}) * ${day} + ${today}`;
/** A row for each day if the exporter knows the servers. */
const eachDay = `((${days}) + on () group_left () (0 * sum(${serverCount}) or ${noAccounts}))`;

const renewals = [
  bars({
    id: 201, title: `Renewals by day, ${vat}`, w: 24, h: 6, unit: units.usd, decimals: 0, alerts: ['RenewalsUnfunded'],
    description: 'The amount due on each of the next 30 days, of the chosen accounts, plans and locations. An overdue renewal counts today.',
    overrides: [forName('Day', set.unit('time:MMM DD'))], x: 'date', spacing: 60,
    before: [
      { id: 'merge', options: {} },
      { id: 'groupBy', options: { fields: { 'Value #date': { operation: 'groupby', aggregations: [] }, 'Value #amount': { operation: 'aggregate', aggregations: ['sum'] } } } },
    ],
    names: { 'Value #date': 'Day', 'Value #amount (sum)': 'Due' },
  }, {
    amount: `${taxed(chosenServers(nextAmounts))} or 0 * ${eachDay}`,
    date: milliseconds(`(clamp_max(clamp_min(${chosenServers(nextDates)}, ${today}), ${today} + 30 * ${day}) or ${eachDay})`),
  })
    .orientation(VizOrientation.Vertical).showValue(VisibilityMode.Never)
    .legend(new VizLegendOptionsBuilder().displayMode(LegendDisplayMode.List).placement(LegendPlacement.Bottom).showLegend(true).calcs(['sum'])),
  table({
    id: 202, title: `Renewals of the next 30 days, ${vat}`, w: 24, h: 9, sort: 'Day', overrides: [dash], alerts: ['RenewalsUnfunded'], key: ['account', 'server', 'renewal'],
    description: 'Every renewal of a billed server within 30 days with its price, the next one first. An overdue renewal has less than 0 days left and counts once.',
  }, [
    { from: '#info', name: 'Day', unit: units.date, width: 100, mappings: none, steps: steps.muted },
    valueOf.count('left', 'Days', 50, left(chosenServers(nextDates)), { steps: steps.falling(0, 3) }),
    valueOf.usd('amount', 'Amount', 105, taxed(chosenServers(nextAmounts))),
    flexible('account', 'Account', 145), flexible('hostname', 'Host name', 155), fixed('plan', 'Plan', 135),
    fixed('location', 'Location', 78),
  ], { info: orNone(`${milliseconds(nextDates)} * on (account, server) group_left (hostname, plan, location) ${serverInfo('hostname, plan, location')}`, 'hostname', 'No renewals') }),
];

const perTopup = (metric: string) => max('account, topup', own(metric, account));
const openTopups = info('account, topup', 'status, coin, network', own('topup_info', account));
/** Seconds that are left where no rate is locked, so that these top-ups come last. */
const unlocked = 1e9;
const topupCount = (...matchers: string[]) => own('topups', account, ...matchers);
const open = topupCount('status=~"pending|confirming"');
const closed = topupCount('status!~"pending|confirming"');
/**
 * Those that were closed in the time range. Counts are over the whole history of an account, so a
 * difference is exact, also across restarts. If some changed their status again, it is 0 at least.
 */
const added = `clamp_min(${max('account, status', closed)} - min by (account, status) (min_over_time(${closed}[$__range:$__interval])), 0)`;

/** The colour of a count above 0. */
const ifAny = (color: string) => set.steps(steps.rising(colours.muted, [1, color]));

const topups = [
  table({
    id: 402, title: 'Open top-ups', w: 24, h: 6, sort: 'Time left', overrides: [dash], alerts: ['TopupExpiring', 'TopupStuck'], key: ['account', 'topup'],
    description: 'Top-ups that wait for a payment or its confirmations. A pending top-up has to be paid while its rate is locked.',
  }, [
    valueOf.duration('left', 'Time left', 120, orZero(`${perTopup('topup_rate_locked_until_timestamp_seconds')} - time()`, `${perTopup('topup_created_timestamp_seconds')} + ${unlocked}`), {
      background: true, mappings: [between(unlocked / 2, null, colours.unknown, '–')], steps: steps.falling(0, 600),
    }),
    fixed('status', 'State', 92, { mappings: mappings.topupStatus }),
    flexible('account', 'Account', 145),
    valueOf.usd('amount', 'Amount', 100, perTopup('topup_amount_usd')),
    fixed('coin', 'Coin', 90), flexible('network', 'Network', 80),
    valueOf.duration('age', 'Open for', 90, `time() - ${perTopup('topup_created_timestamp_seconds')}`),
    valueOf.count('have', 'Have', 55, perTopup('topup_confirmations')),
    valueOf.count('need', 'Need', 57, perTopup('topup_confirmations_needed')),
    valueOf.percent('bonus', 'Bonus', 63, perTopup('topup_bonus_ratio')),
  ], { info: orNone(openTopups, 'status', 'None open', `sum(${topupCount()})`) }),
  stat({
    id: 401, title: 'Top-ups in the time range', w: 24, h: 4, sizes: { title: 11 }, steps: steps.muted, alerts: ['TopupFailed'],
    description: 'The top-ups of the chosen accounts by status: those that are open now, and those that were paid, expired, failed or were canceled in the time range.',
    overrides: [forPattern('^(pending|confirming)$', ifAny(colours.plain)), forName('paid', ifAny(colours.good)), forName('failed', ifAny(colours.bad))],
  }, now(orNoAccounts(`sum by (status) (${max('account, status', open)} or ${added})`, 'status'), '{{status}}')),
];

const credit = own('transactions_credit_usd', account);
const debit = own('transactions_debit_usd', account);
const ever = (selector: string) => `sum by (type) (${max('account, type', selector)})`;

/**
 * The increase by type in the interval that begins at each step, of which the last has not ended.
 * Each begins with the value at which the one before it ended, so that no transaction is lost in a
 * gap; with 0, if the account did not have the type; and with the first value, if the account was
 * not known: its history is older. If the provider removed more than it added, the increase is 0.
 */
function grown(selector: string) {
  const later = ' offset -$__interval';
  const at = (offset: string) => max('account, type', selector + offset);
  const last = (range: string) => max('account, type', `last_over_time(${selector}${range})`);
  const least = `min by (account, type) (min_over_time(${selector}[$__interval]${later}))`;
  return `sum by (type) (clamp_min((${last(`[$__interval]${later}`)} > 0) - (${last('[1h]')} or 0 * ${at(later)} and on (account) ${at('')} or ${least}), 0))`;
}

/** Balances ahead are drawn over the whole time range, which stands for 30 days: seconds ahead at each step. */
const ahead = `scalar(clamp_min(vector(time() - \${__from:date:seconds}), 0) * ${30 * day} / $__range_s)`;
/** An expression as of the end of the time range, at each step. */
const pinned = (expr: string) => atEnd(expr).replaceAll('time()', end).replaceAll('day_of_month()', `day_of_month(vector(${end}))`);

/** Each renewal as one number, because a join at each step is slow: its minute, and in the last eight digits the cents. */
const minutesAndCents = `floor(${nextDates} / 60) * 1e8 + on (account, server) group_left () round(${serverPrice} * 100)`;

const ranks = ['blue', 'purple', 'orange', 'yellow'];
const rankColours = ranks.map((color, i) => forPattern(`/^${i + 1}\\. /`, set.colour(color)));
/** Keeps these accounts, with the same place, and so colour, in all panels. */
const ranked = (expr: string, without = '') => course(orNoAccounts(`max by (name) (label_join((${expr}) * on (account) group_left (rank)`
  + ` (${ranks.map((_, i) => labelled(`0 * ${first(i + 1)} + 1`, 'rank', `${i + 1}.`)).join(' or on (account) ')}), "name", " ", "rank", "account"))`, 'name') + without, '{{name}}', 'ranked');

const flows = [
  series({
    id: 106, title: 'Balance of the first accounts to run dry', w: 12, h: 8, unit: units.usd, decimals: 2, stepped: true, interval: '2m', points: 500,
    description: 'The balance of at most four accounts, those of the choice that run dry first. The dashed line is the monthly cost of the first one: below it, its balance does not last a month.', alerts: ['BalanceLow'],
    overrides: [forQuery('cost', set.colour(colours.muted), set.dashed, set.noFill, set.custom('lineWidth', 1)), ...rankColours],
  },
  ranked(balance),
  course(`${cost} and on (account) ${first(1)}`, '{{account}} cost per month', 'cost')).axisSoftMin(0),
  series({
    // At least one step a day, also of a time range of ten minutes.
    id: 108, title: 'Balance in the next 30 days', w: 12, h: 8, unit: units.usd, decimals: 2, trend: true, stepped: true, steps: steps.notBelowZero, showSteps: true, fill: 0, interval: '10s', points: 240,
    description: 'The balance of the same accounts after each renewal, in the 30 days after the end of the time range and without further top-ups. An account runs dry on the day on which its line crosses zero.',
    alerts: ['RenewalsUnfunded'], overrides: [forName('Days from now', set.unit('none'), set.decimals(1)), ...rankColours],
  },
  course(`vector(${ahead} / ${day})`, 'Days from now', 'days'),
  ranked(`${atEnd(balance)} - on (account) sum by (account) (((${pinned(minutesAndCents)} and on (account) ${first(4)})`
    + ` < ((${end} + ${ahead}) / 60 + 1) * 1e8) % 1e8) / 100 or on (account) ${atEnd(balance)} and on (account) ${atEnd(serverCount)}`,
  orSays('vector(NaN)', 'name', 'no data'))), // the panel needs a line for its x axis
  series({
    id: 501, title: 'Money in and out', w: 13, h: 9, unit: units.usd, decimals: 2, bars: 'after', stacked: true, calcs: ['sum'], interval: '5m', points: 30, legendRight: true,
    description: 'Credits and debits by type of transaction, in intervals that begin at the left edge of a bar; debits are below zero. Transactions before the first scrape do not count.',
    overrides: [...palette.transactions('in: '), ...palette.transactions('out: ')],
  },
  course(orNoAccounts(grown(credit), 'type'), 'in: {{type}}', 'in'),
  course(`-(${grown(debit)})`, 'out: {{type}}', 'out')).axisWidth(120), // Grafana cuts long labels without
  table({
    id: 502, title: 'All transactions by type', w: 11, h: 9, sort: 'Out', descending: true, overrides: [dash], key: ['type'],
    description: 'Transactions of the chosen accounts by type: the amounts and the number over the whole history.',
  }, [
    flexible('type', 'Type', 75),
    valueOf.usd('in', 'In', 115, ever(credit)), valueOf.usd('out', 'Out', 115, ever(debit)),
    valueOf.count('count', 'Number', 75, orNoAccounts(ever(own('transactions', account)), 'type')),
  ]),
];

const chosenInfo = max('account, server, plan, location', own('server_info', account, plan, location));

const serversBy = (label: 'plan' | 'location', name: string, id: number) => table({
  id, title: `Servers by ${label}, ${vat}`, w: 9, h: 8, sort: 'Per month', descending: true, overrides: [dash], key: [label],
  description: `The number of servers of the chosen accounts, plans and locations by ${label}, and the monthly cost of those that are billed.`,
}, [
  flexible(label, name, 120),
  valueOf.count('count', 'Servers', 80, orNone(`count by (${label}) (${chosenInfo})`, label, 'No servers')),
  valueOf.usd('cost', 'Per month', 120, taxed(`sum by (${label}) ((${billed(serverPrice)}) * on (account, server) group_left (${label}) ${serverInfo(label)})`)),
]);

/** Servers by account and status as they were last known, of the accounts whose servers are not known yet. */
const awaited = `(${max('account, status', `last_over_time(${own('servers', account)}[1d])`)} and on (account) ${configured} unless on (account) ${serverCount})`;

const machines = [
  stat({
    id: 301, title: 'Servers by status', w: 6, h: 8, steps: steps.muted, alerts: ['ServerSuspended', 'ServerCountDropped'],
    description: 'The number of servers of the chosen accounts by status, as the provider reports it; and, while the servers of some accounts are not known, such as after a restart, how many servers and accounts are.',
    overrides: [forName('active', ifAny(colours.good)), forName('suspended', set.steps(steps.noneIsGood)), forPattern('/ accounts known/', set.mappings([between(-1, null, colours.warn, ' ')]))],
  }, now(orNoAccounts(orLastStatus(`sum by (status) (${max('account, status', own('servers', account))})`), 'status'), '{{status}}'),
  now(`count_values("known", sum(${serverCount})) * on () group_left (all) count_values("all", sum(${serverCount}) + sum(${awaited}) or sum(${serverCount}))`
    + ` * on () group_left (with) count_values("with", count(${serverCount})) * on () group_left (accounts) count_values("accounts", count(${configured}))`
    + ` and on () count(${configured}) > count(${serverCount})`, '{{known}} of {{all}} servers ({{with}} of {{accounts}} accounts known)', 'known')),
  serversBy('plan', 'Plan', 302),
  serversBy('location', 'Location', 303),
  table({
    id: 304, title: `Servers, ${vat}`, w: 24, h: 11, sort: 'Renews', overrides: [dash], alerts: ['ServerSuspended'], key: ['account', 'server'],
    description: 'Every server of the chosen accounts, plans and locations, the next renewal first. The metrics contain no addresses.',
  }, [
    fixed('status', 'Status', 95, { mappings: mappings.serverStatus, background: true, align: 'center' }),
    flexible('hostname', 'Host name', 155), flexible('account', 'Account', 145),
    fixed('plan', 'Plan', 138, { link: linkTo('plan', 'Stock and price of this plan', 'var-plan=${__data.fields.Plan}') }),
    fixed('location', 'Location', 78, { link: linkTo('status', 'Status of this location', 'var-location=${__data.fields.Location}') }),
    valueOf.usd('price', 'Per month', 105, taxed(chosenServers(serverPrice))),
    valueOf.date('date', 'Renews', 98, `(${chosenServers(renews)})`),
    fixed('os', 'System', 108),
    valueOf.date('created', 'Created', 100, `(${chosenServers(perServer('server_created_timestamp_seconds'))})`),
    flexible('server', 'Id', 165, { filter: true }),
  ], {
    info: orNone(`(${everyServer} * on (account, server) group_left (status) ${orLastStatus(info('account, server', 'status', own('server_status', account)))} or on (account, server) ${everyServer})`, 'hostname', 'No servers'),
  }),
];

// Over all accounts, whichever are chosen.
const allServers = `sum(${max('account, status', own('servers'))})`;
const allPrices = max('account, server', own('server_price_usd_per_month'));
const allDue = (days: number) => orZero(`round(sum(${amounts(`(${billed(renewalDates(max('account, server', own('server_renews_timestamp_seconds')), days))})`, allPrices)}), 0.01)`, allServers);

const totals = [
  stat({
    id: 701, title: 'Balance', w: 8, h: 5, unit: units.usd, decimals: 2, steps: steps.notBelowZero,
    description: 'The sum of the known balances of all accounts, red if negative.', alerts: ['BalanceLow'],
  }, now(orNoAccounts(`sum(${max('account', own('account_balance_usd'))})`, 'account'), 'Balance')),
  stat({
    id: 702, title: `Per month, ${vat}`, w: 8, h: 5, unit: units.usd, decimals: 2,
    description: 'The monthly cost of the billed servers of all accounts. Servers without a known price do not count.',
  }, now(orNoAccounts(taxed(`sum(${max('account', own('account_cost_usd_per_month'))}) or ${allServers} == 0`), 'account'), 'Cost per month')),
  stat({
    id: 703, title: `Due, ${vat}`, w: 8, h: 5, horizontal: true, unit: units.usd, decimals: 2,
    description: 'The renewals of the next 7 and 30 days of all accounts: an overdue one once, then each month.', alerts: ['RenewalsUnfunded'],
  }, now(orNoAccounts(taxed(allDue(7)), 'account'), '7 days', 'week'), now(orNoAccounts(taxed(allDue(30)), 'account'), '30 days', 'month')),
];

const security = [
  table({
    id: 601, title: 'Security of accounts', w: 24, h: 7, sort: 'Account', overrides: [dash], alerts: ['TwoFactorDisabled', 'TokenRejected'], links: [panelLink('status', 'Exporter health')], key: ['account'],
    description: 'The chosen accounts: two-factor authentication, the number of SSH keys and saved configurations, and the last paid top-up.',
  }, [
    flexible('account', 'Account', 165, { filter: true, link: linkTo('accounts', 'Show only this account', 'var-account=${__value.raw}') }),
    text('name', 'Name'),
    valueOf.state('factor', 'Two-factor', 105, orLast(perAccount('account_two_factor_enabled'), known.accounts), { mappings: mappings.enabled }),
    valueOf.number('keys', 'SSH keys', 85, perAccount('ssh_keys')),
    valueOf.number('saved', 'Configurations', 125, perAccount('configurations')),
    valueOf.number('limit', 'of at most', 95, perAccount('configurations_limit')),
    valueOf.ago('paid', 'Last paid top-up', 145, perAccount('topup_last_paid_timestamp_seconds')),
    valueOf.date('created', 'Created', 100, perAccount('account_created_timestamp_seconds')),
  ], { info: orNoAccounts(info('account', 'name', own('account_info', account)), 'account') }),
  table({
    id: 602, title: 'SSH keys', w: 24, h: 8, sort: 'Added', descending: true, overrides: [dash], alerts: ['SSHKeysChanged'], key: ['account', 'ssh_key'],
    description: 'The SSH keys of the chosen accounts, the newest first. Treat a key that nobody of you added as an emergency.',
  }, [
    valueOf.date('created', 'Added', 100, max('account, ssh_key', own('ssh_key_created_timestamp_seconds', account))),
    flexible('account', 'Account', 145),
    fixed('name', 'Key', 120, { filter: true }),
    fixed('type', 'Type', 110, { filter: true }),
    text('fingerprint', 'Fingerprint'),
  ], { info: orNone(info('account, ssh_key', 'name, type, fingerprint', own('ssh_key_info', account)), 'name', 'No keys', `sum(${perAccount('ssh_keys')})`) }),
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
