package collector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
)

// topup is the provider's Top-up, without what identifies a payment.
type topup struct {
	ID           string
	Status       string
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
}

// The states of a top-up that the document names; the first two are open.
const (
	pending    = "pending"
	confirming = "confirming"
	paid       = "paid"
)

func topupStates() []string {
	return []string{pending, confirming, paid, "expired", "failed", "canceled"}
}

var (
	topupsByStatus   = metric.Gauge("topups", "Top-ups of the account by status, over its whole history.", "Top-up status, topups meta.total", "account", "status")
	topupInfo        = metric.Gauge("topup_info", "An open top-up, pending or confirming; constant 1.", "Top-up", "account", "topup", "status", "coin", "network").SeriesPer("account and open topup")
	topupAmount      = metric.Gauge("topup_amount_usd", "Amount that an open top-up asks for.", "Top-up amount.usd", "account", "topup").SeriesPer("account and open topup")
	topupBonus       = metric.Gauge("topup_bonus_ratio", "Bonus on an open top-up as a share of its amount.", "Top-up bonus_percent", "account", "topup").SeriesPer("account and open topup")
	topupConfirmed   = metric.Gauge("topup_confirmations", "Confirmations of an open top-up's payment; absent before a payment is seen.", "Top-up confirmations", "account", "topup").SeriesPer("account and open topup")
	topupNeeded      = metric.Gauge("topup_confirmations_needed", "Confirmations that an open top-up's payment needs.", "Top-up confirmations_needed", "account", "topup").SeriesPer("account and open topup")
	topupCreated     = metric.Gauge("topup_created_timestamp_seconds", "When an open top-up was created.", "Top-up created_at", "account", "topup").SeriesPer("account and open topup")
	topupLockedUntil = metric.Gauge("topup_rate_locked_until_timestamp_seconds", "Until when the exchange rate of an open top-up is locked; absent where it awaits no payment.", "Top-up payment.rate_locked_until", "account", "topup").SeriesPer("account and open topup")
	topupLastPaid    = metric.Gauge("topup_last_paid_timestamp_seconds", "When the newest paid top-up was paid; absent where there is none.", "Top-up paid_at", "account")
)

func topups() Resource {
	return Resource{
		Name: "topups", Help: "top-ups by state and the open ones", Endpoint: "/topups", Account: true,
		Interval: time.Minute, MaxAge: 10 * time.Minute,
		Requests: 1, MaxRequests: 1 + len(topupStates()),
		Metrics: []*metric.Definition{
			topupsByStatus, topupInfo, topupAmount, topupBonus, topupConfirmed, topupNeeded, topupCreated, topupLockedUntil, topupLastPaid,
		},
		NewFetch: func() Fetch { return (&topupHistory{refused: map[string]bool{}}).fetch },
	}
}

// topupCounts are the top-ups as one refresh found them.
type topupCounts struct {
	byStatus map[string]float64
	open     []*topup
	paidAt   *timestamp
	invalid  rentalapi.Invalid
	last     rentalapi.Response
}

// maxRefused is how many undocumented states are asked for in vain until no more are.
const maxRefused = 100

// maxAttempts is how often top-ups are counted again while they change their state.
const maxAttempts = 2

// topupHistory keeps of an account's top-ups what no single refresh contains.
type topupHistory struct {
	uncounted int             // top-ups of the total in a state that cannot be counted
	refused   map[string]bool // states by which the API does not filter
	counted   bool            // all states once; until then the requests are spread
}

// fetch gets the newest page. Where it holds the whole history, that suffices. Else
// it gets each state by itself: how many there are is in the meta object, and only
// the open ones are read. So a refresh costs one request, or one for each state and
// one more, however long the history is.
//
// A top-up that changes its state between two of these requests is missed or counted
// twice; then the sum differs from the total by another number than before, and all
// are counted once more.
func (h *topupHistory) fetch(ctx context.Context, api rentalapi.Getter, b *metric.Builder) (Snapshot, error) {
	for attempt := 1; ; attempt++ {
		newest, err := getTopups(ctx, api, rentalapi.Regular, nil, 1)
		if err != nil {
			return Snapshot{}, err
		}
		if newest.Meta.Pages <= 1 && newest.Count >= newest.Meta.Total {
			return countTopups(newest).build(b)
		}
		c, err := h.countByStatus(ctx, api, newest)
		if err != nil {
			return Snapshot{}, err
		}
		sum := 0.0
		for _, n := range c.byStatus {
			sum += n
		}
		uncounted := newest.Meta.Total - int(sum)
		if uncounted == h.uncounted || attempt == maxAttempts {
			h.uncounted = uncounted
			c.addUncounted(uncounted)
			return c.build(b)
		}
	}
}

// addUncounted reports top-ups of the total that are in none of the states asked
// for: their state is not documented and the newest page does not contain it.
func (c *topupCounts) addUncounted(n int) {
	if n > 0 {
		c.invalid.Merge(rentalapi.Invalid{Items: n, Causes: []rentalapi.Cause{{
			Item: "topups", FieldError: rentalapi.FieldError{Field: "status", Problem: "a state that the API cannot filter by"},
		}}})
	}
}

type topupPage = rentalapi.Page[topup, rentalapi.PageMeta]

func getTopups(ctx context.Context, api rentalapi.Getter, p rentalapi.Priority, query url.Values, page int) (topupPage, error) {
	return rentalapi.GetPage(ctx, api, rentalapi.List[topup]{
		Endpoint: "/topups", Query: query, Priority: p, ID: func(t *topup) string { return t.ID },
	}, page)
}

func newTopupCounts() topupCounts { return topupCounts{byStatus: map[string]float64{}} }

// countTopups counts the top-ups of a page that holds all.
func countTopups(p topupPage) topupCounts {
	c := newTopupCounts()
	c.invalid, c.last = p.Invalid, p.Response
	for _, state := range topupStates() {
		c.byStatus[state] = 0
	}
	for _, t := range p.Items {
		if t.Status != "" {
			c.byStatus[t.Status]++
		}
		if t.Status == pending || t.Status == confirming {
			c.open = append(c.open, t)
		}
	}
	c.paidAt = lastPaid(p.Items)
	return c
}

// countByStatus gets each state by itself, and also undocumented ones, where the
// newest page contains them and the API can filter by them.
func (h *topupHistory) countByStatus(ctx context.Context, api rentalapi.Getter, newest topupPage) (topupCounts, error) {
	c := newTopupCounts()
	known := topupStates()
	states := slices.Clone(known)
	for _, t := range newest.Items {
		if t.Status != "" && !h.refused[t.Status] && !slices.Contains(states, t.Status) && len(states) < 2*len(known) && len(h.refused) < maxRefused {
			states = append(states, t.Status)
		}
	}
	for i, state := range states {
		err := c.addStatus(ctx, api, h.priority(), state, newest.Token)
		switch {
		case i >= len(known) && cannotFilter(err):
			h.refused[state] = true
		case errors.Is(err, errNotFiltered):
			return topupCounts{}, fmt.Errorf("%w: %w", rentalapi.ErrIncomplete, err)
		case err != nil:
			return topupCounts{}, err
		}
	}
	h.counted = true
	return c, nil
}

// errNotFiltered is the error of an answer for one state that contains another one.
var errNotFiltered = errors.New("contains another status")

// cannotFilter returns whether the API refused to filter by a state, or ignored that it
// should. It is not documented what the API does with a state that it does not know.
func cannotFilter(err error) bool {
	var failure *rentalapi.Error
	if !errors.As(err, &failure) {
		return errors.Is(err, errNotFiltered)
	}
	switch failure.Code {
	case http.StatusUnauthorized, http.StatusTooManyRequests:
		return false
	}
	return failure.Code >= 400 && failure.Code < 500
}

// priority is Bulk for the first count after the start: see the limiter's spacing.
func (h *topupHistory) priority() rentalapi.Priority {
	if h.counted {
		return rentalapi.Regular
	}
	return rentalapi.Bulk
}

// addStatus gets how many top-ups are in a state, and all of them while they are open.
func (c *topupCounts) addStatus(ctx context.Context, api rentalapi.Getter, priority rentalapi.Priority, state string, token rentalapi.Fingerprint) error {
	query := url.Values{"status": {state}}
	open := state == pending || state == confirming
	if !open && state != paid && slices.Contains(topupStates(), state) {
		query.Set("limit", "1") // else the other entries show whether the API did filter
	}
	seen := map[string]bool{}
	for page := 1; ; page++ {
		p, err := getTopups(ctx, api, priority, query, page)
		switch {
		case err != nil:
			return err
		case p.Token != token:
			return errors.New("topups: the token changed between two requests")
		case slices.ContainsFunc(p.Items, func(t *topup) bool { return t.Status != "" && t.Status != state }):
			return fmt.Errorf("data: the answer for status %s %w", state, errNotFiltered)
		case open && p.Meta.Pages > maxItems/rentalapi.MaxPageItems:
			return fmt.Errorf("%w: meta.pages: more than %d top-ups are %s", rentalapi.ErrTooLarge, maxItems, state)
		}
		c.byStatus[state] = float64(p.Meta.Total)
		c.invalid.Merge(p.Invalid)
		c.last = p.Response
		if state == paid {
			c.paidAt = lastPaid(p.Items)
		}
		if !open {
			return nil
		}
		for _, t := range p.Items {
			if !seen[t.ID] {
				seen[t.ID] = true
				c.open = append(c.open, t)
			}
		}
		if page >= p.Meta.Pages || p.Count == 0 {
			return nil
		}
	}
}

// lastPaid returns the newest time of payment.
func lastPaid(ts []*topup) *timestamp {
	var last *timestamp
	for _, t := range ts {
		if t.PaidAt != nil && (last == nil || *t.PaidAt > *last) {
			last = t.PaidAt
		}
	}
	return last
}

func (c topupCounts) build(b *metric.Builder) (Snapshot, error) {
	added := map[string]bool{} // a top-up that moved on meanwhile may be in two states
	for _, t := range slices.Backward(c.open) {
		if !added[t.ID] {
			added[t.ID] = true
			topupMetrics(b, t)
		}
	}
	for state, n := range c.byStatus {
		b.Add(topupsByStatus, n, state)
	}
	metric.AddOptional(b, topupLastPaid, c.paidAt)
	return Snapshot{Invalid: c.invalid, Age: newAge(c.last, nil)}.build(b)
}

func topupMetrics(b *metric.Builder, t *topup) {
	b.Add(topupInfo, 1, t.ID, t.Status, t.Coin, t.Network)
	metric.AddOptional(b, topupAmount, t.Amount.USD, t.ID)
	metric.AddOptional(b, topupBonus, scaled(t.BonusPercent, 0.01), t.ID)
	metric.AddOptional(b, topupConfirmed, t.Confirmations, t.ID)
	metric.AddOptional(b, topupNeeded, t.Needed, t.ID)
	metric.AddOptional(b, topupCreated, t.CreatedAt, t.ID)
	metric.AddOptional(b, topupLockedUntil, t.Payment.RateLockedUntil, t.ID)
}
