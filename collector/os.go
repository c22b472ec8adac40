package collector

import (
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

// osImage is the provider's OS image.
type osImage struct {
	ID             string
	Name           string
	Family         string
	Version        string
	Support        string
	InstallMinutes *count `json:"typical_install_minutes"`
	License        struct {
		USD      *quantity `json:"usd_per_core_month"`
		MinCores *count    `json:"min_cores"`
	} `api:"optional"`
}

type osPage = rentalapi.Page[osImage, struct {
	CustomISO *bool `json:"custom_iso"`
}]

var (
	osSet metric.Set

	osInfo      = osSet.Gauge("os_image_info", "Name, family, version and support window of an operating system image.", "os", "name", "family", "version", "support")
	osInstall   = osSet.Gauge("os_image_install_seconds", "Typical time in seconds from payment confirmation until a server with the image is online.", "os")
	osLicense   = osSet.Gauge("os_image_license_usd_per_core_month", "License fee of an image in US dollars per core and month, excluding VAT.", "os")
	osMinCores  = osSet.Gauge("os_image_license_min_cores", "Minimum number of cores that an image's license is charged for.", "os")
	osCustomISO = osSet.Gauge("os_custom_iso_supported", "Whether a custom ISO image can be used: 1 or 0.")
)

var osImages = Resource{
	Name: "os", Help: "operating system images and their license fees", Path: "/os",
	Timing: Timing{Interval: time.Hour, MaxAge: 6 * time.Hour}, MinInterval: time.Minute,
	Metrics: osSet,
	get:     getList(1_000, addOSImages),
}

func addOSImages(b *metric.Builder, page osPage, _ *Snapshot) {
	for _, o := range page.Items {
		b.Add(osInfo, 1, o.ID, o.Name, o.Family, o.Version, o.Support)
		metric.AddOptional(b, osInstall, scaled(o.InstallMinutes, 60), o.ID)
		metric.AddOptional(b, osLicense, o.License.USD, o.ID)
		metric.AddOptional(b, osMinCores, o.License.MinCores, o.ID)
	}
	b.AddBool(osCustomISO, page.Meta.CustomISO)
}
