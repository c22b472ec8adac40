package exporter

import (
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
)

// TestDemoLinks opens the links of a demo's data, on the provider's own address and on the
// exporter's, which is the one that a container publishes.
func TestDemoLinks(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", ":0") // free at all addresses, as others listen at some
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	_ = l.Close()
	for _, c := range []struct{ listen, prefix string }{{":" + port, "http://localhost:" + port + "/"}, {"127.0.0.1:0", "http://127.0.0.1:"}} { // the free port first, before others take it
		p := startReady(t, "--demo", "--web.listen-address="+c.listen)
		opened := map[string]int{}
		for _, name := range []string{"plan", "configuration", "topup"} {
			for series := range p.scrape().WithPrefix("server_rental_" + name + "_links_info{") {
				for _, label := range []string{"page", "order"} {
					link := simtest.Label(series, label)
					if link == "" {
						continue
					}
					if got := simtest.Get(t, link); got.Status != http.StatusOK || !strings.HasPrefix(link, c.prefix) {
						t.Errorf("%s: %s: status %d", c.listen, link, got.Status)
					}
					opened[name]++
				}
			}
		}
		simtest.AssertEqual(t, c.listen+": links", opened, map[string]int{"plan": 30, "configuration": 6, "topup": 4})
	}
}
