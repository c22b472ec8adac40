//go:build e2e

package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/template"

	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
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
	setConfigurationInStock(api, tokens["main"], false)
	phone := make(chan string, 100)
	ntfy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { phone <- readNtfy(t, r) }))
	t.Cleanup(ntfy.Close)
	d := newDocumented(t, api.URL.String(), tokens["main"], "https://ntfy.sh", ntfy.URL,
		"localhost:10170", simtest.FreeAddress(t), "localhost:9090", simtest.FreeAddress(t), "localhost:9093", simtest.FreeAddress(t),
		"prometheus-alertmanager", repo.Program(t, "prometheus-alertmanager", "alertmanager"),
	)
	d.writeFiles()
	d.output("cp " + simtest.Binary(t) + " .")
	home := d.dir
	var server *simtest.Process // that was started last: Prometheus
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
			server = startUntil(t, address[1], "/-/ready", d.command("exec "+block.Text))
		default:
			d.output(block.Text)
		}
	}
	eventuallyReads(t, phone, "This is a test.\n")
	p := &prometheus{Process: server, t: t}
	p.Eventually("a sold-out configuration", func() bool {
		return p.value(`count(count_over_time(server_rental_configuration_in_stock[5m] offset 15s))`) > 0
	})
	setConfigurationInStock(api, tokens["main"], true)
	eventuallyReads(t, phone, "https://rental.example/order?configuration=")
}

// setConfigurationInStock changes the stock of the first saved configuration; all others are in
// stock.
func setConfigurationInStock(api *simtest.API, token string, inStock bool) {
	api.Change(func(w *simulator.World) {
		for i, c := range w.Accounts[token].Configurations {
			c["in_stock"] = inStock || i > 0
		}
	})
}

// readNtfy returns what somebody reads who has subscribed to the topic of a request.
func readNtfy(t *testing.T, r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	var data any
	if err := json.Unmarshal(body, &data); err != nil {
		t.Error(err)
	}
	message, err := template.New("").Parse(r.URL.Query().Get("m"))
	if err != nil {
		t.Error(err)
		return ""
	}
	var text strings.Builder
	if err := message.Execute(&text, data); err != nil {
		t.Error(err)
	}
	return text.String()
}

// eventuallyReads waits for a message that contains a text.
func eventuallyReads(t *testing.T, phone <-chan string, text string) {
	t.Helper()
	var all []string
	simtest.Eventually(t, "message with "+text, func() bool {
		select {
		case message := <-phone:
			all = append(all, message)
			t.Log(message)
			return strings.Contains(message, text)
		default:
			return false
		}
	})
}
