package collector

import (
	"slices"
	"strings"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

// plan is the provider's Plan.
type plan struct {
	ID     string
	Name   string
	Family string
	CPU    struct {
		Model        string
		Cores        *count
		Threads      *count
		BaseGHz      *quantity `json:"base_ghz"`
		BoostGHz     *quantity `json:"boost_ghz"`
		Architecture string    `api:"optional"`
		L3CacheMB    *count    `json:"l3_cache_mb" api:"optional"`
	}
	Memory struct {
		SizeGB *count `json:"size_gb"`
		Type   string
		ECC    *bool
	}
	Storage string
	GPU     gpu `api:"optional"`
	Network struct {
		Port           string
		Bandwidth      string
		IPv4           *count
		IPv6           string
		DDoSProtection *bool `json:"ddos_protection"`
	}
	Price struct {
		Monthly  monthly
		SetupFee *quantity `json:"setup_fee"`
	}
	Availability struct {
		InStock     *bool `json:"in_stock"`
		Delivery    state
		Locations   []locationID
		Alternative string `api:"optional"`
	}
	Links struct{ Page, Order link }

	hasGPU      *bool // nil if that is not known
	offersOther bool  // whether it may be offered in a location that is not known
}

type gpu struct{ Model, Memory string }

// monthly holds prices for a month, excluding VAT.
type monthly struct{ USD, EUR *quantity }

type plansPage = rentalapi.Page[plan, struct {
	InStock     *count     `json:"in_stock"`
	GeneratedAt *timestamp `json:"generated_at"`
}]

var (
	planSet metric.Set

	planInfo = planSet.Gauge("plan_info", "Name, family and hardware of a plan.",
		"plan", "name", "family", "cpu_model", "cpu_architecture", "memory_type", "memory_ecc", "storage", "gpu_model", "gpu_memory",
		"network_port", "network_bandwidth", "network_ipv6", "ddos_protection")
	planInStock         = planSet.Gauge("plan_in_stock", "Whether a plan is in stock in any location: 1 or 0.", "plan")
	planAvailability    = planSet.Gauge("plan_availability_info", "Delivery of a plan, and the plan that is suggested while it is sold out.", "plan", "delivery", "alternative")
	planLinks           = planSet.Gauge("plan_links_info", "Addresses of a plan's page and of its order form.", "plan", "page", "order")
	planOffered         = planSet.Gauge("plan_offered", "A location that offers a plan, in stock or not.", "plan", "location")
	planPriceUSD        = planSet.Gauge("plan_price_usd_per_month", "Price of a plan in US dollars a month, excluding VAT.", "plan")
	planPriceEUR        = planSet.Gauge("plan_price_eur_per_month", "Price of a plan in euros a month, excluding VAT.", "plan")
	planSetupFee        = planSet.Gauge("plan_setup_fee", "One-time setup fee of a plan, excluding VAT; the provider does not document its currency.", "plan")
	planCores           = planSet.Gauge("plan_cpu_cores", "Processor cores of a plan.", "plan")
	planThreads         = planSet.Gauge("plan_cpu_threads", "Processor threads of a plan.", "plan")
	planBaseHz          = planSet.Gauge("plan_cpu_base_frequency_hertz", "Base frequency of a plan's processor in hertz.", "plan")
	planBoostHz         = planSet.Gauge("plan_cpu_boost_frequency_hertz", "Boost frequency of a plan's processor in hertz.", "plan")
	planL3              = planSet.Gauge("plan_cpu_l3_cache_bytes", "Level 3 cache of a plan's processor in bytes; 1 MB is 2^20 bytes.", "plan")
	planMemory          = planSet.Gauge("plan_memory_bytes", "Memory of a plan in bytes; 1 GB is 2^30 bytes.", "plan")
	planIPv4            = planSet.Gauge("plan_ipv4_addresses", "IPv4 addresses that are included in a plan.", "plan")
	planRestocks        = planSet.Counter("plan_restocks_total", "Times a sold-out plan came back in stock, also between two scrapes.", "plan")
	planSellouts        = planSet.Counter("plan_sellouts_total", "Times a plan sold out, also between two scrapes.", "plan")
	planLastRestock     = planSet.Gauge("plan_last_restock_timestamp_seconds", "When the exporter last saw a plan come back in stock.", "plan")
	planLastSellout     = planSet.Gauge("plan_last_sellout_timestamp_seconds", "When the exporter last saw a plan sell out.", "plan")
	planAdded           = planSet.Gauge("plan_added_timestamp_seconds", "When the exporter saw a plan come into the catalog.", "plan")
	planRemoved         = planSet.Gauge("plan_removed_timestamp_seconds", "When the exporter saw a plan go from the catalog; absent while the plan is there, and an hour after it went.", "plan")
	planLastPriceChange = planSet.Gauge("plan_last_price_change_timestamp_seconds", "When the exporter last saw the price of a plan in US dollars change.", "plan")
	planPreviousUSD     = planSet.Gauge("plan_previous_price_usd_per_month", "Price of a plan in US dollars a month, excluding VAT, before it last changed.", "plan")
	catalogPlans        = planSet.Gauge("catalog_plans", "Plans in the catalog.")
	catalogInStock      = planSet.Gauge("catalog_plans_in_stock", "Plans in the catalog that are in stock; absent if that is not known of a plan.")
	catalogGenerated    = planSet.Gauge("catalog_generated_timestamp_seconds", "When the provider generated the catalog.")
)

var plans = Resource{
	Name: "plans", Help: "plan stock, prices and hardware", Path: "/plans",
	Timing: Timing{Interval: time.Minute, MaxAge: 5 * time.Minute}, MinInterval: time.Minute,
	Metrics: planSet,
	get:     getList(2_000, addPlans),
	changes: &changeKind{
		changes: []change{
			{of: attrPresence, to: isListed, event: "plan added", last: planAdded},
			{of: attrPresence, to: isGone, event: "plan removed", last: planRemoved},
			{of: attrStock, to: "true", event: "plan in stock", total: planRestocks, last: planLastRestock},
			{of: attrStock, to: "false", event: "plan sold out", total: planSellouts, last: planLastSellout},
			{of: attrPrice, event: "plan price changed", last: planLastPriceChange, previous: planPreviousUSD},
		},
	},
}

func addPlans(b *metric.Builder, page plansPage, s *Snapshot) {
	for _, p := range page.Items {
		isUnclear := func(field string) bool { // or a part of it
			return slices.ContainsFunc(page.Errors[p.ID], func(e rentalapi.FieldError) bool { return strings.HasPrefix(e.Field, field) })
		}
		if hasGPU := p.GPU != (gpu{}); hasGPU || !isUnclear("gpu") {
			p.hasGPU = &hasGPU
		}
		p.offersOther = p.Availability.Locations == nil || isUnclear("availability.locations")
		soldOut := map[state]string{"instant": "false", "sold_out": "true"}[p.Availability.Delivery]
		if soldOut != "" && soldOut == boolLabel(p.Availability.InStock) && len(page.Errors[p.ID]) == 0 {
			s.Invalid.Add(p.ID, rentalapi.FieldError{Field: "availability.in_stock", Problem: "contradicts availability.delivery"})
		}
		b.Add(planInfo, 1, p.ID, p.Name, p.Family, p.CPU.Model, p.CPU.Architecture, p.Memory.Type, boolLabel(p.Memory.ECC), p.Storage,
			p.GPU.Model, p.GPU.Memory, p.Network.Port, p.Network.Bandwidth, p.Network.IPv6, boolLabel(p.Network.DDoSProtection))
		b.AddBool(planInStock, p.Availability.InStock, p.ID)
		b.Add(planAvailability, 1, p.ID, string(p.Availability.Delivery), p.Availability.Alternative)
		addLinks(b, planLinks, p.ID, string(p.Links.Page), string(p.Links.Order))
		for _, location := range slices.Compact(slices.Sorted(slices.Values(p.Availability.Locations))) {
			b.Add(planOffered, 1, p.ID, string(location))
		}
		metric.AddOptional(b, planPriceUSD, p.Price.Monthly.USD, p.ID)
		metric.AddOptional(b, planPriceEUR, p.Price.Monthly.EUR, p.ID)
		metric.AddOptional(b, planSetupFee, p.Price.SetupFee, p.ID)
		metric.AddOptional(b, planCores, p.CPU.Cores, p.ID)
		metric.AddOptional(b, planThreads, p.CPU.Threads, p.ID)
		metric.AddOptional(b, planBaseHz, scaled(p.CPU.BaseGHz, 1e9), p.ID)
		metric.AddOptional(b, planBoostHz, scaled(p.CPU.BoostGHz, 1e9), p.ID)
		metric.AddOptional(b, planL3, scaled(p.CPU.L3CacheMB, 1<<20), p.ID)
		metric.AddOptional(b, planMemory, scaled(p.Memory.SizeGB, 1<<30), p.ID)
		metric.AddOptional(b, planIPv4, p.Network.IPv4, p.ID)
		s.items = append(s.items, p.item())
	}
	b.Add(catalogPlans, float64(page.Count))
	inStock := addInStock(b, catalogInStock, page.Items)
	s.checkMeta("in_stock", page.Meta.InStock, inStock)
	metric.AddOptional(b, catalogGenerated, page.Meta.GeneratedAt)
	s.setStamp(page.Response, page.Meta.GeneratedAt, maxPlausibleAge)
	s.Data.Plans = &page
}

// addInStock adds the number of plans in stock, unless the stock of one of them is unknown, and returns
// the number of those that are known to be in stock.
func addInStock(b *metric.Builder, d *metric.Definition, plans []*plan, labels ...string) (inStock int) {
	inStock = len(slices.DeleteFunc(slices.Clone(plans), func(p *plan) bool { return !p.inStock() }))
	if !slices.ContainsFunc(plans, func(p *plan) bool { return p.Availability.InStock == nil }) {
		b.Add(d, float64(inStock), labels...)
	}
	return inStock
}

func (p *plan) inStock() bool { return p.Availability.InStock != nil && *p.Availability.InStock }

func (p *plan) item() item {
	return item{
		id: p.ID, labels: []string{p.ID},
		values: values{attrStock: boolLabel(p.Availability.InStock), attrPrice: numberText(p.Price.Monthly.USD)},
		keys:   [][2]string{{"plan", p.ID}, {"name", p.Name}}, detail: [][2]string{{"usd_per_month", numberText(p.Price.Monthly.USD)}},
	}
}
