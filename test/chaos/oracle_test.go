package chaos_test

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// This file computes, from the provider's documentation alone, the samples that the
// data of a simulated provider results in. It shares no code with the collectors.

// samples are values by series.
type samples = map[string]float64

func familyOf(series string) string {
	name, _, _ := strings.Cut(series, "{")
	return name
}

// family returns the samples of one metric family.
func family(all samples, name string) samples {
	found := maps.Clone(all)
	maps.DeleteFunc(found, func(series string, _ float64) bool { return familyOf(series) != name })
	return found
}

// expectation is the expected samples of one resource of one scope.
type expectation struct {
	samples
	account string
	invalid int  // items that are not understood in full
	bad     bool // the current item is one of them
}

// kind converts a value of the API; false if it is not understood.
type kind func(v any) (float64, bool)

func between(low, high float64) kind {
	return func(v any) (float64, bool) {
		n, ok := v.(float64)
		if i, isInt := v.(int); isInt {
			n, ok = float64(i), true
		}
		return n, ok && n >= low && n <= high
	}
}

// The kinds of values.
var (
	number = between(0, 1e15)
	price  = between(0, 1e7)
	amount = between(-1e8, 1e8)
)

func times(k kind, by float64) kind {
	return func(v any) (float64, bool) {
		n, ok := k(v)
		return math.Round(n*by*1e6) / 1e6, ok
	}
}

func boolean(v any) (float64, bool) {
	b, ok := v.(bool)
	return map[bool]float64{true: 1}[b], ok
}

func moment(v any) (float64, bool) {
	s, _ := v.(string)
	for _, layout := range []string{time.RFC3339, time.DateOnly, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z0700"} {
		if t, err := time.Parse(layout, s); err == nil {
			return float64(t.UnixMilli()) / 1000, t.Unix() >= 0
		}
	}
	return 0, false
}

func (e *expectation) set(value float64, name string, labels ...string) {
	if e.account != "" {
		labels = append([]string{"account", e.account}, labels...)
	}
	e.samples[simtest.Series("server_rental_"+name, labels...)] = value
}

// put adds a sample unless the value is null or not understood.
func (e *expectation) put(k kind, o simulator.Object, path, name string, labels ...string) {
	v := simulator.At(o, strings.Split(path, ".")...)
	if v == nil {
		return
	}
	value, ok := k(v)
	if !ok {
		e.bad = true
		return
	}
	e.set(value, name, labels...)
}

// field says which metric a field becomes.
type field struct {
	kind       kind
	path, name string
}

// putAll adds a sample for each field.
func (e *expectation) putAll(o simulator.Object, fields []field, labels ...string) {
	for _, f := range fields {
		e.put(f.kind, o, f.path, f.name, labels...)
	}
}

// info adds an info metric with an id and labels made of fields, given as name and
// path in turn.
func (e *expectation) info(o simulator.Object, name, id string, fields ...string) {
	labels := []string{id, simulator.Text(o, "id")}
	for i := 0; i < len(fields); i += 2 {
		value := ""
		if v := simulator.At(o, strings.Split(fields[i+1], ".")...); v != nil {
			value = fmt.Sprint(v)
		}
		labels = append(labels, fields[i], value)
	}
	e.set(1, name, labels...)
}

// items calls add for each item and counts those that are not understood in full.
func (e *expectation) items(list []simulator.Object, add func(o simulator.Object, id string)) {
	for _, o := range list {
		e.bad = false
		add(o, simulator.Text(o, "id"))
		e.count()
	}
}

func (e *expectation) count() {
	if e.bad {
		e.invalid++
	}
	e.bad = false
}

// expectations returns the samples of each resource, with the number of invalid items.
func expectations(account string, add map[string]func(e *expectation)) map[string]samples {
	all := map[string]samples{}
	for name, f := range add {
		e := &expectation{samples: samples{}, account: account}
		f(e)
		e.samples[invalidItems(name, account)] = float64(e.invalid)
		all[name] = e.samples
	}
	return all
}

func invalidItems(name, account string) string {
	return simtest.Series("server_rental_exporter_collector_invalid_items", "collector", name, "account", account)
}

func expectPublic(w *simulator.World) map[string]samples {
	return expectations("", map[string]func(e *expectation){
		"plans": func(e *expectation) {
			inStock := 0
			e.items(w.Plans, func(p simulator.Object, id string) {
				expectPlan(e, p, id)
				if simulator.At(p, "availability", "in_stock") == true {
					inStock++
				}
			})
			generated, _ := moment(w.GeneratedAt)
			e.set(float64(len(w.Plans)), "catalog_plans")
			e.set(float64(inStock), "catalog_plans_in_stock")
			e.set(generated, "catalog_generated_timestamp_seconds")
		},
		"locations": func(e *expectation) {
			e.items(w.Locations, func(l simulator.Object, id string) {
				e.info(l, "location_info", "location", "iata", "iata", "city", "city", "country", "country", "country_code", "country_code", "region", "region")
				e.put(between(-90, 90), l, "coordinates.lat", "location_latitude_degrees", "location", id)
				e.put(between(-180, 180), l, "coordinates.lon", "location_longitude_degrees", "location", id)
				e.put(number, l, "plans", "location_plans", "location", id)
				offered, _ := number(l["plans"])
				e.put(between(0, offered), l, "plans_in_stock", "location_plans_in_stock", "location", id)
			})
		},
		"os": func(e *expectation) {
			e.items(w.OS, func(o simulator.Object, id string) {
				e.info(o, "os_image_info", "os", "name", "name", "family", "family", "version", "version", "support", "support")
				e.put(times(number, 60), o, "typical_install_minutes", "os_image_install_seconds", "os", id)
				e.put(price, o, "license.usd_per_core_month", "os_image_license_usd_per_core_month", "os", id)
				e.put(number, o, "license.min_cores", "os_image_license_min_cores", "os", id)
			})
			e.put(boolean, simulator.Object{"iso": w.CustomISO}, "iso", "os_custom_iso_supported")
		},
		"status": func(e *expectation) { expectStatus(e, w.Status) },
	})
}

func expectPlan(e *expectation, p simulator.Object, id string) {
	e.info(p, "plan_info", "plan", "name", "name", "family", "family", "cpu_model", "cpu.model", "cpu_architecture", "cpu.architecture",
		"memory_type", "memory.type", "memory_ecc", "memory.ecc", "storage", "storage", "gpu_model", "gpu.model", "gpu_memory", "gpu.memory",
		"network_port", "network.port", "network_bandwidth", "network.bandwidth", "network_ipv6", "network.ipv6", "ddos_protection", "network.ddos_protection")
	e.info(p, "plan_availability_info", "plan", "delivery", "availability.delivery", "alternative", "availability.alternative")
	locations, _ := simulator.At(p, "availability", "locations").([]string)
	for _, l := range locations {
		if l == "" {
			e.bad = true
			continue
		}
		e.set(1, "plan_offered", "plan", id, "location", l)
	}
	e.putAll(p, []field{
		{boolean, "availability.in_stock", "plan_in_stock"},
		{price, "price.monthly.usd", "plan_price_usd_per_month"},
		{price, "price.monthly.eur", "plan_price_eur_per_month"},
		{price, "price.setup_fee", "plan_setup_fee"},
		{number, "cpu.cores", "plan_cpu_cores"},
		{number, "cpu.threads", "plan_cpu_threads"},
		{times(number, 1e9), "cpu.base_ghz", "plan_cpu_base_frequency_hertz"},
		{times(number, 1e9), "cpu.boost_ghz", "plan_cpu_boost_frequency_hertz"},
		{times(number, 1<<20), "cpu.l3_cache_mb", "plan_cpu_l3_cache_bytes"},
		{times(number, 1<<30), "memory.size_gb", "plan_memory_bytes"},
		{number, "network.ipv4", "plan_ipv4_addresses"},
	}, "plan", id)
}

// expectStatus counts each component as an item, and everything else as one.
func expectStatus(e *expectation, s simulator.Object) {
	e.set(1, "status_info", "overall", simulator.Text(s, "overall"))
	e.put(number, s, "ongoing", "incidents_ongoing")
	e.put(number, s, "scheduled", "maintenances_scheduled")
	e.put(moment, s, "since", "status_since_timestamp_seconds")
	e.put(moment, s, "updated_at", "status_updated_timestamp_seconds")
	e.count()
	locations, _ := s["locations"].(simulator.Object)
	for id := range locations {
		components, _ := simulator.At(locations, id, "components").(simulator.Object)
		for name, v := range components {
			state, _ := v.(string)
			if state == "" {
				e.invalid++
				continue
			}
			operational, _ := boolean(strings.ToLower(state) == "operational")
			e.set(operational, "component_operational", "location", id, "component", name)
			e.set(1, "component_state", "location", id, "component", name, "state", state)
		}
	}
}

// expectAccount also returns the targets of service discovery, as "targets".
func expectAccount(account string, a *simulator.Account) map[string]samples {
	all := expectations(account, map[string]func(e *expectation){
		"account": func(e *expectation) {
			e.set(1, "account_info", "id", simulator.Text(a.Account, "id"), "name", simulator.Text(a.Account, "name"))
			e.put(amount, a.Account, "balance.usd", "account_balance_usd")
			e.put(boolean, a.Account, "two_factor", "account_two_factor_enabled")
			e.put(moment, a.Account, "created_at", "account_created_timestamp_seconds")
			e.count()
		},
		"topups":       func(e *expectation) { expectTopups(e, a.Topups) },
		"transactions": func(e *expectation) { expectTransactions(e, a.Transactions) },
		"configurations": func(e *expectation) {
			e.items(a.Configurations, func(c simulator.Object, id string) {
				e.info(c, "configuration_info", "configuration", "plan", "plan", "location", "location", "os", "os", "hostname", "hostname")
				e.put(boolean, c, "in_stock", "configuration_in_stock", "configuration", id)
				e.put(price, c, "price.monthly.usd", "configuration_price_usd_per_month", "configuration", id)
				e.put(price, c, "price.monthly.eur", "configuration_price_eur_per_month", "configuration", id)
				e.put(moment, c, "created_at", "configuration_created_timestamp_seconds", "configuration", id)
			})
			e.set(float64(len(a.Configurations)), "configurations")
			e.set(20, "configurations_limit")
		},
		"ssh_keys": func(e *expectation) {
			e.items(a.SSHKeys, func(k simulator.Object, id string) {
				e.info(k, "ssh_key_info", "ssh_key", "name", "name", "type", "type", "fingerprint", "fingerprint")
				e.put(moment, k, "created_at", "ssh_key_created_timestamp_seconds", "ssh_key", id)
			})
			e.set(float64(len(a.SSHKeys)), "ssh_keys")
		},
		"servers": func(e *expectation) { expectServers(e, a.Servers) },
	})
	all["targets"] = targets(a.Servers)
	return all
}

func expectTopups(e *expectation, list []simulator.Object) {
	counts := map[string]int{"pending": 0, "confirming": 0, "paid": 0, "expired": 0, "failed": 0, "canceled": 0}
	lastPaid := 0.0
	e.items(list, func(t simulator.Object, id string) {
		status := simulator.Text(t, "status")
		counts[status]++
		if paid, ok := moment(t["paid_at"]); ok {
			lastPaid = max(lastPaid, paid)
		}
		if status != "pending" && status != "confirming" {
			return
		}
		e.info(t, "topup_info", "topup", "status", "status", "coin", "coin", "network", "network")
		e.put(amount, t, "amount.usd", "topup_amount_usd", "topup", id)
		e.put(times(number, 0.01), t, "bonus_percent", "topup_bonus_ratio", "topup", id)
		e.put(number, t, "confirmations", "topup_confirmations", "topup", id)
		e.put(number, t, "confirmations_needed", "topup_confirmations_needed", "topup", id)
		e.put(moment, t, "created_at", "topup_created_timestamp_seconds", "topup", id)
		e.put(moment, t, "payment.rate_locked_until", "topup_rate_locked_until_timestamp_seconds", "topup", id)
	})
	for status, n := range counts {
		e.set(float64(n), "topups", "status", status)
	}
	if lastPaid > 0 {
		e.set(lastPaid, "topup_last_paid_timestamp_seconds")
	}
}

func expectTransactions(e *expectation, list []simulator.Object) {
	n, credit, debit := map[string]float64{}, map[string]float64{}, map[string]float64{} // amounts in cents
	for _, x := range list {
		kind := simulator.Text(x, "type")
		n[kind]++
		usd, _ := amount(simulator.At(x, "amount", "usd"))
		credit[kind] += math.Round(100 * max(usd, 0))
		debit[kind] += math.Round(100 * max(-usd, 0))
	}
	for kind := range n {
		e.set(n[kind], "transactions_total", "type", kind)
		e.set(credit[kind]/100, "transactions_credit_usd_total", "type", kind)
		e.set(debit[kind]/100, "transactions_debit_usd_total", "type", kind)
	}
}

// billed reports whether a server of this status costs something.
func billed(status string) bool {
	return !slices.Contains([]string{"canceled", "cancelled", "terminated", "deleted", "expired"}, strings.ToLower(status))
}

func expectServers(e *expectation, list []simulator.Object) {
	counts := map[string]int{"active": 0, "suspended": 0}
	cost, priced, unpriced, active := 0.0, 0, 0, 0
	e.items(list, func(s simulator.Object, id string) {
		e.info(s, "server_info", "server", "plan", "plan", "name", "name", "location", "location", "os", "os", "hostname", "hostname")
		status, isText := s["status"].(string)
		if isText {
			counts[status]++
			e.set(1, "server_status", "server", id, "status", status)
		} else {
			e.bad = true
		}
		if status == "active" {
			active++
		}
		e.put(price, s, "price.monthly.usd", "server_price_usd_per_month", "server", id)
		e.put(moment, s, "renews_at", "server_renews_timestamp_seconds", "server", id)
		e.put(moment, s, "created_at", "server_created_timestamp_seconds", "server", id)
		usd, known := price(simulator.At(s, "price", "monthly", "usd"))
		switch {
		case !billed(status):
		case known:
			priced++
			cost += math.Round(100 * usd)
		default:
			unpriced++
		}
		if _, isText := s["ipv4"].(string); !isText {
			e.bad = true
		}
	})
	for status, n := range counts {
		e.set(float64(n), "servers", "status", status)
	}
	e.set(float64(active), "servers_active")
	if priced > 0 || unpriced == 0 {
		e.set(cost/100, "account_cost_usd_per_month")
	}
}

// targets returns the active servers as "id address"; nil if one cannot be told.
func targets(list []simulator.Object) samples {
	all := samples{}
	for _, s := range list {
		status, hasStatus := s["status"].(string)
		address, hasAddress := s["ipv4"].(string)
		_, err := netip.ParseAddr(address)
		switch {
		case !hasStatus || !hasAddress || status == "active" && address != "" && err != nil:
			return nil
		case status == "active" && address != "":
			all[simulator.Text(s, "id")+" "+address] = 1
		}
	}
	return all
}

// fundedUntil computes the first renewal that the exported balance cannot pay from
// exported prices and renewals, day by day; false if there is none to compute.
func fundedUntil(account, servers samples, now time.Time) (float64, bool) {
	today := now.UTC().Truncate(24 * time.Hour)
	horizon := today.AddDate(10, 0, 0)
	ended := map[string]bool{}
	prices, renews := map[string]float64{}, map[string]float64{}
	for series, v := range servers {
		switch id := simtest.Label(series, "server"); familyOf(series) {
		case "server_rental_server_status":
			ended[id] = !billed(simtest.Label(series, "status"))
		case "server_rental_server_price_usd_per_month":
			prices[id] = math.Round(100 * v)
		case "server_rental_server_renews_timestamp_seconds":
			renews[id] = v
		}
	}
	due := map[time.Time]float64{}
	for id, at := range renews {
		usd, known := prices[id]
		if !known || ended[id] {
			continue
		}
		first := time.Unix(int64(at), 0).UTC().Truncate(24 * time.Hour)
		due[first] += usd
		for month := 1; ; month++ {
			// Day 0 is the last day of the month before.
			last := time.Date(first.Year(), first.Month()+time.Month(month+1), 0, 0, 0, 0, 0, time.UTC)
			day := last.AddDate(0, 0, min(first.Day(), last.Day())-last.Day())
			if !day.Before(horizon) {
				break
			}
			if day.After(today) {
				due[day] += usd
			}
		}
	}
	balances := slices.Collect(maps.Values(family(account, "server_rental_account_balance_usd")))
	if len(balances) == 0 || len(due) == 0 {
		return 0, false
	}
	left := math.Round(100 * balances[0])
	for _, day := range slices.SortedFunc(maps.Keys(due), time.Time.Compare) {
		if due[day] > max(left, 0) {
			return float64(day.Unix()), true
		}
		left -= due[day]
	}
	return float64(horizon.Unix()), true
}
