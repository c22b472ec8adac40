package simulator

import (
	"strings"
	"time"
)

// planSpec is a compact description of a plan.
type planSpec struct {
	id, name, family    string
	cpu                 string
	cores, threads      int
	base, boost         float64
	architecture, cache any // nil if the provider does not publish it
	memory              int
	memoryType          string
	disks, port         string
	usd, eur            float64
	locations           string
	gpu                 any
	stock               stock
}

type stock string

const (
	available stock = "in stock"
	soldOut   stock = "sold out"
)

const (
	america    = "nyc mia lax "
	europe     = "lon ams fra "
	asia       = "sin tyo"
	everywhere = america + europe + asia
)

func planSpecs() []planSpec {
	return []planSpec{
		{
			"xeon-e-2236", "Xeon E-2236", "entry", "Intel Xeon E-2236", 6, 12, 3.4, 4.8, "Coffee Lake", 12,
			32, "DDR4", "2x 480 GB SSD", "1 Gbps", 59.90, 54.90, everywhere, nil, available,
		},
		{
			"ryzen-5-3600", "Ryzen 5 3600", "entry", "AMD Ryzen 5 3600", 6, 12, 3.6, 4.2, "Zen 2", 32,
			64, "DDR4", "2x 512 GB NVMe", "1 Gbps", 64.90, 59.90, america + "ams fra", nil, soldOut,
		},
		{
			"xeon-e-2388g", "Xeon E-2388G", "performance", "Intel Xeon E-2388G", 8, 16, 3.2, 5.1, "Rocket Lake", 16,
			64, "DDR4", "2x 960 GB NVMe", "1 Gbps", 99.90, 91.90, everywhere, nil, available,
		},
		{
			"ryzen-5-7600", "Ryzen 5 7600", "performance", "AMD Ryzen 5 7600", 6, 12, 3.8, 5.1, "Zen 4", 32,
			64, "DDR5", "2x 1 TB NVMe", "1 Gbps", 89.90, 82.90, america + europe, nil, available,
		},
		{
			"ryzen-7-9700x", "Ryzen 7 9700X", "performance", "AMD Ryzen 7 9700X", 8, 16, 3.8, 5.5, "Zen 5", 32,
			64, "DDR5", "2x 1 TB NVMe", "1 Gbps", 119.90, 109.90, "nyc lax ams fra tyo", nil, available,
		},
		{
			"ryzen-9-9950x", "Ryzen 9 9950X", "performance", "AMD Ryzen 9 9950X", 16, 32, 4.3, 5.7, "Zen 5", 64,
			128, "DDR5", "2x 2 TB NVMe", "10 Gbps", 189.90, 174.90, everywhere, nil, soldOut,
		},
		{
			"ryzen-9-7950x3d", "Ryzen 9 7950X3D", "performance", "AMD Ryzen 9 7950X3D", 16, 32, 4.2, 5.7, "Zen 4", 128,
			128, "DDR5", "2x 2 TB NVMe", "10 Gbps", 199.90, 183.90, america + "ams fra sin", nil, available,
		},
		{
			"epyc-4464p", "EPYC 4464P", "enterprise", "AMD EPYC 4464P", 12, 24, 3.7, 5.4, "Zen 4", 64,
			128, "DDR5", "2x 1.92 TB NVMe", "10 Gbps", 179.90, 165.90, europe + asia, nil, available,
		},
		{
			"epyc-7443p", "EPYC 7443P", "enterprise", "AMD EPYC 7443P", 24, 48, 2.85, 4.0, "Zen 3", 128,
			256, "DDR4", "2x 1.92 TB NVMe", "10 Gbps", 279.90, 257.90, "nyc mia ams fra sin", nil, available,
		},
		{
			"epyc-9354p", "EPYC 9354P", "enterprise", "AMD EPYC 9354P", 32, 64, 3.25, 3.8, "Zen 4", 256,
			384, "DDR5", "2x 3.84 TB NVMe", "10 Gbps", 449.90, 413.90, "nyc lax lon fra tyo", nil, available,
		},
		{
			"epyc-9654", "EPYC 9654", "enterprise", "AMD EPYC 9654", 96, 192, 2.4, 3.7, "Zen 4", 384,
			768, "DDR5", "4x 3.84 TB NVMe", "25 Gbps", 899.00, 829.00, "nyc ams fra", nil, soldOut,
		},
		{
			"storage-64tb", "Storage 64 TB", "storage", "Intel Xeon Silver 4310", 12, 24, 2.1, 3.3, nil, nil,
			64, "DDR4", "4x 16 TB HDD + 2x 480 GB SSD", "1 Gbps", 159.90, 146.90, "nyc ams fra", nil, available,
		},
		{
			"storage-240tb", "Storage 240 TB", "storage", "AMD EPYC 7313P", 16, 32, 3.0, 3.7, "Zen 3", nil,
			128, "DDR4", "12x 20 TB HDD + 2x 960 GB NVMe", "10 Gbps", 429.90, 395.90, "nyc ams", nil, available,
		},
		{
			"gpu-rtx-4000-ada", "GPU RTX 4000 Ada", "gpu", "AMD Ryzen 9 7900", 12, 24, 3.7, 5.4, "Zen 4", 64,
			64, "DDR5", "2x 1 TB NVMe", "1 Gbps", 249.90, 229.90, "nyc lax fra",
			Object{"model": "NVIDIA RTX 4000 Ada", "memory": "20 GB GDDR6"},
			available,
		},
		{
			"gpu-l40s", "GPU L40S", "gpu", "AMD EPYC 9354P", 32, 64, 3.25, 3.8, "Zen 4", 256,
			256, "DDR5", "2x 3.84 TB NVMe", "10 Gbps", 1190.00, 1095.00, "nyc fra",
			Object{"model": "NVIDIA L40S", "memory": "48 GB GDDR6"},
			soldOut,
		},
	}
}

func plans() []Object {
	var list []Object
	for _, s := range planSpecs() {
		list = append(list, s.plan())
	}
	return list
}

// plan returns the documented object. recompute sets delivery and alternative.
func (s planSpec) plan() Object {
	return Object{
		"id": s.id, "name": s.name, "family": s.family,
		"cpu": Object{
			"model": s.cpu, "cores": s.cores, "threads": s.threads, "base_ghz": s.base, "boost_ghz": s.boost,
			"architecture": s.architecture, "l3_cache_mb": s.cache,
		},
		"memory":  Object{"size_gb": s.memory, "type": s.memoryType, "ecc": !strings.Contains(s.cpu, "Ryzen")},
		"storage": s.disks,
		"gpu":     s.gpu,
		"network": Object{"port": s.port, "bandwidth": "unmetered", "ipv4": 1, "ipv6": "/64", "ddos_protection": true},
		"price": Object{
			"monthly":   Object{"usd": s.usd, "eur": s.eur},
			"setup_fee": 0, "currency_note": "monthly, excluding VAT",
		},
		"availability": Object{
			"in_stock": s.stock == available, "delivery": nil, "alternative": nil,
			"locations": strings.Fields(s.locations),
		},
		"links": Object{"page": site + "/servers/" + s.id, "order": site + "/order?plan=" + s.id},
	}
}

// locations returns the locations. recompute sets the counts of plans.
func locations() []Object {
	place := func(id, iata, city, country, code, region string, lat, lon float64) Object {
		return Object{
			"id": id, "iata": iata, "city": city, "country": country, "country_code": code, "region": region,
			"coordinates": Object{"lat": lat, "lon": lon}, "plans": 0, "plans_in_stock": 0,
			"links": Object{"page": site + "/locations/" + id},
		}
	}
	return []Object{
		place("nyc", "JFK", "New York", "United States", "US", "North America", 40.7128, -74.006),
		place("mia", "MIA", "Miami", "United States", "US", "North America", 25.7617, -80.1918),
		place("lax", "LAX", "Los Angeles", "United States", "US", "North America", 34.0522, -118.2437),
		place("lon", "LHR", "London", "United Kingdom", "GB", "Europe", 51.5074, -0.1278),
		place("ams", "AMS", "Amsterdam", "Netherlands", "NL", "Europe", 52.3676, 4.9041),
		place("fra", "FRA", "Frankfurt", "Germany", "DE", "Europe", 50.1109, 8.6821),
		place("sin", "SIN", "Singapore", "Singapore", "SG", "Asia-Pacific", 1.3521, 103.8198),
		place("tyo", "NRT", "Tokyo", "Japan", "JP", "Asia-Pacific", 35.6762, 139.6503),
	}
}

func images() []Object {
	image := func(id, name, family, version, support string, minutes int, license any) Object {
		return Object{
			"id": id, "name": name, "family": family, "version": version, "support": support,
			"typical_install_minutes": minutes, "license": license,
		}
	}
	return []Object{
		image("ubuntu-24-04", "Ubuntu 24.04 LTS", "ubuntu", "24.04", "until April 2029", 2, nil),
		image("ubuntu-22-04", "Ubuntu 22.04 LTS", "ubuntu", "22.04", "until April 2027", 2, nil),
		image("debian-13", "Debian 13", "debian", "13", "until August 2028", 2, nil),
		image("debian-12", "Debian 12", "debian", "12", "until June 2028", 2, nil),
		image("almalinux-9", "AlmaLinux 9", "almalinux", "9", "until May 2032", 3, nil),
		image("rocky-9", "Rocky Linux 9", "rocky", "9", "until May 2032", 3, nil),
		image("freebsd-14", "FreeBSD 14", "freebsd", "14", "until November 2028", 4, nil),
		image("proxmox-9", "Proxmox VE 9", "proxmox", "9", "until August 2028", 5, nil),
		image("windows-2022", "Windows Server 2022", "windows", "2022", "until October 2031", 15,
			Object{"usd_per_core_month": 1.25, "min_cores": 8}),
		image("windows-2025", "Windows Server 2025", "windows", "2025", "until October 2034", 15,
			Object{"usd_per_core_month": 1.5, "min_cores": 8}),
	}
}

// operationalStatus returns the status without incidents.
func operationalStatus(locations []Object, now time.Time) Object {
	states := Object{}
	for _, l := range locations {
		states[Text(l, "id")] = Object{
			"city":       Text(l, "city"),
			"components": Object{"network": "operational", "ddos": "operational", "provisioning": "operational", "ipmi": "operational"},
		}
	}
	return Object{
		"overall": "operational", "since": date(now.AddDate(0, 0, -30)),
		"locations": states, "ongoing": 0, "scheduled": 0,
	}
}
