// The rules of ../alerts and the dashboards of ../dashboards as a monitoring mixin.
local defaults = (import 'config.libsonnet')._config;

// parse returns the document of a YAML file: the last one, because std.parseYaml takes
// what is before a first line of dashes for a document, too.
local parse(text) =
  local documents = std.parseYaml(text);
  if std.isArray(documents) then documents[std.length(documents) - 1] else documents;

// escape returns a text as it is inside a string of JSON or of a template.
local escape(text) =
  local quoted = std.escapeStringJson(text);
  quoted[1:std.length(quoted) - 1];

// replace returns a value in whose strings a text is replaced.
local replace(value, from, to) =
  std.parseJson(std.strReplace(std.manifestJsonMinified(value), escape(from), escape(to)));

// select adds matchers to the selectors of the exporter's metrics and of up. Names with a
// colon are recorded metrics.
local select(text, matchers) =
  local parts = std.split(text, 'server_rental_');
  local selector(i) =
    local rest = std.lstripChars(parts[i], 'abcdefghijklmnopqrstuvwxyz0123456789_');
    local name = parts[i][:std.length(parts[i]) - std.length(rest)];
    'server_rental_' +
    if std.endsWith(parts[i - 1], ':') || std.startsWith(rest, ':') then parts[i]
    else if std.startsWith(rest, '{') then name + '{' + matchers + ', ' + rest[1:]
    else name + '{' + matchers + '}' + rest;
  std.strReplace(
    parts[0] + std.join('', [selector(i) for i in std.range(1, std.length(parts) - 1)]),
    '(up[',
    '(up{' + matchers + '}[',
  );

(import 'config.libsonnet') + {
  local c = $._config,

  local selected(rule) =
    if c.selector == '' then rule
    else rule {
      expr: select(rule.expr, c.selector),
      [if 'alert' in rule then 'annotations']: {
        [name]: if name == 'runbook_url' then rule.annotations[name]
        else select(rule.annotations[name], escape(c.selector))
        for name in std.objectFields(rule.annotations)
      },
    },

  // due returns a rule that is about renewals of 7 days for those of renewalsDays.
  local due(rule) =
    local days = std.toString(c.renewalsDays);
    local operations(value, name) = replace(value, name + '7d', name + days + 'd');
    replace(
      replace(std.foldl(operations, ['count', 'sum', 'estimate'], rule), '7 * 86400', days + ' * 86400'),
      'next 7 days',
      'next ' + days + ' days',
    ),

  local withThresholds(rule) =
    if !('alert' in rule) then rule
    else if rule.alert == 'ServerRentalBalanceLow' then
      replace(replace(rule, '0.1 *', '%g *' % c.balanceRatio), '10 percent', '%g percent' % (c.balanceRatio * 100))
    else if rule.alert == 'ServerRentalRenewalsUnfunded' && rule.labels.severity == 'critical' then
      replace(due(rule), '2 * 86400', '%d * 86400' % c.renewalsCriticalDays)
    else if rule.alert == 'ServerRentalRenewalsUnfunded' then due(rule)
    else rule,

  // The renewals and amounts due within 7 and 30 days are recorded anyway, except the estimate
  // within 30.
  local withDue(rule) =
    local days = c.renewalsDays;
    local record = std.get(rule, 'record', '');
    local known = if record == 'account:server_rental_account_renewals_due_usd:estimate7d' then [7] else [7, 30];
    local names = [
      'account:server_rental_account_renewals_due_usd:estimate7d',
      'account:server_rental_account_renewals_due_usd:sum7d',
      'account_server:server_rental_server_renewals:count7d',
    ];
    if std.member(names, record) && !std.member(known, days) then [rule, due(rule)] else [rule],

  // groups returns the groups with the rules of a kind, record or alert, if any.
  local groups(kind, suffix) = {
    groups: [
      group { name: group.name + suffix, rules: rules }
      for file in [
        importstr '../alerts/billing.rules.yml',
        importstr '../alerts/exporter.rules.yml',
        importstr '../alerts/status.rules.yml',
        importstr '../alerts/stock.rules.yml',
      ]
      for group in parse(file).groups
      for rules in [[
        replace(selected(withThresholds(rule)), defaults.runbookURL, c.runbookURL)
        for rule in std.flatMap(withDue, group.rules)
        if kind in rule
      ]]
      if std.length(rules) > 0
    ],
  },

  // A group of alerts has a name of its own, so that all fit into one PrometheusRule.
  prometheusAlerts+:: groups('alert', '_alerts'),
  prometheusRules+:: groups('record', ''),

  local dashboard(text) =
    local selector(d) =
      if c.selector == '' then d
      else replace(
        replace(d, 'job=~"$job"', c.selector + ', job=~"$job"'),
        'label_values(server_rental_exporter_build_info, ',
        'label_values(server_rental_exporter_build_info{' + c.selector + '}, ',
      );
    replace(selector(std.parseJson(text)), defaults.runbookURL, c.runbookURL) + {
      tags: if std.member(super.tags, defaults.dashboardTags[0]) then c.dashboardTags else c.dashboardTags[1:],
      links: [
        if link.type == 'dashboards' then link { tags: c.dashboardTags[:1] } else link
        for link in super.links
      ],
    },

  grafanaDashboards+:: {
    'server-rental-accounts.json': dashboard(importstr '../dashboards/server-rental-accounts.json'),
    'server-rental-plan.json': dashboard(importstr '../dashboards/server-rental-plan.json'),
    'server-rental-status.json': dashboard(importstr '../dashboards/server-rental-status.json'),
    'server-rental-stock.json': dashboard(importstr '../dashboards/server-rental-stock.json'),
  },
}
