package campaign_test

import (
	"fmt"
	"math"
	"strings"
	"time"

	"server_rental_exporter/internal/simulator"
)

// This file says, from the provider's document alone, which samples the world of
// a simulator makes. It shares nothing with the collectors.

// book is what one resource of one account, or of the public, should show.
type book map[string]values // by collector

func at(o simulator.Object, path ...string) any {
	var v any = o
	for _, key := range path {
		inner, is := v.(simulator.Object)
		if !is {
			return nil
		}
		v = inner[key]
	}
	return v
}

func text(o simulator.Object, path ...string) string {
	v := at(o, path...)
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// put adds a sample where the value is known. Times become Unix seconds.
func (v values) put(value any, name string, labels ...string) {
	s := series("server_rental_"+name, labels...)
	switch x := value.(type) {
	case nil:
	case int:
		v[s] = float64(x)
	case float64:
		v[s] = x
	case bool:
		v[s] = 0
		if x {
			v[s] = 1
		}
	case string:
		for _, layout := range []string{time.RFC3339, time.DateOnly} {
			if t, err := time.Parse(layout, x); err == nil {
				v[s] = float64(t.UnixMilli()) / 1000
				return
			}
		}
		panic("not a time: " + x)
	default:
		panic(fmt.Sprintf("%s: %T", name, value))
	}
}

// times multiplies a number that is known.
func times(value any, by float64) any {
	switch x := value.(type) {
	case int:
		return float64(x) * by
	case float64:
		return math.Round(x*by*1e6) / 1e6
	default:
		return nil
	}
}

func publicBook(w *simulator.World) book {
	b := book{"plans": {}, "locations": {}, "os": {}, "status": {}}
	inStock := 0
	for _, p := range w.Plans {
		if at(p, "availability", "in_stock") == true {
			inStock++
		}
		planBook(b["plans"], p)
	}
	b["plans"].put(len(w.Plans), "catalog_plans")
	b["plans"].put(inStock, "catalog_plans_in_stock")
	b["plans"].put(w.GeneratedAt, "catalog_generated_timestamp_seconds")
	for _, l := range w.Locations {
		id, v := text(l, "id"), b["locations"]
		v.put(1, "location_info", "location", id, "iata", text(l, "iata"), "city", text(l, "city"), "country", text(l, "country"),
			"country_code", text(l, "country_code"), "region", text(l, "region"))
		v.put(at(l, "coordinates", "lat"), "location_latitude_degrees", "location", id)
		v.put(at(l, "coordinates", "lon"), "location_longitude_degrees", "location", id)
		v.put(at(l, "plans"), "location_plans", "location", id)
		v.put(at(l, "plans_in_stock"), "location_plans_in_stock", "location", id)
	}
	for _, o := range w.OS {
		id, v := text(o, "id"), b["os"]
		v.put(1, "os_image_info", "os", id, "name", text(o, "name"), "family", text(o, "family"), "version", text(o, "version"), "support", text(o, "support"))
		v.put(times(at(o, "typical_install_minutes"), 60), "os_image_install_seconds", "os", id)
		v.put(at(o, "license", "usd_per_core_month"), "os_image_license_usd_per_core_month", "os", id)
		v.put(at(o, "license", "min_cores"), "os_image_license_min_cores", "os", id)
	}
	b["os"].put(w.CustomISO, "os_custom_iso_supported")
	statusBook(b["status"], w.Status)
	return b
}

func planBook(v values, p simulator.Object) {
	id := text(p, "id")
	v.put(1, "plan_info", "plan", id, "name", text(p, "name"), "family", text(p, "family"), "cpu_model", text(p, "cpu", "model"),
		"cpu_architecture", text(p, "cpu", "architecture"), "memory_type", text(p, "memory", "type"), "memory_ecc", text(p, "memory", "ecc"),
		"storage", text(p, "storage"), "gpu_model", text(p, "gpu", "model"), "gpu_memory", text(p, "gpu", "memory"),
		"network_port", text(p, "network", "port"), "network_bandwidth", text(p, "network", "bandwidth"),
		"network_ipv6", text(p, "network", "ipv6"), "ddos_protection", text(p, "network", "ddos_protection"))
	v.put(at(p, "availability", "in_stock"), "plan_in_stock", "plan", id)
	v.put(1, "plan_availability_info", "plan", id, "delivery", text(p, "availability", "delivery"), "alternative", text(p, "availability", "alternative"))
	locations, _ := at(p, "availability", "locations").([]string)
	for _, l := range locations {
		v.put(1, "plan_offered", "plan", id, "location", l)
	}
	v.put(at(p, "price", "monthly", "usd"), "plan_price_usd_per_month", "plan", id)
	v.put(at(p, "price", "monthly", "eur"), "plan_price_eur_per_month", "plan", id)
	v.put(times(at(p, "price", "setup_fee"), 1), "plan_setup_fee", "plan", id)
	v.put(at(p, "cpu", "cores"), "plan_cpu_cores", "plan", id)
	v.put(at(p, "cpu", "threads"), "plan_cpu_threads", "plan", id)
	v.put(times(at(p, "cpu", "base_ghz"), 1e9), "plan_cpu_base_frequency_hertz", "plan", id)
	v.put(times(at(p, "cpu", "boost_ghz"), 1e9), "plan_cpu_boost_frequency_hertz", "plan", id)
	v.put(times(at(p, "cpu", "l3_cache_mb"), 1<<20), "plan_cpu_l3_cache_bytes", "plan", id)
	v.put(times(at(p, "memory", "size_gb"), 1<<30), "plan_memory_bytes", "plan", id)
	v.put(at(p, "network", "ipv4"), "plan_ipv4_addresses", "plan", id)
}

func statusBook(v values, s simulator.Object) {
	v.put(1, "status_info", "overall", text(s, "overall"))
	v.put(at(s, "ongoing"), "incidents_ongoing")
	v.put(at(s, "scheduled"), "maintenances_scheduled")
	v.put(at(s, "since"), "status_since_timestamp_seconds")
	v.put(at(s, "updated_at"), "status_updated_timestamp_seconds")
	locations, _ := s["locations"].(simulator.Object)
	for id := range locations {
		components, _ := at(locations, id, "components").(simulator.Object)
		for name, state := range components {
			v.put(state == "operational", "component_operational", "location", id, "component", name)
			v.put(1, "component_state", "location", id, "component", name, "state", fmt.Sprint(state))
		}
	}
}

func accountBook(account string, a *simulator.Account) book {
	b := book{"account": {}, "topups": {}, "transactions": {}, "configurations": {}, "ssh_keys": {}, "servers": {}}
	b["account"].put(1, "account_info", "account", account, "id", text(a.Account, "id"), "name", text(a.Account, "name"))
	b["account"].put(at(a.Account, "balance", "usd"), "account_balance_usd", "account", account)
	b["account"].put(at(a.Account, "two_factor"), "account_two_factor_enabled", "account", account)
	b["account"].put(at(a.Account, "created_at"), "account_created_timestamp_seconds", "account", account)
	topupBook(b["topups"], account, a.Topups)
	transactionBook(b["transactions"], account, a.Transactions)
	for _, c := range a.Configurations {
		l, v := []string{"account", account, "configuration", text(c, "id")}, b["configurations"]
		v.put(1, "configuration_info", append(l, "plan", text(c, "plan"), "location", text(c, "location"), "os", text(c, "os"), "hostname", text(c, "hostname"))...)
		v.put(at(c, "in_stock"), "configuration_in_stock", l...)
		v.put(at(c, "price", "monthly", "usd"), "configuration_price_usd_per_month", l...)
		v.put(at(c, "price", "monthly", "eur"), "configuration_price_eur_per_month", l...)
		v.put(at(c, "created_at"), "configuration_created_timestamp_seconds", l...)
	}
	b["configurations"].put(len(a.Configurations), "configurations", "account", account)
	b["configurations"].put(20, "configurations_limit", "account", account)
	for _, k := range a.SSHKeys {
		l := []string{"account", account, "ssh_key", text(k, "id")}
		b["ssh_keys"].put(1, "ssh_key_info", append(l, "name", text(k, "name"), "type", text(k, "type"), "fingerprint", text(k, "fingerprint"))...)
		b["ssh_keys"].put(at(k, "created_at"), "ssh_key_created_timestamp_seconds", l...)
	}
	b["ssh_keys"].put(len(a.SSHKeys), "ssh_keys", "account", account)
	serverBook(b["servers"], account, a.Servers)
	return b
}

func topupBook(v values, account string, list []simulator.Object) {
	counts := map[string]int{}
	for _, s := range strings.Fields("pending confirming paid expired failed canceled") {
		counts[s] = 0
	}
	last := ""
	for _, t := range list {
		status := text(t, "status")
		counts[status]++
		if paid := text(t, "paid_at"); paid > last {
			last = paid
		}
		if status != "pending" && status != "confirming" {
			continue
		}
		l := []string{"account", account, "topup", text(t, "id")}
		v.put(1, "topup_info", append(l, "status", status, "coin", text(t, "coin"), "network", text(t, "network"))...)
		v.put(at(t, "amount", "usd"), "topup_amount_usd", l...)
		v.put(times(at(t, "bonus_percent"), 0.01), "topup_bonus_ratio", l...)
		v.put(at(t, "confirmations"), "topup_confirmations", l...)
		v.put(at(t, "confirmations_needed"), "topup_confirmations_needed", l...)
		v.put(at(t, "created_at"), "topup_created_timestamp_seconds", l...)
		v.put(at(t, "payment", "rate_locked_until"), "topup_rate_locked_until_timestamp_seconds", l...)
	}
	for status, n := range counts {
		v.put(n, "topups", "account", account, "status", status)
	}
	if last != "" {
		v.put(last, "topup_last_paid_timestamp_seconds", "account", account)
	}
}

func transactionBook(v values, account string, list []simulator.Object) {
	n, credit, debit := map[string]int{}, map[string]int{}, map[string]int{}
	for _, x := range list {
		kind := text(x, "type")
		n[kind]++
		amount, _ := at(x, "amount", "usd").(float64)
		if cents := int(math.Round(amount * 100)); cents > 0 {
			credit[kind] += cents
		} else {
			debit[kind] -= cents
		}
	}
	for kind := range n {
		l := []string{"account", account, "type", kind}
		v.put(n[kind], "transactions_total", l...)
		v.put(float64(credit[kind])/100, "transactions_credit_usd_total", l...)
		v.put(float64(debit[kind])/100, "transactions_debit_usd_total", l...)
	}
}

func serverBook(v values, account string, list []simulator.Object) {
	counts, cost := map[string]int{"active": 0, "suspended": 0}, 0
	for _, s := range list {
		counts[text(s, "status")]++
		l := []string{"account", account, "server", text(s, "id")}
		v.put(1, "server_info", append(l, "plan", text(s, "plan"), "name", text(s, "name"), "location", text(s, "location"),
			"os", text(s, "os"), "hostname", text(s, "hostname"))...)
		v.put(1, "server_status", append(l, "status", text(s, "status"))...)
		v.put(at(s, "price", "monthly", "usd"), "server_price_usd_per_month", l...)
		v.put(at(s, "renews_at"), "server_renews_timestamp_seconds", l...)
		v.put(at(s, "created_at"), "server_created_timestamp_seconds", l...)
		usd, _ := at(s, "price", "monthly", "usd").(float64)
		cost += int(math.Round(usd * 100))
	}
	for status, n := range counts {
		v.put(n, "servers", "account", account, "status", status)
	}
	v.put(counts["active"], "servers_active", "account", account)
	v.put(float64(cost)/100, "account_cost_usd_per_month", "account", account)
}
