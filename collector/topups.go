package collector

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

// topup is the provider's Top-up, without what identifies a payment.
type topup struct {
	ID           string
	Status       state
	Amount       struct{ USD *amount }
	BonusPercent *count `json:"bonus_percent"`
	Coin         string
	Network      string
	Payment      struct {
		RateLockedUntil *timestamp `json:"rate_locked_until"`
	} `api:"optional"`
	Confirmations *count     `api:"optional"`
	Needed        *count     `json:"confirmations_needed"`
	CreatedAt     *timestamp `json:"created_at"`
	PaidAt        *timestamp `json:"paid_at" api:"optional"`
	Links         struct{ Page link }
}

type topupPage = rentalapi.Page[topup, rentalapi.PageMeta]

// topupStates returns the states in the provider's document, in the order in which a top-up goes
// through them. The first two are open.
func topupStates() []state {
	return []state{"pending", "confirming", "paid", "expired", "failed", "canceled"}
}

// documentedState returns the state that a status means in any case of letters; empty if there is
// none.
func documentedState(status state) state {
	lower := state(strings.ToLower(string(status)))
	if slices.Contains(topupStates(), lower) {
		return lower
	}
	return ""
}

// undocumented returns the top-ups of a page whose only fault is a status that is not documented: no
// exported state counts them.
func undocumented(page topupPage) (invalid rentalapi.Invalid) {
	for _, t := range page.Items {
		if documentedState(t.Status) == "" && len(page.Errors[t.ID]) == 0 {
			invalid.Add(t.ID, rentalapi.FieldError{Field: "status", Problem: "not documented"})
		}
	}
	return invalid
}

// isOpen returns whether a top-up with a status waits for a payment or its confirmations.
func isOpen(status state) bool {
	return slices.Contains(topupStates()[:2], documentedState(status))
}

var (
	topupSet metric.Set

	topupsByStatus   = topupSet.Gauge("topups", "Top-ups of the account by status, over its whole history.", "account", "status")
	topupInfo        = topupSet.Gauge("topup_info", "An open top-up, pending or confirming; constant 1.", "account", "topup", "status", "coin", "network")
	topupLinks       = topupSet.Gauge("topup_links_info", "Address of an open top-up's page; constant 1, absent if it is not known.", "account", "topup", "page")
	topupAmount      = topupSet.Gauge("topup_amount_usd", "Amount that an open top-up asks for, in US dollars.", "account", "topup")
	topupBonus       = topupSet.Gauge("topup_bonus_ratio", "Bonus on an open top-up as a share of its amount; 0.05 is 5 percent.", "account", "topup")
	topupConfirmed   = topupSet.Gauge("topup_confirmations", "Confirmations of an open top-up's payment; absent before a payment is seen.", "account", "topup")
	topupNeeded      = topupSet.Gauge("topup_confirmations_needed", "Confirmations that an open top-up's payment needs.", "account", "topup")
	topupCreated     = topupSet.Gauge("topup_created_timestamp_seconds", "When an open top-up was created.", "account", "topup")
	topupLockedUntil = topupSet.Gauge("topup_rate_locked_until_timestamp_seconds", "Until when the exchange rate of an open top-up is locked; absent if it awaits no payment.", "account", "topup")
	topupSettlement  = topupSet.Gauge("topup_settlement_seconds", "The longest time in seconds from the creation of a top-up to its payment, of the last 20 with a coin among the newest 100 paid ones; absent if there are none.", "account", "coin")
	topupsLastFailed = topupSet.Gauge("topups_last_failed_timestamp_seconds", "When the exporter last saw a top-up become failed; absent until then.", "account")
	topupLastPaid    = topupSet.Gauge("topup_last_paid_timestamp_seconds", "When the newest paid top-up was paid; absent if there is none.", "account")
)

var topupChanges = &changeKind{
	stateChanged: "top-up status changed",
	lastOf: func(before, after *state) *metric.Definition {
		if before != nil && after != nil && strings.EqualFold(string(*after), "failed") {
			return topupsLastFailed
		}
		return nil
	},
}

// maxOpen bounds the top-ups in each open state.
const maxOpen = 2_000

func topups() Resource {
	return Resource{
		Name: "topups", Help: "top-ups by state and the open ones", Path: "/topups", Account: true,
		Timing:      Timing{Interval: time.Minute, MaxAge: 10 * time.Minute},
		MaxRequests: 1 + len(topupStates()),
		Metrics:     topupSet,
		newGet:      func() getFunc { return getTopups },
		changes:     topupChanges,
	}
}

// getTopups gets the newest page. If that is not the whole history, it gets each documented state by
// itself: meta.total counts its top-ups, and only the open ones are read. A top-up that moves on
// meanwhile is in two states until the next fetch. As the states are requested in their order, it is
// in none only if it moves back.
func getTopups(ctx context.Context, f *Fetcher, b *metric.Builder) (Snapshot, error) {
	newest, err := getPage[topup](ctx, f, rentalapi.List{Path: f.Resource.Path, MaxItems: maxEntries}, 1)
	if err != nil {
		return Snapshot{}, err
	}
	s, all, byStatus := newSnapshot(newest.Response), newest.Items, map[state]count{}
	for _, status := range topupStates() {
		byStatus[status] = 0
	}
	if count(newest.Count) == newest.Meta.Total {
		s.Invalid = newest.Invalid
		s.Invalid.Merge(undocumented(newest))
		for _, t := range all {
			if status := documentedState(t.Status); status != "" {
				byStatus[status]++
			}
		}
	} else if all, s.Invalid, err = getStates(ctx, f, newest, byStatus); err != nil {
		return Snapshot{}, err
	}
	for status, n := range byStatus {
		b.Add(topupsByStatus, float64(n), string(status))
	}
	addOpen(b, all)
	addPaid(b, all)
	for _, t := range slices.Concat(all, newest.Items) {
		s.items = append(s.items, item{id: itemID{t.ID}, keys: [][2]string{{"topup", t.ID}, {"usd", numberText(t.Amount.USD)}}, state: t.Status})
	}
	return s, nil
}

// getStates gets the number of top-ups in each documented state. It returns all open ones, and the
// newest of each other state.
func getStates(ctx context.Context, f *Fetcher, newest topupPage, byStatus map[state]count) (all []*topup, invalid rentalapi.Invalid, err error) {
	others := newest.Meta.Total
	for _, status := range topupStates() {
		w := walk[topup]{id: func(t *topup) string { return t.ID }, token: newest.Token}
		l := rentalapi.List{Path: f.Resource.Path, Query: url.Values{"status": {string(status)}}, MaxItems: maxEntries}
		switch {
		case isOpen(status):
			l.MaxItems = maxOpen
		case status != "paid": // only the number of these is exported
			l.Query.Set("limit", "1")
		}
		for w.pages == 0 || isOpen(status) && !w.done() {
			items, err := w.next(ctx, f, l)
			if err != nil {
				return nil, invalid, err
			}
			for _, t := range items {
				if t.Status = cmp.Or(t.Status, status); !strings.EqualFold(string(t.Status), string(status)) {
					return nil, invalid, fmt.Errorf("data: the response for status %s contains another status: %w", status, rentalapi.ErrIncomplete)
				}
			}
			all = append(all, items...)
		}
		invalid.Merge(w.invalid)
		byStatus[status] = w.newest.Meta.Total
		others -= w.newest.Meta.Total
	}
	if others > 0 {
		causes := slices.Concat(newest.Invalid.Causes, undocumented(newest).Causes)
		if len(causes) == 0 { // the top-ups are on an older page
			causes = []rentalapi.Cause{{Item: "topups", FieldError: rentalapi.FieldError{Field: "status", Problem: "not documented"}}}
		}
		invalid.Merge(rentalapi.Invalid{Items: int(others), Causes: causes})
	}
	return all, invalid, nil
}

// addOpen adds the open top-ups. One that moved on meanwhile may be in two states.
func addOpen(b *metric.Builder, all []*topup) {
	open := map[string]*topup{}
	for _, t := range all {
		if isOpen(t.Status) {
			open[t.ID] = t
		}
	}
	for _, t := range open {
		b.Add(topupInfo, 1, t.ID, string(t.Status), t.Coin, t.Network)
		addLinks(b, topupLinks, t.ID, string(t.Links.Page))
		metric.AddOptional(b, topupAmount, t.Amount.USD, t.ID)
		metric.AddOptional(b, topupBonus, scaled(t.BonusPercent, 0.01), t.ID)
		metric.AddOptional(b, topupConfirmed, t.Confirmations, t.ID)
		metric.AddOptional(b, topupNeeded, t.Needed, t.ID)
		metric.AddOptional(b, topupCreated, t.CreatedAt, t.ID)
		metric.AddOptional(b, topupLockedUntil, t.Payment.RateLockedUntil, t.ID)
	}
}

// addPaid adds the time of the newest payment, and the longest duration of the last 20 with each coin.
func addPaid(b *metric.Builder, all []*topup) {
	paid := slices.DeleteFunc(slices.Clone(all), func(t *topup) bool { return t.PaidAt == nil })
	slices.SortStableFunc(paid, func(a, b *topup) int { return cmp.Compare(*b.PaidAt, *a.PaidAt) })
	if len(paid) > 0 {
		metric.AddOptional(b, topupLastPaid, paid[0].PaidAt)
	}
	n, longest := map[string]int{}, map[string]time.Duration{}
	for _, t := range paid {
		if !strings.EqualFold(string(t.Status), "paid") || t.Coin == "" || t.CreatedAt == nil || *t.PaidAt < *t.CreatedAt {
			continue
		}
		if n[t.Coin]++; n[t.Coin] <= 20 {
			longest[t.Coin] = max(longest[t.Coin], t.PaidAt.time().Sub(t.CreatedAt.time()))
		}
	}
	for coin, d := range longest {
		b.Add(topupSettlement, d.Seconds(), coin)
	}
}
