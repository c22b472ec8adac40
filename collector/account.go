package collector

import (
	"context"
	"errors"
	"time"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
)

// accountData is the provider's Account, without the e-mail address, which is not
// needed.
type accountData struct {
	ID        string
	Name      string
	Balance   struct{ USD *amount }
	TwoFactor *bool      `json:"two_factor"`
	CreatedAt *timestamp `json:"created_at"`
}

// accountFacts are the provider's account id and the balance; nil where it is not
// known.
type accountFacts struct {
	id      string
	balance *amount
}

var (
	accountInfo      = metric.Gauge("account_info", "The account's id and name at the provider; constant 1.", "Account id, name", "account", "id", "name").SeriesPer("account")
	accountBalance   = metric.Gauge("account_balance_usd", "The account's balance.", "Account balance.usd", "account")
	accountTwoFactor = metric.Gauge("account_two_factor_enabled", "Whether two-factor authentication is enabled: 1 or 0.", "Account two_factor", "account")
	accountCreated   = metric.Gauge("account_created_timestamp_seconds", "When the account was created.", "Account created_at", "account")
)

func account() Resource {
	return Resource{
		Name: "account", Help: "balance and two-factor authentication", Endpoint: "/account", Account: true,
		Interval: time.Minute, MaxAge: 10 * time.Minute, Requests: 1,
		Metrics:  []*metric.Definition{accountInfo, accountBalance, accountTwoFactor, accountCreated},
		newFetch: func() fetch { return fetchAccount },
	}
}

func fetchAccount(ctx context.Context, api *rentalapi.Scope, b *metric.Builder) (snapshot, error) {
	o, err := rentalapi.GetObject[accountData](ctx, api, "/account")
	if err != nil {
		return snapshot{}, err
	}
	a := o.Value
	if a.ID == "" {
		return snapshot{}, api.Incomplete("/account", errors.New("data.id: missing"))
	}
	b.Add(accountInfo, 1, a.ID, a.Name)
	metric.AddOptional(b, accountBalance, a.Balance.USD)
	b.AddBool(accountTwoFactor, a.TwoFactor)
	metric.AddOptional(b, accountCreated, a.CreatedAt)
	s := snapshot{
		facts: facts{account: &accountFacts{id: a.ID, balance: a.Balance.USD}},
		age:   newAnswerAge(o.Answer, nil),
	}
	s.invalid.Add("account", o.Errors...)
	return s.build(b)
}
