package collector

import (
	"cmp"
	"context"
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
	Status       topupState
	Amount       struct{ USD *quantity }
	BonusPercent *count `json:"bonus_percent"`
	Coin         string
	Network      string
	Payment      struct {
		RateLockedUntil *timestamp `json:"rate_locked_until"`
	} `api:"optional"`
	Confirmations *count                  `api:"optional"`
	Needed        *count                  `json:"confirmations_needed"`
	Credited      struct{ USD *quantity } `api:"optional"` // without bonus
	CreatedAt     *timestamp              `json:"created_at"`
	PaidAt        *timestamp              `json:"paid_at" api:"optional"`
	Links         struct{ Page link }
}

// topupState is one of topupStates.
type topupState string

// topupStates are the states in the provider's document, of which the first two are open.
var topupStates = [...]topupState{"pending", "confirming", "paid", "expired", "failed", "canceled"}

// Decode implements rentalapi.Value.
func (s *topupState) Decode(value any) string {
	text, _ := value.(string) // empty, which is no state, if it is no string
	*s = topupState(strings.ToLower(text))
	return rentalapi.Unless(slices.Contains(topupStates[:], *s), "not a documented state")
}

var (
	topupSet metric.Set

	topupsByStatus   = topupSet.Gauge("topups", "Top-ups of the account by status, over its whole history.", "account", "status")
	topupInfo        = topupSet.Gauge("topup_info", "An open top-up, pending or confirming.", "account", "topup", "status", "coin", "network")
	topupLinks       = topupSet.Gauge("topup_links_info", "Address of an open top-up's page.", "account", "topup", "page")
	topupAmount      = topupSet.Gauge("topup_amount_usd", "Amount that an open top-up asks for, in US dollars.", "account", "topup")
	topupBonus       = topupSet.Gauge("topup_bonus_ratio", "Bonus on an open top-up as a share of its amount.", "account", "topup")
	topupConfirmed   = topupSet.Gauge("topup_confirmations", "Confirmations of an open top-up's payment.", "account", "topup")
	topupNeeded      = topupSet.Gauge("topup_confirmations_needed", "Confirmations that an open top-up's payment needs.", "account", "topup")
	topupCreated     = topupSet.Gauge("topup_created_timestamp_seconds", "When an open top-up was created.", "account", "topup")
	topupLockedUntil = topupSet.Gauge("topup_rate_locked_until_timestamp_seconds", "Until when the exchange rate of an open top-up is locked.", "account", "topup")
	topupSettlement  = topupSet.Gauge("topup_settlement_seconds", "The longest time in seconds from the creation of a top-up to its payment, of the last 20 with a coin among the newest 100 top-ups.", "account", "coin")
	topupsLastFailed = topupSet.Gauge("topups_last_failed_timestamp_seconds", "When the exporter last saw a top-up fail, end unpaid after its payment was seen, or be paid with less credited than its amount.", "account")
	topupLastPaid    = topupSet.Gauge("topup_last_paid_timestamp_seconds", "When the newest paid top-up was paid.", "account")
)

// class returns the state, or "lost" if money that was seen was not, or not in full, credited.
func (t *topup) class() string {
	isUnpaid := t.Status == "failed" || t.Confirmations != nil && (t.Status == "expired" || t.Status == "canceled")
	isShort := t.Status == "paid" && t.Credited.USD != nil && t.Amount.USD != nil && *t.Credited.USD < *t.Amount.USD
	if isUnpaid || isShort {
		return "lost"
	}
	return string(t.Status)
}

var topups = Resource{
	Name: "topups", Help: "top-ups by state and the open ones", Path: "/topups", Account: true,
	Timing:      Timing{Interval: time.Minute, MaxAge: 10 * time.Minute},
	MaxRequests: 1 + len(topupStates),
	Metrics:     topupSet,
	get:         getTopups,
	changes: &changeKind{
		changes: []change{
			{of: attrState, event: "top-up status changed"},
			{of: attrClass, to: "lost", lastOfAny: topupsLastFailed},
			{of: attrClass, from: "confirming", to: "expired", lastOfAny: topupsLastFailed},
			{of: attrClass, from: "confirming", to: "canceled", lastOfAny: topupsLastFailed},
		},
	},
}

// getTopups gets the newest page. If that is not the whole history, the total of each documented
// state counts its top-ups. One that moves on meanwhile may be in two states until the next fetch.
func getTopups(ctx context.Context, api rentalapi.Getter, path string, b *metric.Builder) (Snapshot, error) {
	newest, err := rentalapi.GetPage[topup](ctx, api, path, nil, 1, rentalapi.MaxPageItems)
	if err != nil {
		return Snapshot{}, err
	}
	s, byStatus := newSnapshot(newest.Response), map[topupState]count{}
	s.Invalid, s.partial = newest.Invalid, true // one that is not on the page, or is invalid, did not go
	for _, t := range newest.Items {
		s.items = append(s.items, item{id: t.ID, keys: [][2]string{{"topup", t.ID}, {"usd", numberText(t.Amount.USD)}}, values: values{attrState: string(t.Status), attrClass: t.class()}})
		byStatus[t.Status]++
	}
	for _, status := range topupStates {
		if count(newest.Count) < *newest.Meta.Total {
			page, err := rentalapi.GetPage[topup](ctx, api, path, url.Values{"status": {string(status)}}, 1, 1)
			if err != nil {
				return Snapshot{}, err
			}
			byStatus[status] = *page.Meta.Total
		}
		b.Add(topupsByStatus, float64(byStatus[status]), string(status))
	}
	addOpen(b, newest.Items)
	addPaid(b, newest.Items)
	return s, nil
}

func addOpen(b *metric.Builder, all []*topup) {
	for _, t := range all {
		if !slices.Contains(topupStates[:2], t.Status) {
			continue
		}
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
		if t.Status != "paid" || t.Coin == "" || t.CreatedAt == nil || *t.PaidAt < *t.CreatedAt {
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
