package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestControl runs the commands of CONTRIBUTING.md.
func TestControl(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	document, err := os.ReadFile(filepath.Join(simtest.Root(t), "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(document), "<!-- tested: "+t.Name()+" -->\n```sh\n")
	commands, _, _ := strings.Cut(block, "```")
	api := simtest.Start(t, simulator.Options{})
	control := httptest.NewServer(simulator.Control(api.Simulator))
	defer control.Close()
	run := func(commands string) string {
		commands = strings.ReplaceAll(commands, "http://127.0.0.1:10173", control.URL)
		out, err := exec.Command("sh", "-c", "set -e\n"+commands).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	simtest.AssertEqual(t, "responses", run(strings.ReplaceAll(commands, "curl", "curl -s")), strings.Repeat("done\n", 4))
	api.Change(func(w *simulator.World) {
		main := w.Accounts[simtest.MainToken]
		for _, p := range w.Plans {
			if p["id"] == "epyc-9654" {
				simtest.AssertEqual(t, "stock", simulator.At(p, "availability", "delivery"), any("instant"))
			}
		}
		simtest.AssertEqual(t, "top-up", main.Topups[0]["status"], any("paid"))
		simtest.AssertEqual(t, "transaction", main.Transactions[0]["topup"], main.Topups[0]["id"])
		simtest.AssertEqual(t, "server", main.Servers[0]["status"], any("suspended"))
	})
	failing := api.URL.String() + "/status"
	simtest.AssertEqual(t, "failing", simtest.Get(t, failing).Status, http.StatusServiceUnavailable)
	run(`curl -s -d path=/status -d status=200 http://127.0.0.1:10173/failure`)
	simtest.AssertEqual(t, "works again", simtest.Get(t, failing).Status, http.StatusOK)
	for path, want := range map[string]string{
		"/stock?plan=x&in_stock=true":        `plan "x": unknown`,
		"/stock?plan=epyc-9654&location=x":   `location "x": unknown`,
		"/stock?plan=epyc-9654&in_stock=yes": "in_stock: ",
		"/topup?account=x":                   `account "x": unknown`,
		"/topup?account=main&status=x":       `status "x": unknown`,
		"/ssh-key?account=main":              `ssh_key "": unknown`,
		"/plan?plan=x&listed=false":          `plan "x": unknown`,
		"/plan?plan=x&usd=much":              "usd: ",
		"/component?location=fra":            `component "" of location "fra": unknown`,
		"/server?server=x":                   `server "x": unknown`,
		"/failure?path=/plans&status=x":      `status "x": must be`,
		"/failure?path=/x&status=503":        `path "/x": unknown`,
	} {
		r, err := simtest.Do(http.MethodPost, control.URL+path)
		if err != nil || r.Status != http.StatusBadRequest || !strings.HasPrefix(r.Body, want) {
			t.Errorf("%s: got %d %q %v, want 400 and %q", path, r.Status, r.Body, err, want)
		}
	}
}
