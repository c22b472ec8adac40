//go:build e2e

package e2e

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// listens matches the address of a program that serves.
var listens = regexp.MustCompile(`--web\.listen-address=(\S+)`)

// TestNotificationsDocument follows docs/notifications.md from an empty directory to the test
// message, and to that of a saved configuration which is back in stock. The files, commands and
// ports are the document's; the test stands in for ntfy, a simulated provider for the API.
func TestNotificationsDocument(t *testing.T) {
	t.Parallel()
	api, tokens := startAPI(t, "main")
	setStock(api, tokens["main"], false, 0)
	to := newPhone(t)
	d := newDocumented(t, api.URL.String(), tokens["main"], "https://ntfy.sh", to.URL,
		"localhost:10170", simtest.FreeAddress(t), "localhost:9090", simtest.FreeAddress(t), "localhost:9093", simtest.FreeAddress(t),
		"prometheus-alertmanager", repo.Program(t, "prometheus-alertmanager", "alertmanager"),
	)
	d.writeFiles()
	d.execute("cp " + simtest.Binary(t) + " .")
	home := d.dir
	var server *simtest.Process // the one that was started last: Prometheus
	for _, block := range repo.Documents(t)["docs/notifications.md"].Blocks {
		name, isFile := strings.CutPrefix(strings.SplitN(block.Text, "\n", 2)[0], "# ")
		command := d.replace.Replace(block.Text)
		address := listens.FindStringSubmatch(command)
		switch {
		case isFile:
			d.dir = filepath.Join(home, "monitoring")
			simtest.WriteFile(t, filepath.Join(d.dir, name), command)
		case !strings.Contains(block.Comment, t.Name()):
		case address != nil:
			server = simtest.StartServing(t, d.command("exec "+block.Text), address[1], "/-/ready")
		default:
			d.execute(block.Text)
		}
	}
	to.expect("This is a test.", 1, time.Minute)
	p := newPrometheus(t, server)
	p.Eventually("a sold-out configuration", func() bool {
		return p.value(`count(count_over_time(server_rental_configuration_in_stock[5m] offset 15s))`) > 0
	})
	setStock(api, tokens["main"], true, 0)
	to.expect("Plan ", 1, time.Minute)
}
