package simulator

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The values that the document allows in a filter.
const (
	familyIDs   = "entry performance enterprise storage gpu"
	locationIDs = "nyc mia lax lon ams fra sin tyo"
	topupStates = "pending confirming paid expired failed canceled"
)

// resource is one row of the document's table of endpoints.
type resource struct {
	name     string
	private  bool
	maxAge   time.Duration // how long public answers may be cached
	byID     bool          // whether /name/{id} exists
	pageSize int           // default limit; 0 where the list is not paged
	filters  map[string]filter
	one      func(view) any      // a resource that is a single object
	list     func(view) []Object // a resource that is a list
	meta     func(view, []Object) Object
}

// filter is a query parameter that keeps a part of a list.
type filter struct {
	values string
	keeps  func(o Object, value string) bool
}

// view is what a resource may look at while the world stands still.
type view struct {
	sim     *Simulator
	world   *World
	account *Account
	query   url.Values
}

var resources = []resource{
	{
		name: "plans", maxAge: time.Minute, byID: true,
		filters: map[string]filter{
			"family":   {familyIDs, func(o Object, value string) bool { return text(o, "family") == value }},
			"location": {locationIDs, offered},
			"in_stock": {"1 true", func(o Object, _ string) bool { return inStock(o) }},
		},
		list: func(v view) []Object { return v.world.Plans },
		meta: planMeta,
	},
	{
		name: "locations", maxAge: time.Minute, byID: true,
		list: func(v view) []Object { return v.world.Locations },
	},
	{
		name: "os", maxAge: time.Minute,
		list: func(v view) []Object { return v.world.OS },
		meta: func(v view, _ []Object) Object { return Object{"custom_iso": v.world.CustomISO} },
	},
	{name: "status", maxAge: 30 * time.Second, one: statusOf},
	{name: "account", private: true, one: func(v view) any { return v.account.Account }},
	{
		name: "topups", private: true, byID: true, pageSize: 25,
		filters: map[string]filter{
			"status": {topupStates, func(o Object, value string) bool { return text(o, "status") == value }},
		},
		list: func(v view) []Object { return v.account.Topups },
	},
	{
		name: "transactions", private: true, pageSize: 50,
		list: func(v view) []Object { return v.account.Transactions },
		meta: func(v view, _ []Object) Object {
			return Object{"balance": Object{"usd": at(v.account.Account, "balance", "usd")}}
		},
	},
	{
		name: "configurations", private: true,
		list: func(v view) []Object { return v.account.Configurations },
		meta: func(view, []Object) Object { return Object{"max": 20} },
	},
	{
		name: "ssh-keys", private: true, byID: true,
		list: func(v view) []Object { return v.account.SSHKeys },
	},
	{
		name: "servers", private: true, byID: true,
		list: func(v view) []Object { return v.account.Servers },
		meta: func(_ view, shown []Object) Object {
			return Object{"active": count(shown, func(o Object) bool { return text(o, "status") == "active" })}
		},
	},
}

func planMeta(v view, shown []Object) Object {
	meta := Object{"in_stock": count(shown, inStock), "generated_at": v.world.GeneratedAt}
	if v.world.GeneratedAt == nil {
		meta["generated_at"] = v.sim.freshness(time.Minute)
	}
	return meta
}

func statusOf(v view) any {
	if _, pinned := v.world.Status["updated_at"]; pinned || v.world.Status == nil {
		return v.world.Status
	}
	status := maps.Clone(v.world.Status)
	status["updated_at"] = v.sim.freshness(30 * time.Second)
	return status
}

// route finds the resource of a path, and the id where the path has one.
func route(c *call) (res resource, id string, known bool) {
	name, rest, nested := strings.Cut(strings.TrimPrefix(c.path, "/"), "/")
	i := slices.IndexFunc(resources, func(r resource) bool { return r.name == name })
	if !c.inPrefix || i < 0 {
		return resource{}, "", false
	}
	if !nested {
		return resources[i], "", true
	}
	id, err := url.PathUnescape(rest)
	known = resources[i].byID && err == nil && id != "" && !strings.Contains(rest, "/")
	return resources[i], id, known
}

// check says what is wrong with the query, or "". Only what the document
// names is right: each parameter once, with a value it lists.
func (r resource) check(c *call, id string) string {
	if c.queryErr != nil {
		return "the query string cannot be read; use GET /" + r.name
	}
	for _, name := range slices.Sorted(maps.Keys(c.query)) {
		values := c.query[name]
		if id != "" || len(values) != 1 || !r.accepts(name, values[0]) {
			return "the parameter " + strconv.Quote(name) + " is unknown or has an unknown value; use GET /" + r.name
		}
	}
	return ""
}

func (r resource) accepts(name, value string) bool {
	if r.pageSize > 0 && (name == "page" || name == "limit") {
		_, ok := pageNumber(name, value)
		return ok
	}
	f, known := r.filters[name]
	return known && slices.Contains(strings.Fields(f.values), value)
}

// list answers with a list, or with the part of it that the query asks for.
func (s *Simulator) list(v view, r resource) answer {
	shown := r.list(v)
	for name, f := range r.filters {
		if value := v.query.Get(name); value != "" {
			shown = keep(shown, func(o Object) bool { return f.keeps(o, value) })
		}
	}
	meta := Object{}
	if r.pageSize > 0 {
		shown, meta = cut(shown, v.query, r.pageSize)
	}
	meta["count"] = len(shown)
	if r.meta != nil {
		maps.Copy(meta, r.meta(v, shown))
	}
	if r.pageSize > 0 || len(v.query) > 0 {
		return enveloped(encode(notNull(shown)), meta)
	}
	return enveloped(s.whole(listKey{v.account, r.name}, shown), meta)
}

// enveloped copies data that is JSON already rather than have it checked and
// compacted again, which for thousands of objects takes its time.
func enveloped(data []byte, meta Object) answer {
	body := slices.Concat([]byte(`{"data":`), data, []byte(`,"meta":`), encode(meta), []byte(`}`))
	return answer{http.StatusOK, plainHeader(), body}
}

// whole remembers the JSON of a list that is always sent as a whole: thousands
// of servers are not encoded anew for every request.
func (s *Simulator) whole(key listKey, list []Object) []byte {
	if _, known := s.encoded[key]; !known {
		s.encoded[key] = encode(notNull(list))
	}
	return s.encoded[key]
}

// notNull has an empty list sent as [] and not as null.
func notNull(list []Object) []Object {
	if list == nil {
		return []Object{}
	}
	return list
}
