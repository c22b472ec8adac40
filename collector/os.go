package collector

import (
	"time"

	"server_rental_exporter/internal/metric"
)

// osImage is API.md's OS image.
type osImage struct {
	ID             string
	Name           string
	Family         string
	Version        string
	Support        string
	InstallMinutes *count `json:"typical_install_minutes"`
	License        struct {
		USD      *price `json:"usd_per_core_month"`
		MinCores *count `json:"min_cores"`
	}
}

type osMeta struct {
	CustomISO *bool `json:"custom_iso"`
}

var (
	osInfo      = metric.Gauge("os_image_info", "What an operating system image is; constant 1.", "OS image", "os", "name", "family", "version", "support")
	osInstall   = metric.Gauge("os_image_install_seconds", "Typical time from the confirmation of payment until a server with the image is online.", "OS image typical_install_minutes", "os")
	osLicense   = metric.Gauge("os_image_license_usd_per_core_month", "License fee of an image in US dollars a core and month; absent where there is none.", "OS image license.usd_per_core_month", "os")
	osMinCores  = metric.Gauge("os_image_license_min_cores", "Least number of cores for which an image's license is charged; absent where there is none.", "OS image license.min_cores", "os")
	osCustomISO = metric.Gauge("os_custom_iso_supported", "Whether a server can be installed from an own ISO image: 1 or 0.", "os meta.custom_iso")
)

func osImages() Resource {
	return Resource{
		Name: "os", Help: "operating system images and their license fees", Endpoint: "/os",
		Interval: time.Hour, MaxAge: 6 * time.Hour, MinInterval: time.Minute, Requests: 1,
		Metrics: []*metric.Definition{osInfo, osInstall, osLicense, osMinCores, osCustomISO},
		open: func() fetch {
			return list[osImage, osMeta]{
				endpoint: "/os", most: mostItems,
				id: func(o *osImage) string { return o.ID },
				item: func(b *metric.Builder, o *osImage) {
					b.Add(osInfo, 1, o.ID, o.Name, o.Family, o.Version, o.Support)
					metric.Put(b, osInstall, scaled(o.InstallMinutes, 60), o.ID)
					metric.Put(b, osLicense, o.License.USD, o.ID)
					metric.Put(b, osMinCores, o.License.MinCores, o.ID)
				},
				rest: func(b *metric.Builder, m *osMeta, _ []*osImage) any {
					b.Bool(osCustomISO, m.CustomISO)
					return nil
				},
			}.fetch
		},
	}
}
