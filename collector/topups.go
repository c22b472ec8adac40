package collector

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
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
	open          bool // by its status, or by that of the list that it is in
}

// topupStates returns the states that the document names; the first two are open.
func topupStates() []state {
	return []state{"pending", "confirming", "paid", "expired", "failed", "canceled"}
}

// isOpen returns whether a top-up in a state waits for a payment or its confirmations.
func isOpen(s state) bool {
	return strings.EqualFold(string(s), "pending") || strings.EqualFold(string(s), "confirming")
}

var (
	topupsByStatus   = metric.Gauge("topups", "Top-ups of the account by status, over its whole history.", "account", "status")
	topupInfo        = metric.Gauge("topup_info", "An open top-up, pending or confirming; constant 1.", "account", "topup", "status", "coin", "network")
	topupLinks       = metric.Gauge("topup_links_info", "Address of an open top-up's page; constant 1, absent if it is not known.", "account", "topup", "page")
	topupAmount      = metric.Gauge("topup_amount_usd", "Amount that an open top-up asks for.", "account", "topup")
	topupBonus       = metric.Gauge("topup_bonus_ratio", "Bonus on an open top-up as a share of its amount.", "account", "topup")
	topupConfirmed   = metric.Gauge("topup_confirmations", "Confirmations of an open top-up's payment; absent before a payment is seen.", "account", "topup")
	topupNeeded      = metric.Gauge("topup_confirmations_needed", "Confirmations that an open top-up's payment needs.", "account", "topup")
	topupCreated     = metric.Gauge("topup_created_timestamp_seconds", "When an open top-up was created.", "account", "topup")
	topupLockedUntil = metric.Gauge("topup_rate_locked_until_timestamp_seconds", "Until when the exchange rate of an open top-up is locked; absent if it awaits no payment.", "account", "topup")
	topupSettlement  = metric.Gauge("topup_settlement_seconds", "The longest time from the creation of a top-up to its payment, of the last 20 with a coin among the newest 100 paid ones; absent if there are none.", "account", "coin")
	topupLastPaid    = metric.Gauge("topup_last_paid_timestamp_seconds", "When the newest paid top-up was paid; absent if there is none.", "account")
)

// maxOpen bounds the top-ups in each open state.
const maxOpen = 2_000

func topups() Resource {
	return Resource{
		Name: "topups", Help: "top-ups by state and the open ones", Path: "/topups", Account: true,
		Interval: time.Minute, MaxAge: 10 * time.Minute,
		MaxRequests: 1 + len(topupStates()),
		Metrics: []*metric.Definition{
			topupsByStatus, topupInfo, topupLinks, topupAmount, topupBonus, topupConfirmed, topupNeeded, topupCreated, topupLockedUntil, topupLastPaid, topupSettlement,
		},
		get: getTopups,
	}
}

type topupPage = rentalapi.Page[topup, rentalapi.PageMeta]

// getTopups gets the newest page. If that holds the whole history, it suffices. Else it
// gets each documented state by itself: meta.total says how many there are, and only the
// open ones are read. So it makes one request, or one for each state and one more, however
// long the history is.
//
// A top-up that moves on between two of these requests is in both states until the next
// fetch. The states are requested in the order in which a top-up goes through them, so
// that it is in none of them only if it moves back.
func getTopups(ctx context.Context, f *Fetcher, b *metric.Builder) (Snapshot, error) {
	newest, err := getTopupPage(ctx, f.API, nil, 1)
	if err != nil {
		return Snapshot{}, err
	}
	all, byStatus := newest, map[state]count{}
	for _, s := range topupStates() {
		byStatus[s] = 0
	}
	if newest.Meta.Pages <= 1 && count(newest.Count) >= newest.Meta.Total {
		for _, t := range newest.Items {
			t.open = isOpen(t.Status)
			if t.Status != "" {
				byStatus[t.Status]++
			}
		}
	} else {
		all = topupPage{Response: newest.Response}
		others := newest.Meta.Total
		for _, s := range topupStates() {
			if err := addState(ctx, f, s, &all); err != nil {
				return Snapshot{}, err
			}
			byStatus[s] = all.Meta.Total
			others -= all.Meta.Total
		}
		if others > 0 {
			cause := rentalapi.Cause{Item: "topups", FieldError: rentalapi.FieldError{Field: "status", Problem: "not documented"}}
			if i := slices.IndexFunc(newest.Invalid.Causes, func(c rentalapi.Cause) bool { return c.Field == "status" }); i >= 0 {
				cause = newest.Invalid.Causes[i]
			}
			all.Invalid.Merge(rentalapi.Invalid{Items: int(others), Causes: []rentalapi.Cause{cause}})
		}
	}
	for s, n := range byStatus {
		b.Add(topupsByStatus, float64(n), string(s))
	}
	addTopups(b, all.Items)
	addSettlement(b, all.Items)
	s := newSnapshot(newest.Response)
	s.Invalid = all.Invalid
	for _, t := range slices.Concat(all.Items, newest.Items) {
		s.items = append(s.items, item{kind: topupEvents, id: t.ID, keys: [][2]string{{"topup", t.ID}, {"usd", numberText(t.Amount.USD)}}, state: t.Status})
	}
	return s, nil
}

func getTopupPage(ctx context.Context, api rentalapi.Getter, query url.Values, page int) (topupPage, error) {
	return rentalapi.GetPage[topup](ctx, api, rentalapi.List{Path: "/topups", Query: query, MaxItems: maxEntries}, page)
}

// addState gets how many top-ups are in a state, and all of them while they are open, and
// adds them to those of other states.
func addState(ctx context.Context, f *Fetcher, s state, all *topupPage) error {
	query := url.Values{"status": {string(s)}}
	if !isOpen(s) && s != "paid" {
		query.Set("limit", "1")
	}
	ids, withoutID := map[string]bool{}, 0
	for page := 1; ; page++ {
		if err := f.nextPage(ctx); err != nil {
			return err
		}
		p, err := getTopupPage(ctx, f.API, query, page)
		switch {
		case err != nil:
			return err
		case p.Token != all.Token:
			return ErrTokenChanged
		case slices.ContainsFunc(p.Items, func(t *topup) bool { return t.Status != "" && !strings.EqualFold(string(t.Status), string(s)) }):
			return fmt.Errorf("data: the response for status %s contains another status: %w", s, rentalapi.ErrIncomplete)
		case isOpen(s) && p.Meta.Total > maxOpen:
			return fmt.Errorf("meta.total: more than %d top-ups are %s: %w", maxOpen, s, rentalapi.ErrTooLarge)
		}
		for _, t := range p.Items {
			t.open = isOpen(s)
			ids[t.ID] = true
		}
		withoutID += p.Count - len(p.Items)
		all.Response, all.Meta, all.Items = p.Response, p.Meta, append(all.Items, p.Items...)
		all.Invalid.Merge(p.Invalid)
		if !isOpen(s) {
			return nil
		}
		if count(page) >= p.Meta.Pages || p.Count == 0 {
			return checkTotal(len(ids)+withoutID, p.Meta.Total)
		}
	}
}

// addTopups adds the metrics of the open top-ups, and when the newest payment was. One that
// moved on meanwhile may be in two states, or on two pages.
func addTopups(b *metric.Builder, all []*topup) {
	open, paidAt := map[string]*topup{}, (*timestamp)(nil)
	for _, t := range all {
		if t.open {
			open[t.ID] = t
		}
		if t.PaidAt != nil && (paidAt == nil || *t.PaidAt > *paidAt) {
			paidAt = t.PaidAt
		}
	}
	metric.AddOptional(b, topupLastPaid, paidAt)
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

// addSettlement adds how long the last 20 payments with each coin took at most.
func addSettlement(b *metric.Builder, all []*topup) {
	paid := slices.DeleteFunc(slices.Clone(all), func(t *topup) bool {
		return t.Status != "" && !strings.EqualFold(string(t.Status), "paid") || t.PaidAt == nil || t.CreatedAt == nil || *t.PaidAt < *t.CreatedAt || t.Coin == ""
	})
	slices.SortStableFunc(paid, func(a, b *topup) int { return cmp.Compare(*b.PaidAt, *a.PaidAt) })
	n, longest := map[string]int{}, map[string]time.Duration{}
	for _, t := range paid {
		if n[t.Coin]++; n[t.Coin] <= 20 {
			longest[t.Coin] = max(longest[t.Coin], t.PaidAt.time().Sub(t.CreatedAt.time()))
		}
	}
	for coin, d := range longest {
		b.Add(topupSettlement, d.Seconds(), coin)
	}
}
