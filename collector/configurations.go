package collector

import (
	"slices"
	"time"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
)

// configuration is the provider's Saved configuration.
type configuration struct {
	ID        string
	Plan      string
	Location  locationID
	OS        string
	Hostname  string
	Price     struct{ Monthly monthly }
	InStock   *bool      `json:"in_stock"`
	CreatedAt *timestamp `json:"created_at"`
	Links     struct{ Order link }
}

type configurationsMeta struct{ Max *count }

var (
	configurationsCount = metric.Gauge("configurations", "Saved configurations of the account.", "number of Saved configuration", "account")
	configurationsLimit = metric.Gauge("configurations_limit", "The most configurations that the account can save.", "configurations meta.max", "account")
	configurationInfo   = metric.Gauge("configuration_info", "Plan, location, image and host name of a saved configuration; constant 1.", "Saved configuration", "account", "configuration", "plan", "location", "os", "hostname")
	configurationLinks  = metric.Gauge("configuration_links_info", "Address at which a saved configuration can be ordered; constant 1, absent if it is not known.", "Saved configuration links.order", "account", "configuration", "order")
	configurationIn     = metric.Gauge("configuration_in_stock", "Whether the provider reports a saved configuration as in stock: 1 or 0.", "Saved configuration in_stock", "account", "configuration")
	configurationUSD    = metric.Gauge("configuration_price_usd_per_month", "Price of a saved configuration in US dollars a month, excluding VAT.", "Saved configuration price.monthly.usd", "account", "configuration")
	configurationEUR    = metric.Gauge("configuration_price_eur_per_month", "Price of a saved configuration in euros a month, excluding VAT.", "Saved configuration price.monthly.eur", "account", "configuration")
	configurationMade   = metric.Gauge("configuration_created_timestamp_seconds", "When a configuration was saved.", "Saved configuration created_at", "account", "configuration")
	configurationStock  = stockMetrics{
		restocks:    metric.Counter("configuration_restocks_total", "Times a sold-out saved configuration came back in stock since the exporter first saw it, also between two scrapes.", "changes of Saved configuration in_stock", "account", "configuration"),
		sellouts:    metric.Counter("configuration_sellouts_total", "Times a saved configuration sold out since the exporter first saw it, also between two scrapes.", "changes of Saved configuration in_stock", "account", "configuration"),
		lastInStock: metric.Gauge("configuration_last_in_stock_timestamp_seconds", "When the exporter last saw a saved configuration in stock; absent until then.", "the exporter", "account", "configuration"),
		changed:     metric.Gauge("configuration_stock_changed_timestamp_seconds", "When the exporter last saw a saved configuration come in stock or sell out; absent until then.", "changes of Saved configuration in_stock", "account", "configuration"),
	}
)

func configurations() Resource {
	return Resource{
		Name: "configurations", Help: "saved configurations and whether they can be ordered", Path: "/configurations", Account: true,
		Interval: 5 * time.Minute, MaxAge: 30 * time.Minute, SoldOutInterval: 15 * time.Second,
		Metrics: slices.Concat([]*metric.Definition{
			configurationsCount, configurationsLimit, configurationInfo, configurationLinks, configurationIn, configurationUSD, configurationEUR, configurationMade,
		}, configurationStock.definitions()),
		stock: &configurationStock,
		get: list(
			rentalapi.List[configuration]{Path: "/configurations", MaxItems: maxItems, ID: func(c *configuration) string { return c.ID }},
			configurationMetrics,
			func(b *metric.Builder, p rentalapi.Page[configuration, configurationsMeta], s *Snapshot) {
				for _, c := range p.Items {
					s.items = append(s.items, item{
						kind: configurationEvents, id: c.ID, keys: [][2]string{{"configuration", c.ID}, {"plan", c.Plan}, {"location", string(c.Location)}}, stock: c.InStock,
					})
				}
				b.Add(configurationsCount, float64(p.Count))
				metric.AddOptional(b, configurationsLimit, p.Meta.Max)
			},
		),
	}
}

func configurationMetrics(b *metric.Builder, c *configuration) {
	b.Add(configurationInfo, 1, c.ID, c.Plan, string(c.Location), c.OS, c.Hostname)
	addLinks(b, configurationLinks, c.ID, string(c.Links.Order))
	b.AddBool(configurationIn, c.InStock, c.ID)
	metric.AddOptional(b, configurationUSD, c.Price.Monthly.USD, c.ID)
	metric.AddOptional(b, configurationEUR, c.Price.Monthly.EUR, c.ID)
	metric.AddOptional(b, configurationMade, c.CreatedAt, c.ID)
}
