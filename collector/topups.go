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

// topup is API.md's Top-up, without what identifies a payment.
type topup struct {
	ID           string
	Status       string
	Amount       struct{ USD *amount }
	BonusPercent *count `json:"bonus_percent"`
	Coin         string
	Network      string
	Payment      struct {
		RateLockedUntil *instant `json:"rate_locked_until"`
	}
	Confirmations *count
	Needed        *count   `json:"confirmations_needed"`
	CreatedAt     *instant `json:"created_at"`
	PaidAt        *instant `json:"paid_at"`
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
	topupInfo        = metric.Gauge("topup_info", "An open top-up, pending or confirming; constant 1.", "Top-up", "account", "topup", "status", "coin", "network").Per("account and open topup")
	topupAmount      = metric.Gauge("topup_amount_usd", "Amount that an open top-up asks for.", "Top-up amount.usd", "account", "topup").Per("account and open topup")
	topupBonus       = metric.Gauge("topup_bonus_ratio", "Bonus on an open top-up as a share of its amount.", "Top-up bonus_percent", "account", "topup").Per("account and open topup")
	topupConfirmed   = metric.Gauge("topup_confirmations", "Confirmations of an open top-up's payment; absent before a payment is seen.", "Top-up confirmations", "account", "topup").Per("account and open topup")
	topupNeeded      = metric.Gauge("topup_confirmations_needed", "Confirmations that an open top-up's payment needs.", "Top-up confirmations_needed", "account", "topup").Per("account and open topup")
	topupCreated     = metric.Gauge("topup_created_timestamp_seconds", "When an open top-up was created.", "Top-up created_at", "account", "topup").Per("account and open topup")
	topupLockedUntil = metric.Gauge("topup_rate_locked_until_timestamp_seconds", "Until when the exchange rate of an open top-up is locked; absent where it awaits no payment.", "Top-up payment.rate_locked_until", "account", "topup").Per("account and open topup")
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
		open: func() fetch { return (&topupHistory{refused: map[string]bool{}}).fetch },
	}
}

// survey is what one refresh found.
type survey struct {
	counts  map[string]float64
	open    []*topup
	paidAt  *instant
	invalid faults
}

// attempts is how often counts are taken again while top-ups change their state.
const attempts = 2

// topupHistory remembers of an account's top-ups what no single refresh tells.
type topupHistory struct {
	uncounted int             // top-ups of the total that are in a state that cannot be counted
	refused   map[string]bool // states by which the API does not filter
}

// fetch asks for the newest page. Where it holds the whole history, that is
// all. Else it asks for each state by itself: how many there are is in the meta
// object, and only the open ones are read. So a refresh costs one request, or one
// for each state and one more, however long the history is.
//
// A top-up that changes its state between two of these requests is missed or
// counted twice; then the sum differs from the total by another number than
// before, and it is done once more.
func (h *topupHistory) fetch(ctx context.Context, api *rentalapi.Scope, b *metric.Builder) (snapshot, error) {
	for try := 1; ; try++ {
		newest, err := readTopups(ctx, api, nil, 1)
		if err != nil {
			return snapshot{}, err
		}
		if newest.whole() {
			return newest.survey().show(b)
		}
		s, err := h.surveyStates(ctx, api, newest)
		if err != nil {
			return snapshot{}, err
		}
		sum := 0.0
		for _, n := range s.counts {
			sum += n
		}
		uncounted := newest.meta.Total - int(sum)
		if uncounted == h.uncounted || try == attempts {
			h.uncounted = uncounted
			s.leaveOut(uncounted)
			return s.show(b)
		}
	}
}

// leaveOut notes top-ups of the total that are in none of the states asked for:
// theirs is one that the document does not name and the newest page does not show.
func (s *survey) leaveOut(n int) {
	if n > 0 {
		s.invalid.merge(faults{n, fmt.Errorf("status: %d top-ups are in a state that cannot be asked for", n)})
	}
}

// topupPage is one page of top-ups.
type topupPage struct {
	*reader[topup]
	meta rentalapi.PageMeta
}

func readTopups(ctx context.Context, api *rentalapi.Scope, query url.Values, page int) (topupPage, error) {
	p := topupPage{reader: newReader(func(t *topup) string { return t.ID })}
	p.check = func(t *topup) error {
		for _, label := range []string{t.ID, t.Status, t.Coin, t.Network} {
			if len(label) > metric.MaxLabelLength {
				return fmt.Errorf("label: %d bytes, more than %d", len(label), metric.MaxLabelLength)
			}
		}
		return nil
	}
	meta, err := api.Page(ctx, "/topups", query, page, p.read)
	p.meta = meta
	return p, err
}

// whole tells whether a first page holds everything there is.
func (p topupPage) whole() bool {
	return p.meta.Pages <= 1 && len(p.items)+p.invalid.count >= p.meta.Total
}

// survey counts the top-ups of a page that holds all.
func (p topupPage) survey() survey {
	s := survey{counts: map[string]float64{}, invalid: p.invalid}
	for _, state := range topupStates() {
		s.counts[state] = 0
	}
	for _, t := range p.items {
		s.counts[t.Status]++
		if t.Status == pending || t.Status == confirming {
			s.open = append(s.open, t)
		}
	}
	s.paidAt = lastPaid(p.items)
	return s
}

// surveyStates asks for each state by itself, and also for states that the
// document does not name, where the newest page shows them and the API can count them.
func (h *topupHistory) surveyStates(ctx context.Context, api *rentalapi.Scope, newest topupPage) (survey, error) {
	s := survey{counts: map[string]float64{}}
	known := topupStates()
	states := slices.Clone(known)
	for _, t := range newest.items {
		if t.Status != "" && !h.refused[t.Status] && !slices.Contains(states, t.Status) && len(states) < 2*len(known) {
			states = append(states, t.Status)
		}
	}
	for i, state := range states {
		err := s.count(ctx, api, state, newest.meta.Token)
		var refused *rentalapi.Error
		if i >= len(known) && errors.As(err, &refused) && refused.Code == http.StatusBadRequest {
			h.refused[state] = true // its count stays unknown
			continue
		}
		if err != nil {
			return survey{}, err
		}
	}
	return s, nil
}

// count asks how many top-ups are in a state, and for all of them while they are open.
func (s *survey) count(ctx context.Context, api *rentalapi.Scope, state string, token [32]byte) error {
	query := url.Values{"status": {state}}
	open := state == pending || state == confirming
	if !open && state != paid {
		query.Set("limit", "1")
	}
	seen := map[string]bool{}
	for page := 1; ; page++ {
		p, err := readTopups(ctx, api, query, page)
		if err != nil {
			return err
		}
		if p.meta.Token != token {
			return errors.New("topups: the token changed between two requests")
		}
		for _, t := range p.items {
			if t.Status != state {
				return fmt.Errorf("topups: asked for status %s and got another", state)
			}
		}
		if open && p.meta.Pages > mostItems/rentalapi.MaxPage {
			return fmt.Errorf("topups: more than %d are %s", mostItems, state)
		}
		s.counts[state] = float64(p.meta.Total)
		if state == paid {
			s.paidAt = lastPaid(p.items)
		}
		if !open {
			return nil
		}
		for _, t := range p.items {
			if !seen[t.ID] {
				seen[t.ID] = true
				s.open = append(s.open, t)
			}
		}
		s.invalid.merge(p.invalid)
		if page >= p.meta.Pages || len(p.items)+p.invalid.count == 0 {
			return nil
		}
	}
}

// lastPaid returns the newest time of payment.
func lastPaid(ts []*topup) *instant {
	var last *instant
	for _, t := range ts {
		if t.PaidAt != nil && (last == nil || *t.PaidAt > *last) {
			last = t.PaidAt
		}
	}
	return last
}

func (s survey) show(b *metric.Builder) (snapshot, error) {
	shown := map[string]bool{} // a top-up that moved on meanwhile may be in two states
	for _, t := range slices.Backward(s.open) {
		if shown[t.ID] {
			continue
		}
		shown[t.ID] = true
		s.invalid.add(b.Item(func() { showTopup(b, t) }))
	}
	err := b.Item(func() {
		for state, n := range s.counts {
			b.Add(topupsByStatus, n, state)
		}
		metric.Put(b, topupLastPaid, s.paidAt)
	})
	if err := errors.Join(err, tooLarge(b)); err != nil {
		return snapshot{}, err
	}
	return snapshot{metrics: b.Metrics(), invalid: s.invalid}, nil
}

func showTopup(b *metric.Builder, t *topup) {
	b.Add(topupInfo, 1, t.ID, t.Status, t.Coin, t.Network)
	metric.Put(b, topupAmount, t.Amount.USD, t.ID)
	metric.Put(b, topupBonus, scaled(t.BonusPercent, 0.01), t.ID)
	metric.Put(b, topupConfirmed, t.Confirmations, t.ID)
	metric.Put(b, topupNeeded, t.Needed, t.ID)
	metric.Put(b, topupCreated, t.CreatedAt, t.ID)
	metric.Put(b, topupLockedUntil, t.Payment.RateLockedUntil, t.ID)
}
