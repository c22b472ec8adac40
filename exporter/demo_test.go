package exporter

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
)

// TestDemoLinks opens the links of a demo's data, on the provider's own address and on the
// exporter's, which is the one that a container publishes.
func TestDemoLinks(t *testing.T) {
	t.Parallel()
	_, port, err := net.SplitHostPort(simtest.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	for listen, prefix := range map[string]string{"localhost:" + port: "http://localhost:" + port + "/", "127.0.0.1:0": "http://127.0.0.1:"} {
		page, opened := startReady(t, "--demo", "--web.listen-address="+listen).scrape(), map[string]int{}
		for _, name := range []string{"plan", "configuration", "topup"} {
			for series := range page.WithPrefix("server_rental_" + name + "_links_info{") {
				for _, label := range []string{"page", "order"} {
					link := simtest.Label(series, label)
					if strings.HasPrefix(link, prefix) && simtest.Get(t, link).Status == http.StatusOK {
						opened[name]++
					}
				}
			}
		}
		simtest.AssertEqual(t, listen+": links", opened, map[string]int{"plan": 30, "configuration": 6, "topup": 4})
	}
}
