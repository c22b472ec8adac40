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
	maxAge   time.Duration // Cache-Control of public responses
	pageSize int           // default limit; 0 if the list has no pages
	states   string        // documented values of the parameter status, separated by spaces; it selects items

	// Data, while the world is locked. The account of public resources is nil.
	object func(*World, *Account) any                        // a single object; nil for a list
	list   func(*World, *Account) []Object                   // items of a list
	meta   func(w *World, a *Account, shown []Object) Object // further meta of a list; may be nil
}

// resources are the endpoints that the exporter asks, without filters of plans and without single items. A
// new endpoint is a row here, with a function that returns its data.
var resources = []resource{
	{
		name: "plans", maxAge: time.Minute,
		list: func(w *World, _ *Account) []Object { return w.Plans },
		meta: func(w *World, _ *Account, shown []Object) Object {
			return Object{"in_stock": len(filter(shown, inStock)), "generated_at": w.snapshotTime(w.GeneratedAt, time.Minute)}
		},
	},
	{
		name: "locations", maxAge: time.Minute,
		list: func(w *World, _ *Account) []Object { return w.Locations },
	},
	{
		name: "os", maxAge: time.Minute,
		list: func(w *World, _ *Account) []Object { return w.OS },
		meta: func(*World, *Account, []Object) Object { return Object{"custom_iso": true} },
	},
	{name: "status", maxAge: 30 * time.Second, object: statusOf},
	{name: "account", private: true, object: func(_ *World, a *Account) any { return a.Account }},
	{
		name: "topups", private: true, pageSize: 25, states: topupStates,
		list: func(_ *World, a *Account) []Object { return a.Topups },
	},
	{
		name: "transactions", private: true, pageSize: 50,
		list: func(_ *World, a *Account) []Object { return a.Transactions },
		meta: func(_ *World, a *Account, _ []Object) Object {
			return Object{"balance": Object{"usd": At(a.Account, "balance", "usd")}}
		},
	},
	{
		name: "configurations", private: true,
		list: func(_ *World, a *Account) []Object { return a.Configurations },
		meta: func(*World, *Account, []Object) Object { return Object{"max": 20} },
	},
	{
		name: "ssh-keys", private: true,
		list: func(_ *World, a *Account) []Object { return a.SSHKeys },
	},
	{
		name: "servers", private: true,
		list: func(_ *World, a *Account) []Object { return a.Servers },
		meta: func(_ *World, _ *Account, shown []Object) Object {
			return Object{"active": len(filter(shown, func(o Object) bool { return Text(o, "status") == "active" }))}
		},
	},
}

func statusOf(w *World, _ *Account) any {
	status := maps.Clone(w.Status)
	if status != nil {
		status["updated_at"] = w.snapshotTime(status["updated_at"], 30*time.Second)
	}
	return status
}

// made returns when the provider made its present response: when the one before expired, or when the
// data changed. A provider with a cache makes it now.
func (w *World) made(age time.Duration) time.Time {
	if w.Caches {
		return time.Now()
	}
	made := time.Now().Add(-w.CacheOffset).Truncate(age).Add(w.CacheOffset)
	if w.changed.After(made) {
		return w.changed
	}
	return made
}

// snapshotTime returns generated_at and updated_at: the pinned one, if there is one.
func (w *World) snapshotTime(pinned any, age time.Duration) any {
	switch {
	case pinned != nil:
		return pinned
	case w.SendsAge:
		return w.made(age).UTC().Format(time.RFC3339Nano)
	}
	return stamp(w.made(age))
}

// route returns the resource of a path.
func route(u *url.URL) (res resource, known bool) {
	i := slices.IndexFunc(resources, func(r resource) bool { return u.Path == Prefix+"/"+r.name })
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

// response returns the response with an object, or with a list as selected by the query.
func (r resource) response(w *World, a *Account, query url.Values) response {
	if r.object != nil {
		return reply(http.StatusOK, Object{"data": r.object(w, a)})
	}
	shown := r.list(w, a)
	if status := query.Get("status"); status != "" {
		shown = filter(shown, func(o Object) bool { return Text(o, "status") == status })
	}
	meta := Object{}
	if r.pageSize > 0 {
		shown, meta = paginate(shown, query, r.pageSize)
	}
	meta["count"] = len(shown)
	if r.meta != nil {
		maps.Copy(meta, r.meta(w, a, shown))
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
