//go:build e2e

package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

// TestTextfileCollector: node_exporter serves what --once wrote, with the same types and
// help.
func TestTextfileCollector(t *testing.T) {
	t.Parallel()
	path := repo.Program(t, "node_exporter", "prometheus-node-exporter")
	api, tokens := startAPI(t, "main", "lab")
	dir, address := t.TempDir(), simtest.FreeAddress(t)
	out, err := exec.Command(simtest.Binary(t), "--once", "--config.file="+api.ConfigFile(dir, tokens, "")).Output()
	if err != nil {
		t.Fatalf("--once: %v", err)
	}
	simtest.WriteFile(t, filepath.Join(dir, "rental.prom"), string(out))
	node := startUntil(t, address, "/metrics", exec.Command(path, "--web.listen-address="+address,
		"--collector.disable-defaults", "--collector.textfile", "--collector.textfile.directory="+dir))

	got, want := node.Scrape(), simtest.ParseExposition(t, string(out), "text/plain; version=0.0.4")
	for name := range got.Families {
		if !strings.HasPrefix(name, "server_rental_") {
			delete(got.Families, name)
		}
	}
	simtest.AssertEqual(t, "families", got.Families, want.Families)
	simtest.AssertEqual(t, "values", got.WithPrefix("server_rental_"), want.Values)
	simtest.AssertEqual(t, "node_textfile_scrape_error", got.Values["node_textfile_scrape_error{}"], 0.0)
	if len(want.Data()) < 100 {
		t.Errorf("got %d series, want the data of two accounts", len(want.Data()))
	}
}
