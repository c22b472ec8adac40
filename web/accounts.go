package web

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"server_rental_exporter/collector"
)

// renewalsAhead is the time from today within which renewals are listed.
const renewalsAhead = 14 * day

type words struct{ Text, Class string }

type renewal struct {
	Day                   time.Time
	Overdue               bool
	Account, Server, Host string
}

// Funded returns until when an account's balance pays its servers.
func (v *view) Funded(account string) words {
	until, class := v.fundedUntil(account)
	ahead := !until.Before(midnight(v.Now).AddDate(collector.HorizonYears, 0, 0))
	incomplete := v.Lacking(serverPrice, account)+v.Lacking(serverRenewal, account) > 0
	switch {
	case until.IsZero() || ahead && incomplete:
		return words{none, ""}
	case ahead:
		return words{"10 years or more", class}
	case incomplete:
		return words{"at most " + v.Date(until), class}
	}
	return words{v.Date(until), class}
}

// Data says how old the data is that the section shows of an account.
func (v *view) Data(account string) words {
	var ages, classes []string
	for _, name := range []string{"account", "servers", "topups", "configurations"} {
		c := v.Collector(name, account)
		ages, classes = append(ages, name+": "+c.Data()), append(classes, c.Class)
	}
	return words{strings.Join(ages, "; "), slices.MinFunc(classes, compareClasses)}
}

// fundedUntil returns the day of the first renewals that an account's balance cannot
// pay, zero if it is not known, and bad or warn if it needs attention.
func (v *view) fundedUntil(account string) (until time.Time, class string) {
	until = v.Time("account_funded_until_timestamp_seconds", account)
	switch left := until.Sub(midnight(v.Now)); {
	case until.IsZero():
	case left <= 2*day:
		class = "bad"
	case left <= 7*day:
		class = "warn"
	}
	return until, class
}

// Renewals returns the renewals of billed servers that are overdue or come soon, by day.
func (v *view) Renewals() []renewal {
	var rows []renewal
	today := midnight(v.Now)
	for _, s := range v.samples[serverRenewal] {
		account, id := s.Label("account"), s.Label("server")
		if !collector.Billed(v.Label("status", "server_status", account, id)) {
			continue
		}
		for _, on := range collector.RenewalDays(midnight(at(s.Value())), today, today.Add(renewalsAhead)) {
			rows = append(rows, renewal{on, on.Before(today), account, id, v.NameOf("hostname", "server_info", account, id)})
		}
	}
	slices.SortFunc(rows, func(a, b renewal) int {
		return cmp.Or(a.Day.Compare(b.Day), strings.Compare(a.Account, b.Account), strings.Compare(a.Host, b.Host))
	})
	return rows
}

// Left returns how long the rate of a top-up is still locked.
func (v *view) Left(until time.Time) string {
	switch {
	case until.IsZero():
		return none
	case !until.After(v.Now):
		return "rate lock ended"
	}
	return duration(until.Sub(v.Now)) + " left"
}
