package collector

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/simulator"
)

// TestSnapshotsAge has everything fail after a good start: the data stay until
// max_age has passed since they were fetched, then vanish, and return.
func TestSnapshotsAge(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		const maxAge = 10 * time.Minute
		r.run(every(time.Minute, maxAge))
		time.Sleep(30 * time.Second)
		synctest.Wait()
		want := r.data()
		fetched := r.samples(collectorLast.Name)
		heal := r.sim.Inject(simulator.Fault{Kind: simulator.Drop})

		time.Sleep(maxAge - 30*time.Second) // exactly max_age after the first fetch
		synctest.Wait()
		same(t, "data within max_age", r.data(), want)
		same(t, "collector_success", r.samples(collectorSuccess.Name), successes(names()...))
		same(t, "last success", r.samples(collectorLast.Name), fetched)

		time.Sleep(100 * time.Millisecond) // accounts begin a little later
		synctest.Wait()
		same(t, "data after max_age", r.data(), "")
		same(t, "collector_success", r.samples(collectorSuccess.Name), successes(names()...))
		same(t, "last success", r.samples(collectorLast.Name), fetched)
		same(t, "invalid items", r.samples(collectorInvalid.Name), invalids("", 0))

		heal()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		same(t, "data after recovery", r.data(), want)
		same(t, "collector_success", r.samples(collectorSuccess.Name), successes())
		same(t, "intervals", len(r.samples(collectorInterval.Name)), len(names()))
	})
}

func names() []string {
	var all []string
	for _, r := range Resources() {
		all = append(all, r.Name)
	}
	return all
}

// TestScrapeWaitsForNothing scrapes while every request hangs. In a bubble any
// wait would let time pass.
func TestScrapeWaitsForNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run(every(time.Minute, 10*time.Minute))
		r.settle()
		want := r.data()
		r.sim.Inject(simulator.Fault{Kind: simulator.Hang})
		asked, busy := 0, 0
		for range 120 {
			time.Sleep(time.Second)
			asked = len(r.provider.requests(""))
			before := time.Now()
			same(t, "data", r.data(), want)
			if waited := time.Since(before); waited > 0 {
				t.Fatalf("scrape waited %v", waited)
			}
			same(t, "requests made by a scrape", len(r.provider.requests(""))-asked, 0)
			if slices.ContainsFunc(r.set.Status(), func(s Status) bool { return s.Next.IsZero() }) {
				busy++
			}
		}
		if busy == 0 {
			t.Error("no scrape came while requests were hanging")
		}
	})
}

// TestReady is ready when the last collector has been tried.
func TestReady(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.sim.Inject(simulator.Fault{Path: "/servers", Kind: simulator.Delay, Delay: 4 * time.Second, Times: 1})
		r.sim.Inject(simulator.Fault{Path: "/plans", Kind: simulator.Respond, Status: 500})
		same(t, "before Apply", r.set.Ready(), true) // nothing is enabled yet
		r.fresh()
		c := every(time.Minute, 10*time.Minute)
		r.run(c)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		same(t, "while servers are under way", r.set.Ready(), false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		same(t, "tried, though plans failed", r.set.Ready(), true)
		c.Accounts = append(c.Accounts, accountOf("other", otherToken))
		r.run(c)
		same(t, "with a new account", r.set.Ready(), true)
	})
}

// TestApply changes the configuration of a running set, 30 seconds after its first
// refresh and 30 seconds before its second.
func TestApply(t *testing.T) {
	public := func(c Config, f func(*refresh.Settings)) Config {
		next := c
		next.Collectors = map[string]refresh.Settings{}
		for name, s := range c.Collectors {
			f(&s)
			next.Collectors[name] = s
		}
		return next
	}
	other := accountOf("other", otherToken)
	for _, c := range []struct {
		name   string
		change func(Config) Config
		asked  map[string]int // within ten seconds
		data   string         // "same", "gone", or what has changed about the account other
	}{
		{"nothing", func(c Config) Config { return c }, map[string]int{}, "same"},
		{"an account more", func(c Config) Config {
			c.Accounts = append(slices.Clone(c.Accounts), accountOf("third", "token-of-third"))
			return c
		}, map[string]int{"/account": 1, "/topups": 1, "/transactions": 1, "/configurations": 1, "/ssh-keys": 1, "/servers": 1}, "third too"},
		{"an account less", func(c Config) Config { c.Accounts = c.Accounts[:1]; return c }, map[string]int{}, "without other"},
		{"accounts in another order", func(c Config) Config {
			c.Accounts = []Account{other, c.Accounts[0]}
			return c
		}, map[string]int{}, "same"},
		{"another token source", func(c Config) Config {
			changed := other
			changed.Identity = "another file"
			c.Accounts = []Account{c.Accounts[0], changed}
			return c
		}, map[string]int{"/account": 1, "/topups": 1, "/transactions": 1, "/configurations": 1, "/ssh-keys": 1, "/servers": 1}, "same"},
		{"the same token from a new function", func(c Config) Config {
			c.Accounts = []Account{c.Accounts[0], accountOf("other", otherToken)}
			return c
		}, map[string]int{}, "same"},
		{"a collector less", func(c Config) Config {
			c = public(c, func(*refresh.Settings) {})
			delete(c.Collectors, "plans")
			return c
		}, map[string]int{}, "without plans"},
		{"another interval", func(c Config) Config {
			return public(c, func(s *refresh.Settings) { s.Interval = time.Hour })
		}, map[string]int{}, "same"},
		{"a shorter interval", func(c Config) Config {
			return public(c, func(s *refresh.Settings) { s.Interval = 5 * time.Second })
		}, map[string]int{
			"/plans": 2, "/locations": 2, "/os": 2, "/status": 2,
			"/account": 4, "/topups": 4, "/transactions": 4, "/configurations": 4, "/ssh-keys": 4, "/servers": 4,
		}, "same"},
		{"a shorter max_age", func(c Config) Config {
			return public(c, func(s *refresh.Settings) { s.MaxAge = 20 * time.Second })
		}, map[string]int{}, "gone"},
		{"another API", func(c Config) Config { c.API = "another"; return c }, map[string]int{
			"/plans": 1, "/locations": 1, "/os": 1, "/status": 1,
			"/account": 2, "/topups": 2, "/transactions": 2, "/configurations": 2, "/ssh-keys": 2, "/servers": 2,
		}, "same"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.sim.Change(func(w *simulator.World) {
					w.Accounts[otherToken] = simulator.ExampleAccount("other", time.Now())
					w.Accounts["token-of-third"] = simulator.ExampleAccount("third", time.Now())
				})
				before := every(time.Minute, 10*time.Minute)
				before.Accounts = append(before.Accounts, other)
				r.run(before)
				time.Sleep(30 * time.Second)
				r.settle()
				was, asked := r.data(), len(r.provider.requests(""))

				r.run(c.change(before))
				at := r.data() // at once: what was there stays
				time.Sleep(10*time.Second + 500*time.Millisecond)
				synctest.Wait()
				same(t, "requests", r.provider.paths(asked), c.asked)
				is := r.data()
				switch c.data {
				case "same":
					same(t, "data", is, was)
				case "gone":
					same(t, "data", is, "")
				case "third too":
					same(t, "data at once", lacking(at, `account="third"`), was)
					same(t, "data of the others", lacking(is, `account="third"`), was)
					same(t, "series of the new one", strings.Count(is, `account="third"`), strings.Count(is, `account="other"`))
				case "without other":
					same(t, "data", at, lacking(was, `account="other"`))
					same(t, "data later", is, at)
					same(t, "states", strings.Count(r.expose(func(string) bool { return true }), `account="other"`), 0)
				case "without plans":
					gone := []string{}
					for _, d := range plans().Metrics {
						gone = append(gone, d.Name)
					}
					same(t, "data", is, without(was, gone...))
					same(t, "states", slices.Contains(r.samples(collectorSuccess.Name), `{account="",collector="plans"} 1`), false)
				}
				same(t, "log", r.log.take(t), "[]")
			})
		})
	}
}

// TestApplyEnds counts what is asked for in eight minutes after a change: once a
// minute what is still wanted, and nothing else.
func TestApplyEnds(t *testing.T) {
	before := func() Config {
		c := every(time.Minute, 10*time.Minute, "plans", "status", "account", "servers")
		c.Accounts = append(c.Accounts, accountOf("other", otherToken))
		return c
	}
	all := []string{"/account main", "/account other", "/plans ", "/servers main", "/servers other", "/status "}
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"nothing", func(*Config) {}, all},
		{"an account less", func(c *Config) { c.Accounts = c.Accounts[:1] }, []string{"/account main", "/plans ", "/servers main", "/status "}},
		{"no accounts", func(c *Config) { c.Accounts = nil }, []string{"/plans ", "/status "}},
		{"collectors less", func(c *Config) { delete(c.Collectors, "plans"); delete(c.Collectors, "servers") }, []string{"/account main", "/account other", "/status "}},
		{"another token source", func(c *Config) { c.Accounts[1].Identity = "another" }, all},
		{"another API", func(c *Config) { c.API = "another" }, all},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.sim.Change(func(w *simulator.World) { w.Accounts[otherToken] = simulator.ExampleAccount("other", time.Now()) })
				r.run(before())
				time.Sleep(30 * time.Second)
				next := before()
				c.change(&next)
				r.run(next)
				time.Sleep(2 * time.Minute)
				asked := len(r.provider.requests(""))
				time.Sleep(8 * time.Minute)
				synctest.Wait()
				counts := map[string]int{}
				for _, a := range r.provider.requests("")[asked:] {
					counts[a.path+" "+map[string]string{mainToken: "main", otherToken: "other"}[a.token]]++
				}
				want := map[string]int{}
				for _, key := range c.want {
					want[key] = 8
				}
				same(t, "requests", counts, want)
			})
		})
	}
}

// lacking removes the samples that contain a text.
func lacking(exposition, text string) string {
	var b strings.Builder
	for line := range strings.Lines(exposition) {
		if !strings.Contains(line, text) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestApplyKeepsTheSchedule refreshes at the old time where a longer interval came
// in between, and at the new interval from then on.
func TestApplyKeepsTheSchedule(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run(every(time.Minute, time.Hour, "plans"))
		time.Sleep(30 * time.Second)
		due := r.set.Status()[0].Next
		r.run(every(10*time.Minute, time.Hour, "plans"))
		synctest.Wait()
		same(t, "next", r.set.Status()[0].Next, due)
		time.Sleep(time.Hour)
		synctest.Wait()
		var at []time.Duration
		for _, a := range r.provider.requests("/plans")[1:] {
			at = append(at, a.at.Sub(due))
		}
		same(t, "requests after the second was due", at, []time.Duration{0, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute, 40 * time.Minute, 50 * time.Minute})
	})
}

// TestAccountsBegin a little apart.
func TestAccountsBegin(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		c := every(time.Minute, time.Hour, "servers", "plans")
		for i := range 3 {
			c.Accounts = append(c.Accounts, accountOf(fmt.Sprintf("other-%d", i), mainToken))
		}
		began := time.Now()
		r.run(c)
		time.Sleep(time.Second)
		synctest.Wait()
		var at []time.Duration
		for _, a := range r.provider.requests("") {
			at = append(at, a.at.Sub(began))
		}
		same(t, "first requests", at, []time.Duration{0, accountStagger, 2 * accountStagger, 3 * accountStagger, 4 * accountStagger})
	})
}

// TestTokenFileChanges has the token of a failing account replaced in its file.
func TestTokenFileChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		file := filepath.Join(t.TempDir(), "token")
		write := func(token string) {
			t.Helper()
			if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c := every(5*time.Minute, time.Hour)
		c.Accounts = []Account{{Name: "main", Identity: file, Token: func() (string, error) {
			b, err := os.ReadFile(file)
			return string(b), err
		}}}
		write(otherToken) // unknown to the provider
		r.run(c)
		time.Sleep(3 * time.Minute)
		r.settle()
		same(t, "collector_success", r.samples(collectorSuccess.Name), successes("account", "topups", "transactions", "configurations", "ssh_keys", "servers"))
		var lines []logLine
		for _, res := range Resources() {
			if res.Account {
				lines = append(lines, fails(res, "status 401: invalid_token"))
			}
		}
		sameLog(t, r.log.take(t), lines...)

		asked := len(r.provider.requests(""))
		write(mainToken)
		time.Sleep(tokenPoll + time.Second)
		synctest.Wait()
		same(t, "collector_success within 6 seconds", r.samples(collectorSuccess.Name), successes())
		same(t, "requests", r.provider.paths(asked), map[string]int{"/account": 1, "/topups": 1, "/transactions": 1, "/configurations": 1, "/ssh-keys": 1, "/servers": 1})
		lines = []logLine{{"level=info", `msg="token changed" account=main`}}
		for _, res := range Resources() {
			if res.Account {
				lines = append(lines, logLine{"level=info", named(res), `msg="collector works again"`})
			}
		}
		sameLog(t, r.log.take(t), lines...)

		// A working account asks nothing more when its token changes.
		r.sim.Change(func(w *simulator.World) { w.Accounts[otherToken] = w.Accounts[mainToken] })
		asked = len(r.provider.requests(""))
		write(otherToken)
		time.Sleep(tokenPoll + time.Second)
		synctest.Wait()
		same(t, "requests of a working account", r.provider.paths(asked), map[string]int{})
		sameLog(t, r.log.take(t), logLine{"level=info", `msg="token changed" account=main`})

		// A token that cannot be read is a failing collector with data.
		want := r.data()
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		asked = len(r.provider.requests(""))
		time.Sleep(10 * time.Minute)
		r.settle()
		same(t, "data without a token", r.data(), want)
		same(t, "collector_success without a token", r.samples(collectorSuccess.Name), successes("account", "topups", "transactions", "configurations", "ssh_keys", "servers"))
		for _, a := range r.provider.requests("")[asked:] {
			if a.path == "/account" || a.path == "/servers" {
				t.Errorf("%s was asked without a token", a.path)
			}
		}
	})
}

// TestTwoAccounts has one of two accounts fail: each keeps its own data and state.
func TestTwoAccounts(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.sim.Change(func(w *simulator.World) {
			w.Accounts[otherToken] = simulator.ExampleAccount("other", time.Now())
		})
		c := every(time.Minute, 10*time.Minute)
		c.Accounts = append(c.Accounts, accountOf("other", otherToken))
		want := r.once(c)
		r.fresh()
		r.sim.Inject(simulator.Fault{Token: otherToken, Kind: simulator.Respond, Status: 401})
		r.run(c)
		time.Sleep(3 * time.Minute)
		r.settle()
		same(t, "data", r.data(), dropEmptyFamilies(lacking(want, `account="other"`)))
		same(t, "series of main", strings.Count(want, `account="main"`) > 50, true)
		for _, s := range r.samples(collectorSuccess.Name) {
			ok := strings.HasSuffix(s, " 1")
			if strings.Contains(s, `account="other"`) == ok {
				t.Errorf("collector_success%s", s)
			}
		}
		for _, a := range r.provider.requests("") {
			path := a.path
			switch {
			case slices.Contains([]string{"/plans", "/locations", "/os", "/status"}, path) && a.token != "":
				t.Errorf("%s was asked with a token", path)
			case slices.Contains([]string{"/account", "/servers"}, path) && a.token != mainToken && a.token != otherToken:
				t.Errorf("%s was asked with the token %q", path, a.token)
			}
		}
		same(t, "lines logged", len(r.log.take(t)), 6)
	})
}

// dropEmptyFamilies removes the headers of families that have no sample left.
func dropEmptyFamilies(exposition string) string {
	var out, header []string
	for line := range strings.Lines(exposition) {
		switch {
		case strings.HasPrefix(line, "# HELP"):
			header = []string{line}
		case strings.HasPrefix(line, "# TYPE"):
			header = append(header, line)
		default:
			out = append(append(out, header...), line)
			header = nil
		}
	}
	return strings.Join(out, "")
}

// TestWait ends everything, whatever is under way. The bubble complains of every
// goroutine that is left.
func TestWait(t *testing.T) {
	for _, kind := range []simulator.Kind{simulator.Respond, simulator.Hang, simulator.Trickle, simulator.Endless} {
		t.Run(kind.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.sim.Inject(simulator.Fault{Path: "/servers", Kind: kind})
				ctx, stop := context.WithCancel(t.Context())
				r.set.Apply(ctx, every(time.Minute, 10*time.Minute))
				time.Sleep(5 * time.Second)
				stop()
				before := time.Now()
				r.set.Wait()
				same(t, "waited", time.Since(before), time.Duration(0))
				if kind == simulator.Hang || kind == simulator.Trickle {
					same(t, "log of what was cut off", r.log.take(t), "[]")
				}
			})
		})
	}
}

// TestOnce fetches everything a single time.
func TestOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.sim.Change(func(w *simulator.World) { w.Accounts[mainToken].Transactions = simulator.Transactions(250, time.Now()) })
		r.sim.Inject(simulator.Fault{Path: "/plans", Kind: simulator.Respond, Status: 500})
		r.sim.Inject(simulator.Fault{Path: "/servers", Kind: simulator.Respond, Status: 401})
		err := r.set.Once(t.Context(), every(time.Minute, 10*time.Minute))
		if err == nil {
			t.Fatal("Once: no error")
		}
		same(t, "errors", strings.Split(err.Error(), "\n"), []string{
			"plans: /plans: status 500",
			"servers of account main: /servers: status 401: invalid_token",
		})
		same(t, "collector_success", r.samples(collectorSuccess.Name), successes("plans", "servers"))
		same(t, "requests", r.provider.paths(0), map[string]int{
			"/plans": 1, "/locations": 1, "/os": 1, "/status": 1, "/account": 1, "/topups": 1, "/transactions": 4, "/configurations": 1, "/ssh-keys": 1, "/servers": 1,
		})
		same(t, "entries", r.entries(), 250)
		time.Sleep(time.Hour)
		same(t, "requests an hour later", len(r.provider.requests("")), 13)
	})
	inBubble2(t, "cut off", func(t *testing.T, r *rig) {
		r.sim.Inject(simulator.Fault{Kind: simulator.Hang})
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := r.set.Once(ctx, every(time.Minute, time.Hour)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Once: got %v, want %v", err, context.DeadlineExceeded)
		}
	})
}

func inBubble2(t *testing.T, name string, f func(t *testing.T, r *rig)) {
	t.Run(name, func(t *testing.T) { inBubble(t, f) })
}

// TestJournal logs each cause once until the collector works again.
func TestJournal(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.run(every(time.Minute, time.Hour, "plans"))
		phase := func(what string, f *simulator.Fault, want ...logLine) {
			t.Helper()
			heal := func() {}
			if f != nil {
				heal = r.sim.Inject(*f)
			}
			time.Sleep(5 * time.Minute)
			r.settle()
			heal()
			t.Log(what)
			sameLog(t, r.log.take(t), want...)
		}
		broken := &simulator.Fault{Kind: simulator.Respond, Status: 500}
		hung := &simulator.Fault{Kind: simulator.Hang}
		phase("working", nil)
		phase("one cause", broken, logLine{"level=error", `collector=plans msg="collector fails"`, "status 500"})
		phase("another cause", hung, logLine{"level=error", `collector=plans msg="collector fails"`, "deadline exceeded"})
		phase("the first cause again", broken)
		phase("both again", hung)
		phase("recovery", nil, logLine{"level=info", `collector=plans msg="collector works again"`})
		phase("the first cause after recovery", broken, logLine{"level=error", `msg="collector fails"`, "status 500"})
		phase("recovery again", nil, logLine{"level=info", `msg="collector works again"`})
		phase("pause", &simulator.Fault{Kind: simulator.Respond, Status: 503, Header: map[string][]string{"Retry-After": {"120"}}},
			logLine{"level=error", "status 503: unavailable"})
	})
}

// TestPause has a provider that wants to be left alone for 90 seconds.
func TestPause(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.sim.Inject(simulator.Fault{Path: "/account", Kind: simulator.Respond, Status: 429, Header: map[string][]string{"Retry-After": {"90"}}, Times: 1})
		r.run(every(time.Minute, time.Hour, "account", "servers", "plans"))
		time.Sleep(80 * time.Second)
		synctest.Wait()
		paths := r.provider.paths(0)
		same(t, "public requests", paths["/plans"], 2)
		same(t, "requests for the account", paths["/account"], 1)
		if paths["/servers"] > 1 {
			t.Errorf("servers were asked for %d times within the pause", paths["/servers"])
		}
		until := r.samples("server_rental_exporter_api_backoff_until_timestamp_seconds")
		same(t, "backoff until", until, fmt.Sprintf(`[{account="main"} %s]`, strconv.FormatFloat(float64(start.Add(accountStagger+90*time.Second).UnixMilli())/1000, 'g', -1, 64)))
		sameLog(t, r.log.take(t), fails(account(), "status 429: rate_limited"), fails(servers(), "not asked: status 429"))

		time.Sleep(30 * time.Second)
		r.settle()
		same(t, "collector_success", len(slices.DeleteFunc(r.samples(collectorSuccess.Name), func(s string) bool { return strings.HasSuffix(s, " 0") })), 3)
		same(t, "backoff until", r.samples("server_rental_exporter_api_backoff_until_timestamp_seconds"), "[]")
		sameLog(t, r.log.take(t), logLine{named(account()), "works again"}, logLine{named(servers()), "works again"})
	})
}

// start is when every bubble begins.
var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// TestUnreadableToken tells nothing of what a token reader says beyond its error.
func TestUnreadableToken(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var broken atomic.Bool
		broken.Store(true)
		c := every(time.Minute, time.Hour, "servers")
		c.Accounts[0].Token = func() (string, error) {
			if broken.Load() {
				return mainToken, errors.New("permission denied")
			}
			return mainToken, nil
		}
		r.run(c)
		time.Sleep(3 * time.Minute)
		r.settle()
		same(t, "requests", len(r.provider.requests("")), 0)
		sameLog(t, r.log.take(t), fails(servers(), "permission denied"))
		same(t, "token rejected", r.samples("server_rental_exporter_api_token_rejected"), `[{account="main"} 1]`)
		broken.Store(false)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		same(t, "token rejected later", r.samples("server_rental_exporter_api_token_rejected"), `[{account="main"} 0]`)
		same(t, "collector_success", r.samples(collectorSuccess.Name), `[{account="main",collector="servers"} 1]`)
	})
}
