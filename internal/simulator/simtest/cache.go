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
)

// Cache is the provider's cache of public responses. The zero value is the documented
// cache, which the simulator has; the other fields have no effect then.
type Cache struct {
	Kind CacheKind
	// Offset is when a response is made after a multiple of the cache time.
	Offset time.Duration
	Age    bool // whether responses have the header Age
	// Stamp returns generated_at and updated_at of a response that was made at a time;
	// nil means that time.
	Stamp func(made time.Time) any
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
	path string        // with the query
	age  time.Duration // cache time
	body string
	made time.Time
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
// documented one delays when responses contain it: what is due is made before.
func (a *API) Change(f func(w *simulator.World)) {
	a.cache.mu.Lock()
	defer a.cache.mu.Unlock()
	for _, e := range a.cache.entries {
		a.cache.renew(e)
	}
	a.Simulator.Change(f)
}

// middleware sends responses from the cache in place of the public responses of next.
func (c *cache) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		kind := c.Kind
		c.mu.Unlock()
		if kind == AtOnce {
			next.ServeHTTP(w, r)
			return
		}
		response := serve(next, r)
		if age, found := strings.CutPrefix(response.Header.Get("Cache-Control"), "max-age="); found {
			seconds, _ := strconv.Atoi(age)
			c.replace(&response, strings.TrimPrefix(r.URL.RequestURI(), simulator.Prefix), time.Duration(seconds)*time.Second)
		}
		exchange{w, r}.send(response)
	})
}

// replace replaces a response by the cached one for a path with a query.
func (c *cache) replace(response *Response, path string, age time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[path]
	if e == nil {
		e = &cacheEntry{path: path, age: age}
		c.entries[path] = e
	}
	c.renew(e)
	response.Body = e.body
	if c.Age {
		response.Header.Set("Age", strconv.Itoa(int(time.Since(e.made)/time.Second)))
	}
}

// renew makes a response anew if it is time, with the time of its making as its time stamp.
func (c *cache) renew(e *cacheEntry) {
	made := time.Now().Add(-c.Offset).Truncate(e.age).Add(c.Offset)
	if !made.After(e.made) {
		return
	}
	stamp := any(made.UTC().Format(time.RFC3339))
	if c.Stamp != nil {
		stamp = c.Stamp(made)
	}
	c.sim.Change(func(w *simulator.World) { w.Stamp = func() any { return stamp } })
	e.body, e.made = c.sim.Body(e.path, ""), made
}
