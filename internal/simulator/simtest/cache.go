package simtest

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"server_rental_exporter/internal/simulator"
)

// CacheKind says when a provider makes a cached response anew.
type CacheKind int

// The kinds of caches.
const (
	AtOnce       CacheKind = iota // whenever the data changes or the cache time has passed
	AtFixedTimes                  // a cache time after the last time, whether requested or not
	OnDemand                      // by the first request after the cache time
	PerRequest                    // by each request
)

// Cache is the provider's cache of public responses. The zero value is the documented
// cache, which the simulator has; the other fields have no effect then.
type Cache struct {
	Kind CacheKind
	// Offset is when a response is made after a multiple of the cache time, AtFixedTimes.
	Offset time.Duration
	// Late returns how much later than that a response is made; nil means at once.
	Late func(due time.Time) time.Duration
	// Hidden is for how long a response that was made AtFixedTimes is not sent yet.
	Hidden time.Duration

	Age bool // whether responses have the header Age
	// Stamp returns generated_at and updated_at of a response that was made at a time;
	// nil means that time.
	Stamp func(made time.Time) any
	// Clock is how much the provider's clock is ahead.
	Clock time.Duration
}

// cache caches the responses of a simulator. It asks the simulator for each request
// all the same, for the rate limits.
type cache struct {
	sim *simulator.Simulator

	mu      sync.Mutex
	Cache                          // what is set
	entries map[string]*cacheEntry // by path and query
}

// cacheEntry is a response in the cache.
type cacheEntry struct {
	path string // with the query
	body string
	made time.Time
	next *cacheEntry   // made, and not sent yet
	age  time.Duration // cache time
}

// SetCache replaces the cache by an empty one. Errors and account data are never
// cached.
func (a *API) SetCache(c Cache) {
	a.cache.mu.Lock()
	defer a.cache.mu.Unlock()
	a.cache.Cache, a.cache.entries = c, map[string]*cacheEntry{}
	if c.Kind == AtOnce {
		a.Simulator.Change(func(w *simulator.World) { w.Stamp = nil })
	}
}

// Change changes the data, see [simulator.Simulator.Change]. A cache other than the
// documented one may delay when responses contain it.
func (a *API) Change(f func(w *simulator.World)) {
	a.cache.mu.Lock()
	defer a.cache.mu.Unlock()
	for _, e := range a.cache.entries {
		if a.cache.Kind == AtFixedTimes {
			a.cache.renew(e)
		}
	}
	a.Simulator.Change(f)
}

// middleware sends responses from the cache in place of the public responses of next.
func (c *cache) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.documented() {
			next.ServeHTTP(w, r)
			return
		}
		response := serve(next, r)
		if response.Header.Get("Access-Control-Allow-Origin") != "" {
			response = c.cached(response, strings.TrimPrefix(r.URL.RequestURI(), simulator.Prefix))
		}
		exchange{w, r}.send(response)
	})
}

func (c *cache) documented() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Kind == AtOnce
}

// cached returns the response that is sent in place of a public one.
func (c *cache) cached(response Response, path string) Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Clock != 0 {
		response.Header.Set("Date", time.Now().Add(c.Clock).UTC().Format(http.TimeFormat))
	}
	seconds, found := strings.CutPrefix(response.Header.Get("Cache-Control"), "max-age=")
	if !found {
		return response
	}
	age, _ := time.ParseDuration(seconds + "s")
	sent := c.get(path, age)
	response.Body = sent.body
	if c.Age {
		response.Header.Set("Age", strconv.Itoa(int(time.Since(sent.made)/time.Second)))
	}
	return response
}

// get returns the response to a request for a path with a query, made if needed.
func (c *cache) get(path string, age time.Duration) cacheEntry {
	e := c.entries[path]
	if e == nil || c.Kind == PerRequest {
		made := time.Now()
		if c.Kind == AtFixedTimes {
			made = c.lastMade(made.Add(-c.Hidden), age)
		}
		e = c.make(path, made, age)
		c.entries[path] = e
	}
	c.renew(e)
	return *e
}

// make makes a response, with the time of its making as its time stamp.
func (c *cache) make(path string, made time.Time, age time.Duration) *cacheEntry {
	stamp := any(made.Add(c.Clock).UTC().Format(time.RFC3339))
	if c.Stamp != nil {
		stamp = c.Stamp(made.Add(c.Clock))
	}
	c.sim.Change(func(w *simulator.World) { w.Stamp = func() any { return stamp } })
	return &cacheEntry{path: path, body: c.sim.Body(path, ""), made: made, age: age}
}

// renew makes an entry anew if it is time. It is also called before each change, so
// that responses contain the data of the time at which they were due.
func (c *cache) renew(e *cacheEntry) {
	now := time.Now()
	if c.Kind != AtFixedTimes {
		if now.Sub(e.made) >= e.age {
			*e = *c.make(e.path, now, e.age)
		}
		return
	}
	for {
		if e.next == nil {
			made := c.lastMade(now, e.age)
			if !made.After(e.made) {
				return
			}
			e.next = c.make(e.path, made, e.age)
		}
		if now.Before(e.next.made.Add(c.Hidden)) {
			return
		}
		*e = *e.next
	}
}

// lastMade returns when the newest response was made, AtFixedTimes.
func (c *cache) lastMade(now time.Time, age time.Duration) time.Time {
	due := now.Add(-c.Offset).Truncate(age).Add(c.Offset)
	if c.Late == nil {
		return due
	}
	for due.Add(c.Late(due)).After(now) {
		due = due.Add(-age)
	}
	return due.Add(c.Late(due))
}
