// The rules of ../alerts and the dashboards of ../dashboards as a monitoring mixin.

// parse returns the document of a YAML file: the last one, because std.parseYaml takes
// what is before a first line of dashes for a document, too.
local parse(text) =
  local documents = std.parseYaml(text);
  if std.isArray(documents) then documents[std.length(documents) - 1] else documents;

local groups = std.flatMap(function(text) parse(text).groups, [
  importstr '../alerts/billing.rules.yml',
  importstr '../alerts/exporter.rules.yml',
  importstr '../alerts/status.rules.yml',
  importstr '../alerts/stock.rules.yml',
]);

{
  // Each group has either alerts or recording rules.
  prometheusAlerts+:: { groups+: [g for g in groups if 'alert' in g.rules[0]] },
  prometheusRules+:: { groups+: [g for g in groups if 'record' in g.rules[0]] },

  grafanaDashboards+:: {
    'server-rental-accounts.json': import '../dashboards/server-rental-accounts.json',
    'server-rental-plan.json': import '../dashboards/server-rental-plan.json',
    'server-rental-status.json': import '../dashboards/server-rental-status.json',
    'server-rental-stock.json': import '../dashboards/server-rental-stock.json',
  },
}
