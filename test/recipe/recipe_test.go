//go:build e2e

package recipe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// tree is a copy of the repository.
type tree struct {
	t   *testing.T
	dir string
}

// run returns the output of a command that must succeed.
func (c tree) run(args ...string) string {
	c.t.Helper()
	return repo.Run(c.t, c.dir, args...)
}

// write writes a file, and makes its directory.
func (c tree) write(path, text string) {
	c.t.Helper()
	path = filepath.Join(c.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		c.t.Fatal(err)
	}
	simtest.WriteFile(c.t, path, strings.TrimPrefix(text, "\n"))
}

// edit puts a text in the place of another one, which must be there.
func (c tree) edit(path, from, to string) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, path))
	if err != nil {
		c.t.Fatal(err)
	}
	if !strings.Contains(string(text), from) {
		c.t.Fatalf("%s: no %q", path, from)
	}
	c.write(path, strings.Replace(string(text), from, to, 1))
}

// TestEndpoint adds an endpoint. Everything that follows from it is generated.
func TestEndpoint(t *testing.T) {
	c := tree{t, repo.Copy(t)}
	c.write("collector/invoices.go", `
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
	IssuedAt *timestamp `+"`json:\"issued_at\"`"+`
}

var invoiceSet metric.Set

var (
	invoicesCount = invoiceSet.Gauge("invoices", "Invoices of the account.", "account")
	invoiceInfo   = invoiceSet.Gauge("invoice_info", "Status of an invoice; constant 1.", "account", "invoice", "status")
	invoiceAmount = invoiceSet.Gauge("invoice_amount_usd", "Amount of an invoice in US dollars.", "account", "invoice")
	invoiceIssued = invoiceSet.Gauge("invoice_issued_timestamp_seconds", "Day on which an invoice was issued, as midnight UTC.", "account", "invoice")
)

var invoices = Resource{
	Name: "invoices", Help: "invoices and their status", Path: "/invoices", Account: true,
	Timing:  Timing{Interval: 5 * time.Minute, MaxAge: 30 * time.Minute},
	Metrics: invoiceSet,
	get:     getList(1_000, addInvoices),
}

func addInvoices(b *metric.Builder, page rentalapi.Page[invoice, struct{}], _ *Snapshot) {
	for _, i := range page.Items {
		b.Add(invoiceInfo, 1, i.ID, i.Status)
		metric.AddOptional(b, invoiceAmount, i.Amount.USD, i.ID)
		metric.AddOptional(b, invoiceIssued, i.IssuedAt, i.ID)
	}
	b.Add(invoicesCount, float64(page.Count))
}
`)
	c.edit("collector/resource.go", "sshKeys, servers,", "sshKeys, servers, invoices,")
	c.edit("simulator/world.go", "Configurations, SSHKeys, Servers []Object", "Configurations, SSHKeys, Servers, Invoices []Object")
	c.edit("simulator/example.go", "\t\tSSHKeys: ", `		Invoices: []Object{{"id": makeID("inv", name, 0), "amount": Object{"usd": 59.0}, "status": "paid", "issued_at": "2026-03-01"}},
		SSHKeys: `)
	c.edit("simulator/resources.go", "\t\tname: \"ssh-keys\"", `		name: "invoices", private: true,
		list: func(_ *World, a *Account) []Object { return a.Invoices },
	}, {
		name: "ssh-keys"`)
	c.run("gofmt", "-w", "simulator")
	c.write("collector/testdata/invoices/document.golden", `
{
  "data": [
    {
      "id": "inv_2026_0001",
      "amount": {"usd": 59.0},
      "status": "paid",
      "issued_at": "2026-03-01"
    }
  ],
  "meta": {"count": 1}
}
`)
	c.run("make", "golden")
	c.run("go", "vet", "./collector", "./simulator")
	if !strings.Contains(c.run("go", "run", ".", "--demo", "--once"), "\nserver_rental_invoice_amount_usd{") {
		t.Error("the demo has no invoices")
	}
	// All tests that read the list of resources or the files that follow from it.
	c.run("go", "test", "-short", "./...")
	c.run("go", "-C", "test", "test", "-short", "./alerts", "./chaos", "./docs")
	c.run("go", "-C", "dashboards", "test", "./...")
}
