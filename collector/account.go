package collector

import (
	"context"
	"fmt"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

// Account is the provider's Account, without the e-mail address.
type Account struct {
	ID        state
	Name      string `api:"optional"`
	Balance   struct{ USD *amount }
	TwoFactor *bool      `json:"two_factor"`
	CreatedAt *timestamp `json:"created_at"`
}

var (
	accountSet metric.Set

	accountInfo         = accountSet.Gauge("account_info", "The account's id and name at the provider.", "account", "id", "name")
	accountBalance      = accountSet.Gauge("account_balance_usd", "The account's balance in US dollars.", "account")
	accountTwoFactor    = accountSet.Gauge("account_two_factor_enabled", "Whether two-factor authentication is enabled: 1 or 0.", "account")
	accountTwoFactorOff = accountSet.Gauge("account_two_factor_off_timestamp_seconds", "When the exporter last saw two-factor authentication switched off.", "account")
	accountCreated      = accountSet.Gauge("account_created_timestamp_seconds", "When the account was created.", "account")
)

var account = Resource{
	Name: "account", Help: "balance and two-factor authentication", Path: "/account", Account: true,
	Timing:  Timing{Interval: time.Minute, MaxAge: 10 * time.Minute},
	Metrics: accountSet,
	get:     getAccount,
	changes: &changeKind{changes: []change{
		{of: attrState, to: "false", event: "two-factor authentication switched off", lastOfAny: accountTwoFactorOff},
	}},
}

func getAccount(ctx context.Context, api rentalapi.Getter, path string, b *metric.Builder) (Snapshot, error) {
	o, err := rentalapi.GetObject[Account](ctx, api, path)
	if err != nil {
		return Snapshot{}, err
	}
	a := o.Value
	for _, e := range o.Errors {
		if e.Field == "id" || (e.Field == "balance" || e.Field == "balance.usd") && e.Absent() {
			return Snapshot{}, fmt.Errorf("data.%w: %w", e, rentalapi.ErrIncomplete)
		}
	}
	b.Add(accountInfo, 1, string(a.ID), a.Name)
	metric.AddOptional(b, accountBalance, a.Balance.USD)
	b.AddBool(accountTwoFactor, a.TwoFactor)
	metric.AddOptional(b, accountCreated, a.CreatedAt)
	s := newSnapshot(o.Response)
	s.Data.Account = a
	s.items = []item{{id: string(a.ID), values: values{attrState: boolLabel(a.TwoFactor)}}}
	s.Invalid.Add("account", o.Errors...)
	return s, nil
}
