package collector

import (
	"fmt"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
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

var (
	configurationSet metric.Set

	configurationsCount          = configurationSet.Gauge("configurations", "Saved configurations of the account.", "account")
	configurationsLimit          = configurationSet.Gauge("configurations_limit", "The most configurations that the account can save.", "account")
	configurationInfo            = configurationSet.Gauge("configuration_info", "Plan, location, image and host name of a saved configuration.", "account", "configuration", "plan", "location", "os", "hostname")
	configurationLinks           = configurationSet.Gauge("configuration_links_info", "Address at which a saved configuration can be ordered.", "account", "configuration", "order")
	configurationIn              = configurationSet.Gauge("configuration_in_stock", "Whether a saved configuration, a plan in a location, is in stock: 1 or 0.", "account", "configuration", "plan", "location")
	configurationUSD             = configurationSet.Gauge("configuration_price_usd_per_month", "Price of a saved configuration in US dollars a month, excluding VAT.", "account", "configuration")
	configurationEUR             = configurationSet.Gauge("configuration_price_eur_per_month", "Price of a saved configuration in euros a month, excluding VAT.", "account", "configuration")
	configurationMade            = configurationSet.Gauge("configuration_created_timestamp_seconds", "When a configuration was saved.", "account", "configuration")
	configurationRestocks        = configurationSet.Counter("configuration_restocks_total", "Times a sold-out saved configuration came back in stock, also between two scrapes.", "account", "configuration", "plan", "location")
	configurationSellouts        = configurationSet.Counter("configuration_sellouts_total", "Times a saved configuration sold out, also between two scrapes.", "account", "configuration", "plan", "location")
	configurationLastRestock     = configurationSet.Gauge("configuration_last_restock_timestamp_seconds", "When the exporter last saw a saved configuration come back in stock.", "account", "configuration", "plan", "location")
	configurationLastSellout     = configurationSet.Gauge("configuration_last_sellout_timestamp_seconds", "When the exporter last saw a saved configuration sell out.", "account", "configuration", "plan", "location")
	configurationsLastRemoved    = configurationSet.Gauge("configurations_last_removed_timestamp_seconds", "When the exporter last saw a saved configuration go from the list, or change to another plan or location.", "account")
	configurationLastPriceChange = configurationSet.Gauge("configuration_last_price_change_timestamp_seconds", "When the exporter last saw the price of a saved configuration in US dollars change.", "account", "configuration", "plan", "location")
	configurationPreviousUSD     = configurationSet.Gauge("configuration_previous_price_usd_per_month", "Price of a saved configuration in US dollars a month, excluding VAT, before it last changed.", "account", "configuration", "plan", "location")
)

var configurations = Resource{
	Name: "configurations", Help: "saved configurations and whether they can be ordered", Path: "/configurations", Account: true,
	Timing:  Timing{Interval: 5 * time.Minute, MaxAge: 30 * time.Minute, SoldOutInterval: 15 * time.Second},
	Metrics: configurationSet,
	get:     getList(1_000, addConfigurations),
	changes: &changeKind{changes: []change{
		{of: attrPresence, to: isGone, event: "configuration removed", lastOfAny: configurationsLastRemoved},
		{of: attrStock, to: "true", event: "configuration in stock", total: configurationRestocks, last: configurationLastRestock},
		{of: attrStock, to: "false", event: "configuration sold out", total: configurationSellouts, last: configurationLastSellout},
		{of: attrPrice, event: "configuration price changed", last: configurationLastPriceChange, previous: configurationPreviousUSD},
	}},
}

func addConfigurations(b *metric.Builder, page rentalapi.Page[configuration, struct{ Max *count }], s *Snapshot) {
	for _, c := range page.Items {
		place := []string{c.ID, c.Plan, string(c.Location)}
		b.Add(configurationInfo, 1, c.ID, c.Plan, string(c.Location), c.OS, c.Hostname)
		addLinks(b, configurationLinks, c.ID, string(c.Links.Order))
		b.AddBool(configurationIn, c.InStock, place...)
		metric.AddOptional(b, configurationUSD, c.Price.Monthly.USD, c.ID)
		metric.AddOptional(b, configurationEUR, c.Price.Monthly.EUR, c.ID)
		metric.AddOptional(b, configurationMade, c.CreatedAt, c.ID)
		identity := "" // a configuration of another plan or place is another item
		if c.Plan != "" && c.Location != "" {
			identity = fmt.Sprintf("%q %q", c.Plan, c.Location)
		}
		s.items = append(s.items, item{
			id: c.ID, labels: place, keys: [][2]string{{"configuration", c.ID}, {"plan", c.Plan}, {"location", string(c.Location)}},
			values: values{attrIdentity: identity, attrStock: boolLabel(c.InStock), attrPrice: numberText(c.Price.Monthly.USD)},
		})
	}
	b.Add(configurationsCount, float64(page.Count))
	metric.AddOptional(b, configurationsLimit, page.Meta.Max)
}
