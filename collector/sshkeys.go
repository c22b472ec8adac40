package collector

import (
	"time"

	"server_rental_exporter/internal/metric"
)

// sshKey is API.md's SSH key, without the key itself. Revision 1.0 has no type.
type sshKey struct {
	ID          string
	Name        string
	Type        string
	Fingerprint string
	CreatedAt   *instant `json:"created_at"`
}

type sshKeysMeta struct{ Count *count }

var (
	sshKeysCount  = metric.Gauge("ssh_keys", "SSH keys of the account.", "ssh-keys meta.count", "account")
	sshKeyInfo    = metric.Gauge("ssh_key_info", "What an SSH key is; constant 1.", "SSH key", "account", "ssh_key", "name", "type", "fingerprint")
	sshKeyCreated = metric.Gauge("ssh_key_created_timestamp_seconds", "When an SSH key was added.", "SSH key created_at", "account", "ssh_key")
)

func sshKeys() Resource {
	return Resource{
		Name: "ssh_keys", Help: "SSH keys", Endpoint: "/ssh-keys", Account: true,
		Interval: 5 * time.Minute, MaxAge: 30 * time.Minute, Requests: 1,
		Metrics: []*metric.Definition{sshKeysCount, sshKeyInfo, sshKeyCreated},
		open: func() fetch {
			return list[sshKey, sshKeysMeta]{
				endpoint: "/ssh-keys", most: mostItems,
				id: func(k *sshKey) string { return k.ID },
				item: func(b *metric.Builder, k *sshKey) {
					b.Add(sshKeyInfo, 1, k.ID, k.Name, k.Type, k.Fingerprint)
					metric.Put(b, sshKeyCreated, k.CreatedAt, k.ID)
				},
				rest: func(b *metric.Builder, m *sshKeysMeta, _ []*sshKey) any {
					metric.Put(b, sshKeysCount, m.Count)
					return nil
				},
			}.fetch
		},
	}
}
