// Accounts and servers: how long the balance lasts, which renewals are due, which top-ups are open,
// and which servers the money is for.

import { dashboard, linkTo } from './lib/dashboard.js';
import { address, colours, course, fixed, flexible, forName, mappings, now, series, set, stat, steps, table, units, valueOf, words } from './lib/panels.js';
import { account, gauge, max, own } from './lib/promql.js';

const perAccount = (metric: string, ...matchers: string[]) => gauge('account', metric, account, ...matchers);
const balance = perAccount('account_balance_usd');
const cost = perAccount('account_cost_usd_per_month');
const fundedUntil = perAccount('account_funded_until_timestamp_seconds');
const due = (days: 7 | 30) => perAccount('account_renewals_due_usd', `days="${days}"`);
const settlement = gauge('account, coin', 'topup_settlement_seconds', account);
const accountColumn = flexible('account', 'Account', 140, { link: linkTo('accounts', 'accounts', 'Only this account', 'var-account=${__value.raw}') });

const tile = { w: 8, h: 4, unit: units.usd, decimals: 2 };
const money = [
  stat({
    ...tile, id: 701, title: 'Balance', steps: steps.balance, alerts: ['BalanceLow'],
    description: 'The sum of the known balances of the chosen accounts, red if negative.',
  }, now(`sum(${balance})`, 'Balance')),
  stat({
    ...tile, id: 702, title: 'Cost per month',
    description: 'The monthly cost of the billed servers of the chosen accounts, excluding VAT. Servers without a known price do not count.',
  }, now(`sum(${cost})`, 'Cost')),
  stat({
    ...tile, id: 703, title: 'Due', names: true, alerts: ['RenewalsUnfunded'],
    description: 'What the renewals of the chosen accounts cost until the end of the day (UTC) in 7 and in 30 days, excluding VAT; one that is overdue counts once.',
  }, now(`sum(${due(7)})`, '7 days', 'week'), now(`sum(${due(30)})`, '30 days', 'month')),
  table({
    id: 107, title: 'Accounts', w: 24, h: 8, sort: 'Days left', noValue: 'No account is known', alerts: ['RenewalsUnfunded', 'BalanceLow', 'TokenRejected'],
    description: 'The chosen accounts, the first to run dry first: days until the first renewal that the balance cannot pay, and its date, ten years ahead at most; the balance; the months that it pays; the monthly cost; what is due; '
      + 'whether the token is accepted; and until when to top up with each coin that was used: the date less the longest of the last 20 settlements. Everything excludes VAT. Colours are those of the alerts.',
    matrix: { query: 'payby', row: 'account', column: 'coin' },
    overrides: [{ matcher: { id: 'byType', options: 'number' }, properties: [set.unit(units.minute), set.custom('width', 150)] }], // of each coin
  }, [
    accountColumn,
    valueOf.number('left', 'Days left', 85, `(${fundedUntil} - time()) / 86400`, { unit: 'none', decimals: 1, steps: steps.days }),
    valueOf.date('until', 'Funded until', 110, fundedUntil),
    valueOf.usd('balance', 'Balance', 120, balance, { steps: steps.balance }),
    valueOf.number('months', 'Months', 75, `${balance} / (${cost} > 0)`, { unit: 'none', decimals: 1, steps: steps.months }),
    valueOf.usd('cost', 'Per month', 115, cost),
    valueOf.usd('week', 'Due, 7 d', 110, due(7)),
    valueOf.usd('month', 'Due, 30 d', 110, due(30)),
    valueOf.state('token', 'Token', 90, perAccount('exporter_api_token_rejected'), { mappings: mappings.token }),
  ], { payby: `1000 * label_replace(${fundedUntil} - on (account) group_right () ${settlement}, "coin", "Pay by $1", "coin", "(.+)")` }),
];

const perServer = (metric: string, labels = '') => gauge(`account, server${labels}`, metric, account);
const statusColumn = fixed('status', 'Status', 95, { expr: `${perServer('server_status', ', status')} == 1`, mappings: mappings.serverStatus });
const planColumn = fixed('plan', 'Plan', 138, { link: linkTo('accounts', 'plan', 'Stock and price of this plan', 'var-plan=${__value.raw}') });
const locationColumn = fixed('location', 'Location', 80, { link: linkTo('accounts', 'status', 'Status of this location', 'var-location=${__value.raw}') });
const priceColumn = valueOf.usd('price', 'Per month', 110, perServer('server_price_usd_per_month'));

const renewals = table({
  id: 202, title: 'Renewals', w: 24, h: 9, sort: 'Renews', hidden: ['server'], noValue: 'No renewal is known', alerts: ['RenewalsUnfunded'],
  description: 'The next renewal of each server of the chosen accounts, by date, with its price, excluding VAT.',
}, [
  valueOf.date('renews', 'Renews', 100, perServer('server_renews_timestamp_seconds')),
  priceColumn,
  flexible('hostname', 'Host name', 150, { expr: perServer('server_info', ', hostname, plan, location') }),
  planColumn, locationColumn, statusColumn, accountColumn,
]);

/** The amounts by type that were added in the interval after each step, by the last that was known in it and in the one before. */
function added(metric: string) {
  const last = (offset: string) => max('account, type', `last_over_time(${own(metric, account)}[$__interval]${offset})`);
  return `sum by (type) (${last(' offset -$__interval')} - ${last('')})`;
}

const flows = [
  series({
    id: 106, title: 'Balance', w: 12, h: 10, unit: units.usd, decimals: 2, stepped: true, alerts: ['BalanceLow'],
    description: 'The balances of the chosen accounts. Of more than ten, only the ten lowest at each time.',
  }, course(`bottomk(10, ${balance})`, '{{account}}')),
  series({
    id: 501, title: 'Money in and out', w: 12, h: 10, unit: units.usd, decimals: 2, bars: true, interval: '10m', points: 30, calcs: ['sum'],
    description: 'Credits, and debits below zero, of the chosen accounts by type of transaction, in the interval that begins at the left edge of each bar.',
  },
  course(added('transactions_credit_usd'), 'in: {{type}}', 'in'),
  course(`-${added('transactions_debit_usd')}`, 'out: {{type}}', 'out')),
];

const perTopup = (metric: string, labels = '') => gauge(`account, topup${labels}`, metric, account);
const topups = [
  table({
    id: 402, title: 'Open top-ups', w: 18, h: 7, sort: 'Status', descending: true, hidden: ['topup'], noValue: 'No open top-up is known', alerts: ['TopupExpiring', 'TopupStuck'],
    description: 'Top-ups that wait for a payment or its confirmations, with their page, those to pay first. A pending top-up has to be paid while its rate is locked.',
  }, [
    valueOf.duration('left', 'Time left', 112, `${perTopup('topup_rate_locked_until_timestamp_seconds')} - time()`, { steps: steps.rising(colours.bad, [0, colours.warn], [600, colours.plain]) }),
    fixed('status', 'Status', 90, { expr: perTopup('topup_info', ', status, coin, network') }),
    valueOf.usd('amount', 'Amount', 105, perTopup('topup_amount_usd')),
    address('page', 'Open', perTopup('topup_links_info', ', page')),
    fixed('coin', 'Coin', 100), fixed('network', 'Network', 90),
    valueOf.number('have', 'Have', 57, perTopup('topup_confirmations')),
    valueOf.number('need', 'Need', 57, perTopup('topup_confirmations_needed')),
    valueOf.ago('created', 'Created', 125, perTopup('topup_created_timestamp_seconds')),
    accountColumn,
  ]),
  stat({
    id: 401, title: 'Top-ups by status', w: 6, h: 7, names: true, steps: steps.muted, alerts: ['TopupFailed'],
    description: 'The number of all top-ups of the chosen accounts by status.',
    overrides: [forName('failed', set.steps(steps.rising(colours.muted, [1, colours.bad])))],
  }, now(`sum by (status) (${gauge('account, status', 'topups', account)})`, '{{status}}')),
];

const servers = [
  stat({
    id: 301, title: 'Servers by status', w: 6, h: 11, names: true, steps: steps.rising(colours.muted, [1, colours.warn]), alerts: ['ServerSuspended', 'ServerCountDropped'],
    description: 'The number of servers of the chosen accounts by status, as the provider reports it.',
    overrides: [forName('active', set.steps(steps.rising(colours.muted, [1, colours.good]))), forName('suspended', set.steps(steps.noneIsGood))],
  }, now(`sum by (status) (${gauge('account, status', 'servers', account)})`, '{{status}}')),
  table({
    id: 304, title: 'Servers', w: 18, h: 11, sort: 'Host name', noValue: 'No server is known', alerts: ['ServerSuspended'],
    description: 'Every server of the chosen accounts. Prices exclude VAT. The metrics contain no addresses.',
  }, [
    statusColumn,
    flexible('hostname', 'Host name', 150, { expr: perServer('server_info', ', hostname, plan, location, os') }),
    planColumn, locationColumn, priceColumn,
    fixed('os', 'System', 110),
    accountColumn,
    fixed('server', 'Id', 165),
  ]),
];

const security = [
  table({
    id: 601, title: 'Security of accounts', w: 24, h: 7, sort: 'Account', noValue: 'No account is known', alerts: ['TwoFactorDisabled', 'SSHKeysChanged'],
    description: 'The chosen accounts: two-factor authentication, the number of SSH keys and of saved configurations, when a key last came or went while the exporter ran, and the last paid top-up.',
  }, [
    accountColumn,
    flexible('name', 'Name', 130, { expr: gauge('account, name', 'account_info', account) }),
    valueOf.state('factor', 'Two-factor', 100, perAccount('account_two_factor_enabled'), { mappings: mappings.enabled }),
    valueOf.number('keys', 'SSH keys', 85, perAccount('ssh_keys')),
    valueOf.number('saved', 'Configurations', 125, perAccount('configurations')),
    valueOf.number('limit', 'of at most', 90, perAccount('configurations_limit')),
    valueOf.ago('changed', 'Keys changed', 125, perAccount('ssh_keys_changed_timestamp_seconds')),
    valueOf.ago('paid', 'Last top-up', 125, perAccount('topup_last_paid_timestamp_seconds')),
  ]),
  table({
    id: 602, title: 'SSH keys', w: 24, h: 8, sort: 'Added', descending: true, hidden: ['ssh_key'], noValue: 'No SSH key is known', alerts: ['SSHKeysChanged'],
    description: 'The SSH keys of the chosen accounts, the newest first. Treat a key that nobody of you added as an emergency.',
  }, [
    valueOf.date('created', 'Added', 100, gauge('account, ssh_key', 'ssh_key_created_timestamp_seconds', account)),
    fixed('name', 'Key', 140),
    fixed('type', 'Type', 110, { mappings: [words('.+', colours.muted)] }),
    accountColumn,
    flexible('fingerprint', 'Fingerprint', 300, { expr: gauge('account, ssh_key, name, type, fingerprint', 'ssh_key_info', account) }),
  ]),
];

export const accounts = () => dashboard('accounts', {
  description: 'How long the balance lasts, renewals, open top-ups, money in and out, and servers. Times are in UTC, like the provider\'s dates.',
  from: 'now-30d', refresh: '1m', timezone: 'utc',
  rows: [
    { id: 100, title: 'Money', panels: money },
    { id: 200, title: 'Renewals', panels: [renewals] },
    { id: 500, title: 'History', panels: flows },
    { id: 400, title: 'Top-ups', panels: topups },
    { id: 300, title: 'Servers', panels: servers },
    { id: 600, title: 'Security', panels: security, collapsed: true },
  ],
});
