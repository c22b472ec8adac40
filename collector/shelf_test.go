package collector

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"server_rental_exporter/internal/exposition"
	"server_rental_exporter/internal/simulator"
)

// shelved is what the blocks show, as text.
func (r *rig) shelved() string {
	r.t.Helper()
	h := &exposition.Handler{
		Blocks: r.set.Blocks,
		Own:    prometheus.NewRegistry(),
		Failed: func(cause string, err error) { r.t.Errorf("%s: %v", cause, err) },
	}
	w := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	req.Header.Set("Accept", string(expfmt.FmtText))
	h.ServeHTTP(w, req)
	return w.Body.String()
}

// sorted is an exposition with its lines in order, whatever order its families had.
func sorted(exposition string) string {
	lines := slices.Collect(strings.Lines(exposition))
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// TestBlocks shows the same as the registry, with all accounts, at every time.
func TestBlocks(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.sim.Change(func(w *simulator.World) { w.Accounts[otherToken] = simulator.ExampleAccount("other", time.Now()) })
		c := every(time.Minute, 10*time.Minute)
		c.Accounts = append(c.Accounts, accountOf("other", otherToken))
		check := func(what string, blocks int) {
			t.Helper()
			r.settle()
			same(t, what, sorted(r.shelved()), sorted(r.expose(func(name string) bool { return !strings.Contains(name, "_exporter_api_") })))
			same(t, what+": blocks", len(r.set.Blocks()), blocks)
		}
		check("before the start", 0)
		r.run(c)
		check("after the first refresh", 11)
		time.Sleep(2 * time.Minute)
		check("after more", 11)
		heal := r.sim.Inject(simulator.Fault{Path: "/plans", Kind: simulator.Drop})
		time.Sleep(5 * time.Minute)
		check("while plans are old", 11)
		time.Sleep(7 * time.Minute)
		check("when plans are too old", 10)
		heal()
		time.Sleep(2 * time.Minute)
		check("with plans again", 11)
		c.Accounts = c.Accounts[:1]
		r.run(c)
		check("with one account", 11)
		delete(c.Collectors, "servers")
		r.run(c)
		check("without servers", 10)
		c.API = "another"
		r.run(c)
		check("with another API", 10)
	})
}

// TestBlocksStay the same until one of their snapshots is replaced.
func TestBlocksStay(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		c := every(time.Hour, 2*time.Hour, "plans", "servers")
		c.Collectors["plans"] = every(time.Minute, 2*time.Hour).Collectors["plans"]
		r.run(c)
		r.settle()
		select {
		case <-r.set.Renewed():
		default:
			t.Error("the first answers were not told")
		}
		before := r.set.Blocks()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		within := r.set.Blocks()
		same(t, "same blocks", fmt.Sprint(before[0] == within[0], before[1] == within[1]), "true true")
		select {
		case <-r.set.Renewed():
			t.Error("told of a change that was none")
		default:
		}
		time.Sleep(40 * time.Second)
		synctest.Wait()
		select {
		case <-r.set.Renewed():
		default:
			t.Error("a new answer was not told")
		}
		after := r.set.Blocks()
		same(t, "same blocks after a refresh of plans", fmt.Sprint(before[0] == after[0], before[1] == after[1]), "false true")
	})
}
