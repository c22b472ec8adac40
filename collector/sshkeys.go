package collector

import (
	"time"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
)

// sshKey is the provider's SSH key, without public_key. Revision 1.0 of the API has
// no type.
type sshKey struct {
	ID          string
	Name        string
	Type        string `api:"new"`
	Fingerprint string
	CreatedAt   *timestamp `json:"created_at"`
}

var (
	sshKeysCount  = metric.Gauge("ssh_keys", "SSH keys of the account.", "number of SSH key", "account")
	sshKeyInfo    = metric.Gauge("ssh_key_info", "Name, algorithm and fingerprint of an SSH key; constant 1.", "SSH key", "account", "ssh_key", "name", "type", "fingerprint")
	sshKeyCreated = metric.Gauge("ssh_key_created_timestamp_seconds", "When an SSH key was added.", "SSH key created_at", "account", "ssh_key")
)

func sshKeys() Resource {
	return Resource{
		Name: "ssh_keys", Help: "SSH keys", Path: "/ssh-keys", Account: true,
		Interval: 5 * time.Minute, MaxAge: 30 * time.Minute,
		Metrics: []*metric.Definition{sshKeysCount, sshKeyInfo, sshKeyCreated},
		get: list(
			rentalapi.List[sshKey]{Path: "/ssh-keys", MaxItems: maxItems, ID: func(k *sshKey) string { return k.ID }},
			func(b *metric.Builder, k *sshKey) {
				b.Add(sshKeyInfo, 1, k.ID, k.Name, k.Type, k.Fingerprint)
				metric.AddOptional(b, sshKeyCreated, k.CreatedAt, k.ID)
			},
			func(b *metric.Builder, p rentalapi.Page[sshKey, struct{}], _ *Snapshot) {
				b.Add(sshKeysCount, float64(p.Count))
			},
		),
	}
}
