#!/usr/bin/env bash
# Adds an endpoint to a copy of the repository as CONTRIBUTING.md says, and nothing else.
# Everything that follows from it must be generated, and the tests must pass.
set -euo pipefail
cd "$(dirname "$0")/../.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z | xargs -0 cp --no-dereference --parents -t "$copy"
cd "$copy"

# Collector.
cat >collector/invoices.go <<'END'
package collector

import (
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

// invoice is the provider's invoice.
type invoice struct {
	ID       string
	Amount   struct{ USD *amount }
	Status   string
	IssuedAt *timestamp `json:"issued_at"`
	PaidWith string     `json:"paid_with"`
}

var (
	invoicesCount = metric.Gauge("invoices", "Invoices of the account.", "account")
	invoiceInfo   = metric.Gauge("invoice_info", "Status and means of payment of an invoice; constant 1.", "account", "invoice", "status", "paid_with")
	invoiceAmount = metric.Gauge("invoice_amount_usd", "Amount of an invoice in US dollars.", "account", "invoice")
	invoiceIssued = metric.Gauge("invoice_issued_timestamp_seconds", "Day on which an invoice was issued, as midnight UTC.", "account", "invoice")
)

func invoices() Resource {
	return Resource{
		Name: "invoices", Help: "invoices and their status", Path: "/invoices", Account: true,
		Interval: 5 * time.Minute, MaxAge: 30 * time.Minute,
		Metrics: []*metric.Definition{invoicesCount, invoiceInfo, invoiceAmount, invoiceIssued},
		get:     getList(addInvoices),
	}
}

func addInvoices(b *metric.Builder, page rentalapi.Page[invoice, struct{}], _ *Snapshot) {
	for _, i := range page.Items {
		b.Add(invoiceInfo, 1, i.ID, i.Status, i.PaidWith)
		metric.AddOptional(b, invoiceAmount, i.Amount.USD, i.ID)
		metric.AddOptional(b, invoiceIssued, i.IssuedAt, i.ID)
	}
	b.Add(invoicesCount, float64(page.Count))
}
END

# List.
sed -i 's/sshKeys(), servers(),/sshKeys(), servers(), invoices(),/' collector/resource.go

# Simulator.
sed -i 's/Configurations, SSHKeys, Servers \[\]Object/Configurations, SSHKeys, Servers, Invoices []Object/' internal/simulator/world.go
sed -i '/^\t\tSSHKeys: /a Invoices: []Object{{"id": makeID("inv", name, 0), "amount": Object{"usd": 59.0}, "status": "paid", "issued_at": "2026-03-01", "paid_with": "balance"}},' internal/simulator/example.go
sed -i '/^\t\tname: "ssh-keys"/i name: "invoices", private: true,\nlist: func(v view) []Object { return v.account.Invoices },\n}, {' internal/simulator/resources.go
gofmt -w internal/simulator/example.go internal/simulator/resources.go

# Test data.
mkdir collector/testdata/invoices
cat >collector/testdata/invoices/document.golden <<'END'
{
  "data": [
    {
      "id": "inv_2026_0001",
      "amount": {"usd": 59.0},
      "status": "paid",
      "issued_at": "2026-03-01",
      "paid_with": "balance"
    }
  ],
  "meta": {"count": 1}
}
END

# Generate.
make golden

go build ./...
go vet ./collector ./internal/simulator
go run . --demo --once | grep '^server_rental_invoice_amount_usd'
make test test-deploy
