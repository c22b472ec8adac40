package main

import (
	"fmt"
	"net/http"
	"strings"
)

// digitalocean serves the DigitalOcean API: droplets, 20 on a page unless asked for
// more, an account with its balance, and otherwise empty lists.
func digitalocean(droplets int) http.Handler {
	const defaultSize = 20
	all := objects(droplets, droplet)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		switch name {
		case "account":
			writeJSON(w, object{"account": object{"droplet_limit": 25, "floating_ip_limit": 5, "email": "user@example.com", "uuid": "b6fr89dbf6d9156cace5f3c78dc9851d957381ef", "email_verified": true, "status": "active"}})
			return
		case "balance":
			writeJSON(w, object{"month_to_date_balance": "23.44", "account_balance": "12.23", "month_to_date_usage": "11.21", "generated_at": "2026-07-09T15:01:12Z"})
			return
		}
		items := []object{}
		if name == "droplets" {
			items = all
		}
		number, first, last := page(r, defaultSize, len(items))
		pages := object{}
		link := func(number int) string {
			return fmt.Sprintf("https://api.digitalocean.com%s?page=%d", r.URL.Path, number)
		}
		if number > 1 {
			pages["first"], pages["prev"] = link(1), link(number-1)
		}
		if last < len(items) {
			pages["next"], pages["last"] = link(number+1), link((len(items)+defaultSize-1)/defaultSize)
		}
		writeJSON(w, object{name: items[first:last], "links": object{"pages": pages}, "meta": object{"total": len(items)}})
	})
}

// droplet returns a droplet with the fields of the documented answer.
func droplet(id int) object {
	regions := []string{"ams2", "ams3", "blr1", "fra1", "lon1", "nyc1", "nyc2", "nyc3", "sfo1", "sfo2", "sgp1", "tor1"}
	address := func(kind, ip string) object {
		return object{"ip_address": ip, "netmask": "255.255.240.0", "gateway": "192.0.2.1", "type": kind}
	}
	return object{
		"id": id, "name": fmt.Sprintf("droplet-%d", id), "memory": 1024, "vcpus": 1, "disk": 25, "locked": false, "status": "active", "kernel": nil,
		"created_at": "2026-07-21T18:37:44Z", "features": []string{"backups", "private_networking", "ipv6"}, "backup_ids": []int{53893572},
		"next_backup_window": object{"start": "2026-07-30T00:00:00Z", "end": "2026-07-30T23:00:00Z"}, "snapshot_ids": []int{67512819},
		"image": object{
			"id": 63663980, "name": "20.04 (LTS) x64", "distribution": "Ubuntu", "slug": "ubuntu-20-04-x64", "public": true, "regions": regions,
			"created_at": "2026-05-15T05:47:50Z", "type": "snapshot", "min_disk_size": 20, "size_gigabytes": 2.36, "description": "", "tags": []string{}, "status": "available", "error_message": "",
		},
		"volume_ids": []string{}, "size": object{
			"slug": "s-1vcpu-1gb", "memory": 1024, "vcpus": 1, "disk": 25, "transfer": 1, "price_monthly": 5, "price_hourly": 0.00743999984115362, "regions": regions, "available": true, "description": "Basic",
		},
		"size_slug": "s-1vcpu-1gb", "networks": object{
			"v4": []object{address("private", "10.128.192.124"), address("public", "192.0.2.10")},
			"v6": []object{{"ip_address": "2001:db8::1", "netmask": 64, "gateway": "2001:db8::", "type": "public"}},
		},
		"region": object{"name": "New York 3", "slug": "nyc3", "features": []string{"private_networking", "backups", "ipv6", "metadata"}, "available": true, "sizes": []string{"s-1vcpu-1gb", "s-1vcpu-2gb", "s-1vcpu-3gb", "s-2vcpu-2gb", "s-3vcpu-1gb", "s-2vcpu-4gb", "s-4vcpu-8gb"}},
		"tags":   []string{"web", "env:prod"}, "vpc_uuid": "760e09ef-dc84-11e8-981e-3cfdfeaae000",
	}
}
