package campaign_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/simulator"
)

// number is a setting of the campaign.
func number(t testing.TB, name string, usual uint64) uint64 {
	t.Helper()
	given := os.Getenv(name)
	if given == "" {
		return usual
	}
	n, err := strconv.ParseUint(given, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestFaults lets the exporter run through random schedules of faults, reloads,
// token changes and a world that moves, and checks all the while that what it
// shows is right or absent, that counters never fall, that budgets hold, and at
// the end that everything is right again and nothing is left over.
//
// The schedules are the same each time; CAMPAIGN_SEED and CAMPAIGN_RUNS take others.
// One that failed is repeated with its seed: CAMPAIGN_SEED=… CAMPAIGN_RUNS=1.
// Goroutines are not scheduled the same way twice, so that it may take a few.
func TestFaults(t *testing.T) {
	runs := uint64(200)
	if testing.Short() {
		runs = 20
	}
	runs = number(t, "CAMPAIGN_RUNS", runs)
	first := number(t, "CAMPAIGN_SEED", 1)
	t.Logf("%d schedules from seed %d on", runs, first)
	var mu sync.Mutex
	total := map[string]int{}
	work := make(chan uint64)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := range work {
				t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						n := schedule(t, rand.New(rand.NewPCG(seed, 0)))
						mu.Lock()
						defer mu.Unlock()
						for what, times := range n {
							total[what] += times
						}
					})
				})
			}
		})
	}
	for i := range runs {
		work <- first + i
	}
	close(work)
	workers.Wait()
	t.Log(total)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("heap after all: %d MiB", m.HeapAlloc>>20)
	if m.HeapAlloc > 64<<20 {
		t.Errorf("heap: got %d MiB after all schedules, want at most 64", m.HeapAlloc>>20)
	}
}

func schedule(t *testing.T, rng *rand.Rand) map[string]int {
	s := newStage(t, rng)
	defer s.end()
	tr := &troubles{stage: s, rng: rng, n: map[string]int{}}
	for range 12 + rng.IntN(28) {
		gap := time.Duration(rng.ExpFloat64() * float64(15*time.Second))
		if rng.IntN(12) == 0 {
			gap = time.Duration(rng.Int64N(int64(12 * time.Minute))) // data gets too old
		}
		time.Sleep(gap)
		if rng.IntN(3) == 0 {
			s.hurried()
		} else {
			synctest.Wait()
			s.check(rng)
			tr.n["check"]++
		}
		tr.next()
		if t.Failed() {
			break
		}
	}
	if !t.Failed() {
		s.recover(tr)
	}
	s.end()
	time.Sleep(time.Minute) // connections that are still coming up give up
	synctest.Wait()
	if n := s.net.OpenConns(); n > 0 {
		t.Errorf("%d connections are left", n)
	}
	s.budgets(tr)
	s.secrets("the log", s.log.String())
	return tr.n
}

// forms are all ways in which a scraper may ask.
func forms() (accepts, codings []string) {
	return []string{asText, asOpen, asProto}, []string{"identity", "gzip", "zstd"}
}

// hurried scrapes while other things go on at the same time.
func (s *stage) hurried() {
	var group sync.WaitGroup
	for _, accept := range []string{asProto, asText} {
		group.Go(func() { scrape(s.t, s.pages, accept, s.coding) })
	}
	group.Wait()
}

// check looks at everything the exporter shows, at a moment at which nothing moves.
func (s *stage) check(rng *rand.Rand) {
	s.t.Helper()
	accepts, codings := forms()
	page := scrape(s.t, s.pages, asProto, s.coding)
	s.judge(page)
	if rng.IntN(8) == 0 { // all formats say the same
		want := s.data(page)
		for _, accept := range accepts {
			if diff := difference(s.data(scrape(s.t, s.pages, accept, codings[rng.IntN(3)])), want); diff != "" {
				s.t.Errorf("%s differs from protobuf:\n%s", accept, diff)
			}
		}
	}
	s.secrets("/", s.get("/").Body.String())
	s.discovery()
}

func (s *stage) get(path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// data is what a page shows of the provider.
func (s *stage) data(page values) values {
	found := values{}
	for name, v := range page {
		if s.families[familyOf(name)] != "" {
			found[name] = v
		}
	}
	return found
}

// derived are the families that no single state of the provider gives.
func derived(family string) bool {
	switch family {
	case "server_rental_plan_restocks_total", "server_rental_plan_selloffs_total", "server_rental_plan_last_in_stock_timestamp_seconds",
		"server_rental_account_funded_until_timestamp_seconds":
		return true
	}
	return false
}

// shown are the samples of a page by collector and account, without the derived ones.
func (s *stage) shown(page values) map[string]values {
	groups := map[string]values{}
	for name, v := range page {
		family := familyOf(name)
		owner := s.families[family]
		if owner == "" || derived(family) {
			continue
		}
		key := owner + " " + label(name, "account")
		if groups[key] == nil {
			groups[key] = values{}
		}
		groups[key][name] = v
	}
	return groups
}

// judge compares a page with what the provider had.
func (s *stage) judge(page values) {
	s.t.Helper()
	s.cmu.Lock()
	defer s.cmu.Unlock()
	groups, now := s.shown(page), time.Now()
	for key := range groups {
		name, account, _ := strings.Cut(key, " ")
		if _, on := s.config.collectors[name]; !on || account != "" && !slices.Contains(s.config.accounts, account) {
			s.t.Errorf("%s is shown and not configured", key)
		}
	}
	for _, r := range collector.Resources() {
		settings, on := s.config.collectors[r.Name]
		accounts := []string{""}
		if r.Account {
			accounts = s.config.accounts
		}
		if !on {
			continue
		}
		for _, account := range accounts {
			got := groups[r.Name+" "+account]
			s.judgeAge(page, r.Name, account, len(got) > 0, settings.MaxAge)
			if len(got) > 0 {
				s.judgeGroup(r.Name, account, got, now.Add(-settings.MaxAge-timeout-time.Second))
			}
		}
	}
	s.wmu.Lock()
	defer s.wmu.Unlock()
	for name, n := range page.with("server_rental_plan_restocks_total") {
		if most := s.restocks[label(name, "plan")]; n > most {
			s.t.Errorf("%s: got %v, but there were only %v", name, n, most)
		}
	}
	for name, n := range page.with("server_rental_plan_last_in_stock_timestamp_seconds") {
		if n <= 0 || n > float64(now.Unix()) {
			s.t.Errorf("%s: got %v, now is %d", name, n, now.Unix())
		}
	}
}

// judgeAge compares what a collector says of itself with what it shows.
func (s *stage) judgeAge(page values, name, account string, shown bool, maxAge time.Duration) {
	s.t.Helper()
	l := []string{"collector", name, "account", account}
	last, known := page[series("server_rental_exporter_collector_last_success_timestamp_seconds", l...)]
	age := time.Duration((float64(time.Now().UnixMilli())/1000 - last) * float64(time.Second))
	const blur = 10 * time.Millisecond
	switch {
	case shown && !known:
		s.t.Errorf("%s %s: data without a success", name, account)
	case shown && age > maxAge+blur:
		s.t.Errorf("%s %s: data is shown at the age of %v, more than %v", name, account, age, maxAge)
	case !shown && known && age < maxAge-blur && age < time.Since(s.reloaded): // what got too old stays away when a reload allows it
		s.t.Errorf("%s %s: no data at the age of %v, less than %v", name, account, age, maxAge)
	}
}

// judgeGroup finds the state of the provider that is shown.
func (s *stage) judgeGroup(name, account string, got values, then time.Time) {
	s.t.Helper()
	versions := s.since(name, account, then)
	for _, v := range slices.Backward(versions) {
		if equal(v.values, got) {
			s.judgeCounters(name, account, v.customer, got)
			return
		}
	}
	if name == "topups" && onePast(versions, got) {
		return // asked for in several requests, between which the provider moved on
	}
	var differences []string
	for _, v := range versions {
		differences = append(differences, fmt.Sprintf("as from %s on:\n%s", v.from.Format(time.TimeOnly), difference(got, v.values)))
	}
	s.t.Errorf("%s %s: shown at %s and never so since %s:\n%s", name, account, time.Now().Format(time.TimeOnly), then.Format(time.TimeOnly),
		strings.Join(differences, "\n"))
}

// onePast tells whether each sample by itself was right at some time.
func onePast(versions []version, got values) bool {
	for name, v := range got {
		if !slices.ContainsFunc(versions, func(past version) bool {
			was, known := past.values[name]
			return known && was == v
		}) {
			return false
		}
	}
	return true
}

// judgeCounters checks that the counters of a customer's transactions never fall.
func (s *stage) judgeCounters(name, account string, customer int, got values) {
	s.t.Helper()
	if name != "transactions" {
		return
	}
	key := fmt.Sprint(account, customer)
	for counter, was := range s.counted[key] {
		if now, known := got[counter]; !known || now < was {
			s.t.Errorf("%s: fell from %v to %v", counter, was, now)
		}
	}
	s.counted[key] = got
}

// discovery checks that a list of targets is whole and right, or refused.
func (s *stage) discovery() {
	s.t.Helper()
	s.cmu.Lock()
	accounts, settings := s.config.accounts, s.config.collectors["servers"]
	s.cmu.Unlock()
	for _, account := range labels() {
		w := s.get("/sd/servers?account=" + account)
		if !slices.Contains(accounts, account) {
			if w.Code != http.StatusNotFound {
				s.t.Errorf("/sd/servers of %s, which is not configured: got status %d, want 404", account, w.Code)
			}
			continue
		}
		if w.Code == http.StatusServiceUnavailable {
			continue
		}
		var groups []struct {
			Targets []string
			Labels  map[string]string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &groups); err != nil || w.Code != http.StatusOK {
			s.t.Errorf("/sd/servers of %s: status %d, error %v", account, w.Code, err)
			continue
		}
		got := values{}
		for _, g := range groups {
			got[g.Labels["__meta_server_rental_server"]+" "+g.Targets[0]] = 1
		}
		versions := s.since("addresses", account, time.Now().Add(-settings.MaxAge-timeout-time.Second))
		if !slices.ContainsFunc(versions, func(v version) bool { return equal(v.values, got) }) {
			s.t.Errorf("/sd/servers of %s was never so: %v", account, got)
		}
	}
}

// recover ends all trouble and waits until everything is right, which each
// collector has to be within two intervals, and then to stay.
func (s *stage) recover(tr *troubles) {
	s.t.Helper()
	tr.calmDown()
	s.amu.Lock()
	s.ambushes = nil
	s.amu.Unlock()
	synctest.Wait() // what happens during a request is over
	s.net.SetDialDelay(func() time.Duration { return 0 })
	s.change(func(w *simulator.World) {
		for label, c := range s.tokens {
			c.fault = nil
			tr.mint(w, label)
		}
	})
	s.reload(func(c *setting) {
		api := c.api
		*c = calm(tr.rng)
		c.api = api
	})
	waiting := map[string]time.Time{} // until when a scope asks nothing, by account
	right := map[string]bool{}
	ended := time.Now()
	for {
		synctest.Wait()
		page := scrape(s.t, s.pages, asProto, s.coding)
		s.judge(page)
		for name, until := range page.with("server_rental_exporter_api_backoff_until_timestamp_seconds") {
			at := time.UnixMilli(int64(until * 1000))
			if account := label(name, "account"); at.After(waiting[account]) {
				waiting[account] = at
			}
		}
		groups, late, next := s.shown(page), false, time.Now().Add(time.Hour)
		for _, r := range collector.Resources() {
			accounts := []string{""}
			if r.Account {
				accounts = labels()
			}
			for _, account := range accounts {
				from := ended
				if waiting[account].After(from) {
					from = waiting[account]
				}
				key, interval := r.Name+" "+account, s.config.collectors[r.Name].Interval
				want := s.since(r.Name, account, time.Now())
				diff := difference(groups[key], want[len(want)-1].values)
				own := []string{"collector", r.Name, "account", account}
				success := page[series("server_rental_exporter_collector_success", own...)]
				last := page[series("server_rental_exporter_collector_last_success_timestamp_seconds", own...)]
				switch {
				// What was asked before the faults ended says nothing yet.
				case diff == "" && success == 1 && last > float64(from.UnixMilli())/1000:
					right[key] = true
				case right[key] && time.Now().After(from.Add(timeout)):
					s.t.Errorf("%s was right and is not any more, success %v:\n%s", key, success, diff)
				case time.Now().After(from.Add(2*interval + timeout)):
					s.t.Errorf("%s is not right %v after the faults ended (%v after the provider's pause), at an interval of %v; success %v:\n%s\n%s",
						key, time.Since(ended), time.Since(from), interval, success, diff, tail(s.log.String()))
				default:
					late = true
					if next.After(from) {
						next = from
					}
				}
			}
		}
		if s.t.Failed() || !late {
			break
		}
		time.Sleep(max(10*time.Second, time.Until(next))) // while all are paused there is nothing to see
	}
	if got := s.get("/-/ready").Code; got != http.StatusOK && !s.t.Failed() {
		s.t.Errorf("/-/ready: got status %d, want 200", got)
	}
}

func tail(log string) string { return log[max(0, len(log)-1500):] }

// budgets checks what the provider saw.
func (s *stage) budgets(tr *troubles) {
	s.t.Helper()
	for token, times := range s.arrived {
		tr.n["request"] += len(times)
		limit := s.allowed.Account
		if token == "" {
			limit = s.allowed.Public
		}
		if most := simulator.Peak(times); most > limit {
			s.t.Errorf("%q: %d requests within 60 s, more than %d", token, most, limit)
		}
	}
}

// secrets fails the test where a text tells what nobody should read.
func (s *stage) secrets(where, text string) {
	s.t.Helper()
	for _, secret := range []string{"secret-", "@customer.example", "bitcoin:", "ssh-ed25519 AAAA"} {
		if i := strings.Index(text, secret); i >= 0 {
			s.t.Errorf("%s tells %q: %.200q", where, secret, text[max(0, i-80):])
		}
	}
}
