{
  _config+:: {
    // Label matchers for the exporter's targets, such as 'job="server_rental"'. Recorded
    // series have no labels of a target, so they need none.
    selector: '',

    // ServerRentalBalanceLow: balance below this part of the monthly cost.
    balanceRatio: 0.1,

    // ServerRentalRenewalsUnfunded: days ahead for which the balance must pay, and days
    // before the first renewal that it cannot pay from which the alert is critical.
    renewalsDays: 7,
    renewalsCriticalDays: 2,

    // Page whose headings are the names of the alerts, in lower case.
    runbookURL: 'https://github.com/server-rental-exporter/server_rental_exporter/blob/main/alerts/README.md',

    // The dashboards link to each other by the first tag.
    dashboardTags: ['server-rental', 'prometheus'],
  },
}
