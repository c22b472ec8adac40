package simulator

import (
	"cmp"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// topupStates are the documented values of the parameter status of top-ups.
const topupStates = "pending confirming paid expired failed canceled"

// resource describes an endpoint: a single object or a list.
type resource struct {
	name     string
	private  bool
	maxAge   time.Duration                       // Cache-Control of public responses
	pageSize int                                 // default limit; 0 if the list has no pages
	states   string                              // values of the parameter status, separated by spaces; empty for no such parameter
	object   func(view) any                      // data of a single object; nil for a list
	list     func(view) []Object                 // data of a list
	meta     func(v view, shown []Object) Object // further meta of a list; may be nil
}

// view is the data that a resource may read. The world is locked meanwhile.
type view struct {
	sim     *Simulator
	account *Account // nil for public resources
	query   url.Values
}

// resources are all endpoints. A new endpoint is a row here, with a function that
// returns its data.
var resources = []resource{
	{
		name: "plans", maxAge: time.Minute,
		list: func(v view) []Object { return v.sim.world.Plans },
		meta: func(v view, shown []Object) Object {
			return Object{"in_stock": len(filter(shown, inStock)), "generated_at": v.sim.snapshotTime(v.sim.world.GeneratedAt, time.Minute)}
		},
	},
	{
		name: "locations", maxAge: time.Minute,
		list: func(v view) []Object { return v.sim.world.Locations },
	},
	{
		name: "os", maxAge: time.Minute,
		list: func(v view) []Object { return v.sim.world.OS },
		meta: func(view, []Object) Object { return Object{"custom_iso": true} },
	},
	{name: "status", maxAge: 30 * time.Second, object: statusOf},
	{name: "account", private: true, object: func(v view) any { return v.account.Account }},
	{
		name: "topups", private: true, pageSize: 25, states: topupStates,
		list: func(v view) []Object { return v.account.Topups },
	},
	{
		name: "transactions", private: true, pageSize: 50,
		list: func(v view) []Object { return v.account.Transactions },
		meta: func(v view, _ []Object) Object {
			return Object{"balance": Object{"usd": At(v.account.Account, "balance", "usd")}}
		},
	},
	{
		name: "configurations", private: true,
		list: func(v view) []Object { return v.account.Configurations },
		meta: func(view, []Object) Object { return Object{"max": 20} },
	},
	{
		name: "ssh-keys", private: true,
		list: func(v view) []Object { return v.account.SSHKeys },
	},
	{
		name: "servers", private: true,
		list: func(v view) []Object { return v.account.Servers },
		meta: func(_ view, shown []Object) Object {
			return Object{"active": len(filter(shown, func(o Object) bool { return Text(o, "status") == "active" }))}
		},
	},
}

func statusOf(v view) any {
	status := maps.Clone(v.sim.world.Status)
	if status != nil {
		status["updated_at"] = v.sim.snapshotTime(status["updated_at"], 30*time.Second)
	}
	return status
}

// made returns when the provider made the response that it sends: when the last one expired,
// or the data changed; with a cache now.
func (s *Simulator) made(age time.Duration) time.Time {
	if s.world.Caches {
		return time.Now()
	}
	made := time.Now().Add(-s.world.CacheOffset).Truncate(age).Add(s.world.CacheOffset)
	if s.changed.After(made) {
		return s.changed
	}
	return made
}

// snapshotTime returns generated_at and updated_at: the pinned one, if there is one.
func (s *Simulator) snapshotTime(pinned any, age time.Duration) any {
	switch {
	case pinned != nil:
		return pinned
	case s.world.SendsAge:
		return s.made(age).UTC().Format(time.RFC3339Nano)
	}
	return stamp(s.made(age))
}

// route returns the resource of a path.
func route(u *url.URL) (res resource, known bool) {
	i := slices.IndexFunc(resources, func(r resource) bool { return Prefix+"/"+r.name == u.EscapedPath() })
	if i < 0 {
		return resource{}, false
	}
	return resources[i], true
}

// accepts reports whether all parameters are documented, with a documented value, each at
// most once. The provider's document does not say what a page or limit out of range
// results in: here it is an error, as for all other unknown values.
func (r resource) accepts(query url.Values) bool {
	for name, values := range query {
		ok := name == "status" && slices.Contains(strings.Fields(r.states), values[0])
		if r.pageSize > 0 && (name == "page" || name == "limit") {
			n, err := strconv.Atoi(values[0])
			ok = err == nil && n > 0 && (name == "page" || n <= maxPageSize)
		}
		if !ok || len(values) > 1 {
			return false
		}
	}
	return true
}

// list returns the response with a list, selected and paginated by the query.
func list(v view, r resource) response {
	shown := r.list(v)
	if status := v.query.Get("status"); status != "" {
		shown = filter(shown, func(o Object) bool { return Text(o, "status") == status })
	}
	meta := Object{}
	if r.pageSize > 0 {
		shown, meta = paginate(shown, v.query, r.pageSize)
	}
	meta["count"] = len(shown)
	if r.meta != nil {
		maps.Copy(meta, r.meta(v, shown))
	}
	if shown == nil {
		shown = []Object{} // not null
	}
	return reply(http.StatusOK, Object{"data": shown, "meta": meta})
}

const maxPageSize = 100

// paginate returns the requested page of a list, and its meta. A page after the
// last is empty; an empty list has 0 pages.
func paginate(list []Object, query url.Values, size int) ([]Object, Object) {
	parameter := func(name string, fallback int) int {
		n, _ := strconv.Atoi(query.Get(name)) // 0 for none
		return cmp.Or(n, fallback)
	}
	size = parameter("limit", size)
	page, pages := parameter("page", 1), slices.Collect(slices.Chunk(list, size))
	meta := Object{"total": len(list), "page": page, "pages": len(pages), "limit": size}
	if page > len(pages) {
		return nil, meta
	}
	return pages[page-1], meta
}

// limiter admits at most limit requests of one key in any minute. Rejected
// requests do not count, so a client that waits for Retry-After is admitted.
type limiter struct {
	limit    int
	admitted map[string][]time.Time // times of admitted requests by key, oldest first
}

// quota is the state of a key after a request.
type quota struct {
	admitted  bool
	remaining int
	reset     time.Duration // time until the oldest counted request is a minute ago
}

func (l *limiter) take(key string, now time.Time) quota {
	if l == nil {
		return quota{admitted: true}
	}
	times := l.admitted[key]
	for len(times) > 0 && now.Sub(times[0]) >= time.Minute {
		times = times[1:]
	}
	admitted := len(times) < l.limit
	if admitted {
		times = append(times, now)
	}
	l.admitted[key] = times
	return quota{admitted, l.limit - len(times), times[0].Add(time.Minute).Sub(now)}
}

// seconds rounds up, so that a client that waits this long is admitted.
func seconds(d time.Duration) string {
	return strconv.Itoa(int(math.Ceil(d.Seconds())))
}
