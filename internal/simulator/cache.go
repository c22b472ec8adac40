package simulator

import (
	"net/http"
	"time"
)

// CacheKind says when a provider makes a cached answer anew.
type CacheKind int

// The kinds of caches.
const (
	AtOnce       CacheKind = iota // whenever the data changes or the cache time has passed
	AtFixedTimes                  // a cache time after the last time, whether requested or not
	OnDemand                      // by the first request after the cache time
	Revalidate                    // the same, but that request still gets the old answer
	PerRequest                    // by each request
)

// Cache is the provider's cache of public answers. The zero value is the documented
// cache.
type Cache struct {
	Kind CacheKind
	// Offset is when an answer is made after a multiple of the cache time, AtFixedTimes.
	Offset time.Duration
	// Late returns how much later than that an answer is made; nil means at once.
	Late func(due time.Time) time.Duration
	// Hidden is for how long an answer that was made AtFixedTimes is not sent yet.
	Hidden time.Duration

	Age bool // whether answers have the header Age; not AtOnce
	// Stamp returns generated_at and updated_at of an answer that was made at a time;
	// nil means that time.
	Stamp func(made time.Time) any
	// Clock is how much the provider's clock is ahead.
	Clock time.Duration
}

// SetCache replaces the cache by an empty one. Errors and account data are never
// cached.
func (s *Simulator) SetCache(c Cache) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache, s.cached = c, map[string]*cachedAnswer{}
}

// cachedAnswer is an answer in the cache.
type cachedAnswer struct {
	answer
	made  time.Time
	build func() answer
	next  *cachedAnswer // made, and not sent yet
	age   time.Duration // cache time
}

// cachedContent returns an answer from the cache, made by build if needed.
func (s *Simulator) cachedContent(key string, age time.Duration, build func() answer) answer {
	entry := s.cached[key]
	if entry == nil || s.cache.Kind == PerRequest {
		entry = &cachedAnswer{build: build, age: age, made: time.Now()}
		if s.cache.Kind == AtFixedTimes {
			entry.made = s.cache.lastMade(time.Now().Add(-s.cache.Hidden), age)
		}
		s.make(entry)
		s.cached[key] = entry
	}
	old := *entry
	s.renew(entry)
	sent := entry
	if s.cache.Kind == Revalidate {
		sent = &old
	}
	a := sent.answer
	a.header = a.header.Clone()
	if s.cache.Age {
		a.header.Set("Age", seconds(time.Since(sent.made).Truncate(time.Second)))
	}
	return a
}

// make builds an answer, with the time of its making as its time stamp.
func (s *Simulator) make(entry *cachedAnswer) {
	s.made = entry.made
	entry.answer = entry.build()
}

// renew makes an entry anew where it is time. It is also called before each change, so
// that answers contain the data of the time at which they were due.
func (s *Simulator) renew(entry *cachedAnswer) {
	now := time.Now()
	if s.cache.Kind != AtFixedTimes {
		if now.Sub(entry.made) >= entry.age {
			entry.made = now
			s.make(entry)
		}
		return
	}
	for {
		if entry.next == nil {
			made := s.cache.lastMade(now, entry.age)
			if !made.After(entry.made) {
				return
			}
			entry.next = &cachedAnswer{build: entry.build, age: entry.age, made: made}
			s.make(entry.next)
		}
		if now.Before(entry.next.made.Add(s.cache.Hidden)) {
			return
		}
		entry.answer, entry.made, entry.next = entry.next.answer, entry.next.made, nil
	}
}

// lastMade returns when the newest answer was made, AtFixedTimes.
func (c Cache) lastMade(now time.Time, age time.Duration) time.Time {
	due := now.Add(-c.Offset).Truncate(age).Add(c.Offset)
	if c.Late == nil {
		return due
	}
	for due.Add(c.Late(due)).After(now) {
		due = due.Add(-age)
	}
	return due.Add(c.Late(due))
}

// time returns the provider's time at a time.
func (c Cache) time(t time.Time) time.Time { return t.Add(c.Clock) }

// setDate sets the header Date, which net/http sets to its own time otherwise.
func (c Cache) setDate(h http.Header) {
	if c.Clock != 0 {
		h.Set("Date", c.time(time.Now()).UTC().Format(http.TimeFormat))
	}
}

// snapshotTime returns generated_at and updated_at of the answer that is being made.
// AtOnce, that is the time of a snapshot that is made when the last one expires or the
// data changes.
func (s *Simulator) snapshotTime(age time.Duration) any {
	made := s.made
	if s.cache.Kind == AtOnce {
		made = time.Now().Truncate(age)
		if s.changed.After(made) {
			made = s.changed
		}
	}
	if s.cache.Stamp != nil {
		return s.cache.Stamp(s.cache.time(made))
	}
	return stamp(s.cache.time(made))
}
