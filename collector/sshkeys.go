package collector

import (
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

// sshKey is the provider's SSH key, without public_key. Revision 1.0 of the API has no type.
type sshKey struct {
	ID          string
	Name        string
	Type        string `api:"new"`
	Fingerprint string
	CreatedAt   *timestamp `json:"created_at"`
}

var (
	sshKeySet metric.Set

	sshKeysCount   = sshKeySet.Gauge("ssh_keys", "SSH keys of the account.", "account")
	sshKeyInfo     = sshKeySet.Gauge("ssh_key_info", "Name, algorithm and fingerprint of an SSH key.", "account", "ssh_key", "name", "type", "fingerprint")
	sshKeyCreated  = sshKeySet.Gauge("ssh_key_created_timestamp_seconds", "When an SSH key was added.", "account", "ssh_key")
	sshKeysChanged = sshKeySet.Gauge("ssh_keys_changed_timestamp_seconds", "When the exporter last saw an SSH key come or go, by its id, type or fingerprint.", "account")
)

var sshKeys = Resource{
	Name: "ssh_keys", Help: "SSH keys", Path: "/ssh-keys", Account: true,
	Timing:  Timing{Interval: 5 * time.Minute, MaxAge: 30 * time.Minute},
	Metrics: sshKeySet,
	get:     getList(2_000, addSSHKeys),
	changes: &changeKind{
		changes: []change{
			{of: attrPresence, to: isListed, event: "ssh key added", lastOfAny: sshKeysChanged},
			{of: attrPresence, to: isGone, event: "ssh key removed", lastOfAny: sshKeysChanged},
			{of: attrState, lastOfAny: sshKeysChanged}, // its type
		},
		forgets: true,
	},
}

func addSSHKeys(b *metric.Builder, page rentalapi.Page[sshKey, struct{}], s *Snapshot) {
	for _, k := range page.Items {
		b.Add(sshKeyInfo, 1, k.ID, k.Name, k.Type, k.Fingerprint)
		metric.AddOptional(b, sshKeyCreated, k.CreatedAt, k.ID)
		s.items = append(s.items, item{id: k.ID, values: values{attrIdentity: k.Fingerprint, attrState: k.Type}, keys: [][2]string{{"ssh_key", k.ID}, {"name", k.Name}}})
	}
	b.Add(sshKeysCount, float64(page.Count))
}
