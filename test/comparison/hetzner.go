package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// object is a JSON object.
type object map[string]any

// hetzner serves the Hetzner Cloud API: servers, 25 on a page unless asked for more,
// and otherwise empty lists.
func hetzner(servers int) http.Handler {
	const defaultSize = 25
	all := objects(servers, hetznerServer)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/v1/")
		items := []object{}
		if name == "servers" {
			items = all
		}
		number, first, last := page(r, defaultSize, len(items))
		pagination := object{"page": number, "per_page": max(1, last-first), "total_entries": len(items), "next_page": nil, "previous_page": nil, "last_page": number}
		if last < len(items) {
			pagination["next_page"] = number + 1
		}
		answer := object{name: items[first:last], "meta": object{"pagination": pagination}}
		if name == "pricing" {
			answer = object{"pricing": hetznerPricing()}
		}
		writeJSON(w, answer)
	})
}

// objects returns n objects with the ids from 1 on.
func objects(n int, build func(id int) object) []object {
	all := make([]object, n)
	for i := range all {
		all[i] = build(i + 1)
	}
	return all
}

func writeJSON(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func hetznerPrice(amount string) object { return object{"net": amount, "gross": amount} }

func hetznerPricing() object {
	return object{
		"currency": "EUR", "vat_rate": "19.00", "image": object{"price_per_gb_month": hetznerPrice("0.0110")},
		"floating_ip": object{"price_monthly": hetznerPrice("3.0000")}, "floating_ips": []object{}, "primary_ips": []object{},
		"load_balancer_types": []object{}, "server_types": []object{}, "server_backup": object{"percentage": "20.00"},
		"volume": object{"price_per_gb_month": hetznerPrice("0.0440")}, "traffic": object{"price_per_tb": hetznerPrice("1.0000")},
	}
}

// hetznerServer returns a server with the fields of the documented answer.
func hetznerServer(id int) object {
	location := object{"id": 1, "name": "fsn1", "description": "Falkenstein DC Park 1", "country": "DE", "city": "Falkenstein", "latitude": 50.47612, "longitude": 12.370071, "network_zone": "eu-central"}
	var prices []object
	for _, name := range []string{"fsn1", "nbg1", "hel1", "ash", "hil", "sin"} {
		prices = append(prices, object{
			"location": name, "price_hourly": hetznerPrice("0.0060000000"), "price_monthly": hetznerPrice("3.7900000000"),
			"included_traffic": 21990232555520, "price_per_tb_traffic": hetznerPrice("1.0000000000"),
		})
	}
	return object{
		"id": id, "name": fmt.Sprintf("server-%d", id), "status": "running", "created": "2026-01-30T23:55:00+00:00",
		"public_net": object{
			"ipv4":         object{"id": id, "ip": "192.0.2.1", "blocked": false, "dns_ptr": "server.example.com"},
			"ipv6":         object{"id": id, "ip": "2001:db8::/64", "blocked": false, "dns_ptr": []object{{"ip": "2001:db8::1", "dns_ptr": "server.example.com"}}},
			"floating_ips": []int{}, "firewalls": []object{{"id": 42, "status": "applied"}},
		},
		"private_net": []object{{"network": 4711, "ip": "10.0.0.2", "alias_ips": []string{}, "mac_address": "86:00:ff:2a:7d:e1"}},
		"server_type": object{
			"id": 22, "name": "cpx11", "description": "CPX 11", "category": "Shared vCPU", "cores": 2, "memory": 2, "disk": 40, "deprecated": false,
			"prices": prices, "storage_type": "local", "cpu_type": "shared", "architecture": "x86",
		},
		"location": location, "datacenter": object{"id": 4, "name": "fsn1-dc14", "description": "Falkenstein DC 14", "location": location},
		"image": object{
			"id": 42, "type": "system", "status": "available", "name": "debian-13", "description": "Debian 13", "image_size": nil, "disk_size": 5,
			"created": "2026-01-30T23:55:00+00:00", "created_from": nil, "bound_to": nil, "os_flavor": "debian", "os_version": "13", "rapid_deploy": true,
			"protection": object{"delete": false}, "deprecated": nil, "labels": object{}, "architecture": "x86",
		},
		"iso": nil, "rescue_enabled": false, "locked": false, "backup_window": "22-02", "outgoing_traffic": 123456, "ingoing_traffic": 123456,
		"included_traffic": 21990232555520, "protection": object{"delete": false, "rebuild": false}, "labels": object{"environment": "prod"},
		"volumes": []int{}, "load_balancers": []int{}, "primary_disk_size": 40, "placement_group": nil,
	}
}
