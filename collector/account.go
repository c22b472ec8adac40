package collector

import (
	"time"

	"server_rental_exporter/internal/metric"
)

// accountData is API.md's Account, without the e-mail address: nobody needs it here.
type accountData struct {
	ID        string
	Name      string
	Balance   struct{ USD *amount }
	TwoFactor *bool    `json:"two_factor"`
	CreatedAt *instant `json:"created_at"`
}

// balance is an account snapshot's data: the balance, nil where it is unknown.
type balance *amount

var (
	accountInfo      = metric.Gauge("account_info", "The account's id and name at the provider; constant 1.", "Account id, name", "account", "id", "name").Per("account")
	accountBalance   = metric.Gauge("account_balance_usd", "The account's balance.", "Account balance.usd", "account")
	accountTwoFactor = metric.Gauge("account_two_factor_enabled", "Whether two-factor authentication is enabled: 1 or 0.", "Account two_factor", "account")
	accountCreated   = metric.Gauge("account_created_timestamp_seconds", "When the account was created.", "Account created_at", "account")
)

func account() Resource {
	return Resource{
		Name: "account", Help: "balance and two-factor authentication", Endpoint: "/account", Account: true,
		Interval: time.Minute, MaxAge: 10 * time.Minute, Requests: 1,
		Metrics: []*metric.Definition{accountInfo, accountBalance, accountTwoFactor, accountCreated},
		open: func() fetch {
			return object("/account", func(b *metric.Builder, a *accountData, _ *faults) (any, error) {
				if a.ID == "" {
					return nil, errNoID
				}
				b.Add(accountInfo, 1, a.ID, a.Name)
				metric.Put(b, accountBalance, a.Balance.USD)
				b.Bool(accountTwoFactor, a.TwoFactor)
				metric.Put(b, accountCreated, a.CreatedAt)
				return balance(a.Balance.USD), nil
			})
		},
	}
}
