// Package demo has the accounts and the watches of the exporter's demo.
package demo

import "github.com/server-rental-exporter/server_rental_exporter/collector"

// Accounts returns the names of the accounts by token.
func Accounts() map[string]string {
	return map[string]string{"demo-token-of-lab": "lab", "demo-token-of-main": "main"}
}

// Watches returns the watches, for a configuration that has none.
func Watches() []collector.Watch {
	gpu, memory, cheap, midrange := true, 64.0, 100.0, 300.0
	return []collector.Watch{
		{Name: "cheap-in-europe", Regions: []string{"Europe"}, MinMemoryGiB: &memory, MaxUSDPerMonth: &cheap},
		{Name: "midrange", MinMemoryGiB: &memory, MaxUSDPerMonth: &midrange}, // hits every few minutes
		{Name: "gpu-in-frankfurt", Locations: []string{"fra"}, GPU: &gpu},
	}
}
