package collector

import (
	"time"

	"server_rental_exporter/internal/metric"
)

// configuration is API.md's Saved configuration.
type configuration struct {
	ID        string
	Plan      string
	Location  string
	OS        string
	Hostname  string
	Price     struct{ Monthly monthly }
	InStock   *bool    `json:"in_stock"`
	CreatedAt *instant `json:"created_at"`
}

type configurationsMeta struct{ Count, Max *count }

var (
	configurationsCount = metric.Gauge("configurations", "Saved configurations of the account.", "configurations meta.count", "account")
	configurationsLimit = metric.Gauge("configurations_limit", "The most configurations that the account can save.", "configurations meta.max", "account")
	configurationInfo   = metric.Gauge("configuration_info", "What a saved configuration orders; constant 1.", "Saved configuration", "account", "configuration", "plan", "location", "os", "hostname")
	configurationStock  = metric.Gauge("configuration_in_stock", "Whether a saved configuration can be ordered now: 1 or 0.", "Saved configuration in_stock", "account", "configuration")
	configurationUSD    = metric.Gauge("configuration_price_usd_per_month", "Price of a saved configuration in US dollars a month, excluding VAT.", "Saved configuration price.monthly.usd", "account", "configuration")
	configurationEUR    = metric.Gauge("configuration_price_eur_per_month", "Price of a saved configuration in euros a month, excluding VAT.", "Saved configuration price.monthly.eur", "account", "configuration")
	configurationMade   = metric.Gauge("configuration_created_timestamp_seconds", "When a configuration was saved.", "Saved configuration created_at", "account", "configuration")
)

func configurations() Resource {
	return Resource{
		Name: "configurations", Help: "saved configurations and whether they can be ordered", Endpoint: "/configurations", Account: true,
		Interval: 5 * time.Minute, MaxAge: 30 * time.Minute, Requests: 1,
		Metrics: []*metric.Definition{
			configurationsCount, configurationsLimit, configurationInfo, configurationStock, configurationUSD, configurationEUR, configurationMade,
		},
		open: func() fetch {
			return list[configuration, configurationsMeta]{
				endpoint: "/configurations", most: mostItems,
				id: func(c *configuration) string { return c.ID },
				item: func(b *metric.Builder, c *configuration) {
					b.Add(configurationInfo, 1, c.ID, c.Plan, c.Location, c.OS, c.Hostname)
					b.Bool(configurationStock, c.InStock, c.ID)
					metric.Put(b, configurationUSD, c.Price.Monthly.USD, c.ID)
					metric.Put(b, configurationEUR, c.Price.Monthly.EUR, c.ID)
					metric.Put(b, configurationMade, c.CreatedAt, c.ID)
				},
				rest: func(b *metric.Builder, m *configurationsMeta, _ []*configuration) any {
					metric.Put(b, configurationsCount, m.Count)
					metric.Put(b, configurationsLimit, m.Max)
					return nil
				},
			}.fetch
		},
	}
}
