package simulator_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// shapes returns the documented fields of each list: path and type.
// A type that may be null ends with "?".
func shapes() map[string]string {
	return map[string]string{
		"/plans": `id string; name string; family string; cpu.model string; cpu.cores int; cpu.threads int; cpu.base_ghz number;
			cpu.boost_ghz number; cpu.architecture string?; cpu.l3_cache_mb int?; memory.size_gb int; memory.type string;
			memory.ecc bool; storage string; gpu object?; network.port string; network.bandwidth string; network.ipv4 int;
			network.ipv6 string; network.ddos_protection bool; price.monthly.usd number; price.monthly.eur number;
			price.setup_fee number; price.currency_note string; availability.in_stock bool; availability.delivery string;
			availability.locations array; availability.alternative string?; links.page string; links.order string`,
		"/locations": `id string; iata string; city string; country string; country_code string; region string;
			coordinates.lat number; coordinates.lon number; plans int; plans_in_stock int; links.page string`,
		"/os":      `id string; name string; family string; version string; support string; typical_install_minutes int; license object?`,
		"/account": `id string; email string; name string?; balance.usd number; two_factor bool; created_at string`,
		"/topups": `id string; status string; amount.usd number; bonus_percent int; coin string; ticker string; network string;
			payment object?; confirmations int?; confirmations_needed int; tx_hash string?; credited object?;
			created_at string; paid_at string?; links.page string`,
		"/transactions": `id int; type string; amount.usd number; balance_after.usd number; description string; topup string?; created_at string`,
		"/configurations": `id string; plan string; location string; os string; hostname string; options.ipv4_extra int;
			options.port_10g bool; options.nvme null; options.hdd_extra int; options.backup null; options.raid string; lines array;
			price.monthly.usd number; price.monthly.eur number; price.currency_note string; in_stock bool; created_at string; links.order string`,
		"/ssh-keys": `id string; name string; type string; fingerprint string; public_key string; created_at string`,
		"/servers": `id string; plan string; name string; location string; os string; hostname string; ipv4 string; status string;
			price.monthly.usd number; renews_at string; created_at string`,
	}
}

// objectShapes returns the fields of the objects that may be null.
func objectShapes() map[string]string {
	return map[string]string{
		"gpu":      "model string; memory string",
		"license":  "usd_per_core_month number; min_cores int",
		"payment":  "address string; amount string; memo string?; uri string; rate_locked_until string",
		"credited": "usd number; bonus_usd number",
	}
}

func parseShape(shape string) map[string]string {
	fields := map[string]string{}
	for field := range strings.SplitSeq(shape, ";") {
		path, kind, _ := strings.Cut(strings.TrimSpace(field), " ")
		fields[path] = kind
	}
	return fields
}

// shapeErrors returns the fields of an object that are missing, unknown or of a wrong type.
func shapeErrors(o simulator.Object, shape map[string]string) []string {
	var faults []string
	found := map[string]bool{}
	flatten(o, shape, "", func(path string, v any) {
		found[path] = true
		if !fits(v, shape[path]) {
			faults = append(faults, fmt.Sprintf("%s is %v, want %q", path, v, shape[path]))
		}
		if inner, ok := v.(simulator.Object); ok {
			faults = append(faults, shapeErrors(inner, parseShape(objectShapes()[path]))...)
		}
	})
	for path := range shape {
		if !found[path] {
			faults = append(faults, path+" is missing")
		}
	}
	return faults
}

func flatten(o simulator.Object, shape map[string]string, prefix string, visit func(string, any)) {
	for key, v := range o {
		inner, nested := v.(simulator.Object)
		if _, whole := shape[prefix+key]; nested && !whole {
			flatten(inner, shape, prefix+key+".", visit)
			continue
		}
		visit(prefix+key, v)
	}
}

func fits(v any, kind string) bool {
	kind, nullable := strings.CutSuffix(kind, "?")
	switch x := v.(type) {
	case nil:
		return nullable || kind == "null"
	case string:
		return kind == "string" && x != ""
	case bool:
		return kind == "bool"
	case float64:
		return kind == "number" || kind == "int" && x == math.Trunc(x)
	case simulator.Object:
		return kind == "object"
	}
	return kind == "array"
}

func TestEveryObjectHasTheDocumentedFields(t *testing.T) {
	a := simtest.Start(t, simulator.Options{})
	for path, shape := range shapes() {
		data := get(t, a, path, simtest.MainToken).object(t)["data"]
		list, many := data.([]any)
		if !many {
			list = []any{data}
		}
		if len(list) == 0 {
			t.Errorf("%s: no objects to look at", path)
		}
		for _, o := range list {
			for _, fault := range shapeErrors(o.(simulator.Object), parseShape(shape)) {
				t.Errorf("%s %v: %s", path, o.(simulator.Object)["id"], fault)
			}
		}
	}
}

func TestStatusHasTheDocumentedFields(t *testing.T) {
	status := get(t, simtest.Start(t, simulator.Options{}), "/status", "").object(t)["data"].(simulator.Object)
	simtest.AssertEqual(t, "fields", slices.Sorted(maps.Keys(status)), strings.Fields("locations ongoing overall scheduled since updated_at"))
	components := simulator.Object{"network": "operational", "ddos": "operational", "provisioning": "operational", "ipmi": "operational"}
	want := simulator.Object{}
	for id, city := range map[string]string{
		"nyc": "New York", "mia": "Miami", "lax": "Los Angeles", "lon": "London",
		"ams": "Amsterdam", "fra": "Frankfurt", "sin": "Singapore", "tyo": "Tokyo",
	} {
		want[id] = simulator.Object{"city": city, "components": components}
	}
	simtest.AssertEqual(t, "locations", status["locations"], any(want))
}
