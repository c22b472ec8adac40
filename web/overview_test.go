package web

import (
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-kit/log"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/runner"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// scene is a provider and accounts, as the overview shows them after one fetch.
type scene struct {
	names   []string // names of the accounts with the tokens of lab and main; by default lab and main
	change  func(*simulator.World)
	faults  []simtest.Fault
	watches []collector.Watch
}

// sceneTime is when all scenes take place.
var sceneTime = time.Date(2026, time.March, 30, 9, 0, 0, 0, time.UTC)

// page returns the landing page of a scene, 24 seconds after the fetch.
func (sc scene) page(t *testing.T) (body string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(sceneTime))
		api := simtest.StartInMemory(t, simulator.Options{})
		if sc.change != nil {
			api.Change(sc.change)
		}
		for _, f := range sc.faults {
			api.Inject(f)
		}
		set := runner.New(log.NewNopLogger(), rentalapi.New("test/1", rentalapi.Settings{
			BaseURL: api.URL, Transport: &http.Transport{DialContext: api.Dial, DisableKeepAlives: true}, Timeout: time.Second, Limits: rentalapi.Limits{Public: math.MaxInt, Account: math.MaxInt},
		}, nil))
		config := runner.Spec{Collectors: map[string]collector.Timing{}, Watches: sc.watches}
		for _, r := range collector.Resources() {
			config.Collectors[r.Name] = r.Timing
		}
		for i, token := range []string{simtest.LabToken, simtest.MainToken} {
			name := append(sc.names, "lab", "main")[i]
			config.Accounts = append(config.Accounts, runner.AccountSpec{Name: name, Token: func() (string, error) { return token, nil }})
		}
		_ = set.Once(t.Context(), config) // the page shows its errors
		set.Publisher.Publish()
		time.Sleep(24 * time.Second)
		o := allEnabled()
		o.Published = set.Publisher.Samples
		h := Handler(set, o)
		a, header := do(t, h, "GET", "/")
		_, asked := do(t, h, "GET", "/?refresh=60")
		simtest.AssertEqual(t, "status, and Refresh by default and if asked", []any{a.Status, header.Get("Refresh"), asked.Get("Refresh")}, []any{200, "", "60"})
		body = a.Body
	})
	simtest.AssertNoSecrets(t, "page", body)
	return body
}

// example is the page of which pictures are made: the demo's plans and accounts, with one kind
// of each trouble.
func example() scene {
	gpu, memory, cheap := true, 64.0, 100.0
	return scene{
		faults: []simtest.Fault{{Path: "/os", Body: []byte("\x00\xff this is not JSON {{{")}, {Path: "/ssh-keys", Kind: simtest.Drop}},
		watches: []collector.Watch{
			{Name: "cheap-in-europe", Regions: []string{"Europe"}, MinMemoryGiB: &memory, MaxUSDPerMonth: &cheap},
			{Name: "gpu", GPU: &gpu},
		},
		change: func(w *simulator.World) {
			w.Plans = slices.Concat(w.Plans[3:7], w.Plans[11:])
			simulator.Put(w.Plans[len(w.Plans)-1], "ryzen-9-9950x", "availability", "alternative") // is sold out, too
			simulator.Put(w.Status, "degraded", "locations", "fra", "components", "network")
			w.Status["ongoing"], w.Status["scheduled"] = 1, 1
			simulator.Put(w.Accounts[simtest.LabToken].Account, -12.5, "balance", "usd")
			simulator.Put(w.Accounts[simtest.MainToken].Servers[1], nil, "price")
		},
	}
}

const evil = "\"><script>alert(1)</script><img src=x onerror=alert(1)>'`{{.}}\u202e&amp;\x07\n"

// taint replaces texts of the i-th item of a list, except states and times.
func taint(item simulator.Object, i int) {
	for key, value := range item {
		switch value := value.(type) {
		case simulator.Object:
			taint(value, i)
		case []any:
			item[key] = []any{evil, fmt.Sprint(i), strings.Repeat("W", 2000)}
		case string:
			if key != "status" && !strings.HasSuffix(key, "_at") {
				item[key] = fmt.Sprint(i, evil)
			}
		}
	}
}

// hostile is a provider whose texts try to become part of the page.
func hostile() scene {
	cheap := 100.0
	return scene{
		names: []string{"a" + evil, "b" + evil},
		change: func(w *simulator.World) {
			for i, o := range slices.Concat(w.Plans, w.Locations) {
				taint(o, i)
				simulator.Put(o, []string{"javascript:alert(1)", "https://rental.example/" + evil, "https://rental.example@evil.example/", "https://rental.example/?a='&b=%3C"}[i%4], "links", "order")
			}
			w.Status["overall"] = evil
			w.Status["locations"] = simulator.Object{evil: simulator.Object{"components": simulator.Object{evil: evil, "x": 1}}}
			for _, a := range w.Accounts {
				for i, o := range slices.Concat(a.Servers, a.Configurations, a.Topups) {
					taint(o, i)
				}
				a.Servers[0]["status"], a.Servers[1]["status"], a.Servers[2]["price"] = evil, "suspended", evil
			}
		},
		watches: []collector.Watch{{Name: evil, MaxUSDPerMonth: &cheap}},
	}
}

// TestOverview compares the page with a golden file, of which pictures are made.
func TestOverview(t *testing.T) {
	simtest.Golden(t, filepath.Join("testdata", "overview.html"), example().page(t))
}

var tag = regexp.MustCompile(`<[^<>]*>`)

// TestOverviewEscapes asserts that no text of the provider becomes markup: the page has no element
// and no attribute that it does not have with harmless texts.
func TestOverviewEscapes(t *testing.T) {
	known := map[string]bool{`<p class="more">`: true, `<span class="warn">`: true, `<span class="wait">`: true, `<a href="https://rental.example/?a=%27&amp;b=%3C" rel="noopener noreferrer">`: true}
	for _, element := range tag.FindAllString(example().page(t), -1) {
		known[element] = true
	}
	body := hostile().page(t)
	for _, element := range tag.FindAllString(body, -1) {
		if !known[element] {
			t.Errorf("the provider's text has become %s", element)
		}
	}
	for _, text := range []string{"\u202e", "\x07", strings.Repeat("W", maxText+1)} {
		if strings.Contains(body, text) {
			t.Errorf("the page contains %q", text)
		}
	}
	if n := strings.Count(body, "&lt;script&gt;alert(1)&lt;/script&gt;"); n < 50 {
		t.Errorf("got %d escaped texts: the test does not reach all tables", n)
	}
}
