package main

import "github.com/server-rental-exporter/server_rental_exporter/internal/metric"

// Defined by the collector soon.
var pending []*metric.Definition

func init() {
	for _, d := range []*metric.Definition{
		metric.Gauge("server_previous_price_usd_per_month", "Price.", "account", "server"),
		metric.Gauge("server_last_price_change_timestamp_seconds", "When.", "account", "server"),
		metric.Gauge("transactions_month_debit_usd", "Sum.", "account", "type", "month"),
	} {
		pending = append(pending, d)
	}
}
