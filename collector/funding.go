package collector

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// horizonYears is how far ahead renewals are looked at.
const horizonYears = 10

// renewals are what becomes due on each day, for the first time and then monthly.
type renewals map[time.Time]micros

func (r renewals) add(at *instant, p price) {
	if at == nil {
		return
	}
	day := time.Unix(int64(*at), 0).UTC().Truncate(24 * time.Hour)
	r[day] += microsOf(p)
}

// fundedUntil returns the day of the first renewal that the balance cannot pay,
// oldest first, or the horizon where it can pay all before it. It is false where
// no renewal is known.
//
// Each renewal falls once into every calendar month from its first on, so whole
// months are paid at once and only the month that fails is looked at by day.
func (r renewals) fundedUntil(usd amount, now time.Time) (time.Time, bool) {
	if len(r) == 0 {
		return time.Time{}, false
	}
	now = now.UTC()
	horizon := time.Date(now.Year()+horizonYears, now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	first := make([]time.Time, 0, len(r))
	for day := range r {
		first = append(first, day)
	}
	slices.SortFunc(first, time.Time.Compare)

	left, started := microsOf(usd), 0
	var monthly micros
	for month := startOfMonth(first[0]); !month.After(horizon); month = month.AddDate(0, 1, 0) {
		for started < len(first) && startOfMonth(first[started]).Equal(month) {
			monthly += r[first[started]]
			started++
		}
		if monthly == 0 || left >= monthly {
			left -= monthly
			continue
		}
		if day, ok := r.firstUnpaid(first[:started], month, left); ok && day.Before(horizon) {
			return day, true
		}
		return horizon, true
	}
	return horizon, true
}

// firstUnpaid returns the day within a month on which what is left is too little.
func (r renewals) firstUnpaid(started []time.Time, month time.Time, left micros) (time.Time, bool) {
	last := month.AddDate(0, 1, -1).Day()
	var due [32]micros
	for _, day := range started {
		due[min(day.Day(), last)] += r[day]
	}
	for day, sum := range due {
		if sum > max(left, 0) {
			return month.AddDate(0, 0, day-1), true
		}
		if sum > 0 {
			left -= sum
		}
	}
	return time.Time{}, false
}

func startOfMonth(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// funding keeps an account's funded-until metric until the balance, the servers
// or the day change.
type funding struct {
	mu     sync.Mutex
	usd    balance
	owned  *fleet
	day    int
	metric prometheus.Metric
}

// of returns the metric, or nil where it is not known.
func (f *funding) of(account string, usd balance, owned *fleet, now time.Time) prometheus.Metric {
	if usd == nil || owned == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.usd == usd && f.owned == owned && f.day == now.UTC().YearDay() {
		return f.metric
	}
	f.usd, f.owned, f.day, f.metric = usd, owned, now.UTC().YearDay(), nil
	if until, ok := owned.renewals.fundedUntil(*usd, now); ok {
		m, err := accountFunded.Metric(float64(until.Unix()), account)
		if err != nil {
			m = prometheus.NewInvalidMetric(accountFunded.Desc(), err)
		}
		f.metric = m
	}
	return f.metric
}
