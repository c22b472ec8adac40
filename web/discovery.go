package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"

	"server_rental_exporter/collector"
)

// targetGroup is one entry of Prometheus' HTTP service discovery.
type targetGroup struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// discovery serves each active server as a target. Prometheus keeps its last list
// after an error, so an error is better than a partial list.
func discovery(active func(account string) ([]collector.Server, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		port := query.Get("port")
		if n, err := strconv.ParseUint(port, 10, 16); query.Has("port") && (err != nil || n == 0 || port[0] == '0') {
			http.Error(w, "port: must be a number from 1 to 65535", http.StatusBadRequest)
			return
		}
		servers, err := active(query.Get("account"))
		if errors.Is(err, collector.ErrUnknownAccount) {
			http.Error(w, "account: no such account is configured", http.StatusNotFound)
			return
		}
		var groups []targetGroup
		if err == nil {
			groups, err = targets(servers, port)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(groups) // an error means that the client left
	})
}

// targets returns a target for each server's first address. A server without one is
// not reachable yet and is no target; text that is no address, or one that would lead
// Prometheus to another machine, is an error.
func targets(servers []collector.Server, port string) ([]targetGroup, error) {
	groups := make([]targetGroup, 0, len(servers))
	for _, s := range servers {
		if s.IPv4 == "" {
			continue
		}
		addr, err := netip.ParseAddr(s.IPv4)
		addr = addr.Unmap()
		if err != nil || addr.Zone() != "" || addr.IsLoopback() || addr.IsUnspecified() || addr.IsMulticast() || addr.IsLinkLocalUnicast() {
			return nil, fmt.Errorf("servers: account %s: server %s: ipv4: not the address of a server", s.Account, s.ID)
		}
		target := addr.String()
		switch {
		case port != "":
			target = net.JoinHostPort(target, port)
		case addr.Is6(): // Prometheus adds its own port only to one in brackets
			target = "[" + target + "]"
		}
		groups = append(groups, targetGroup{
			Targets: []string{target},
			Labels: map[string]string{
				"__meta_server_rental_account":  s.Account,
				"__meta_server_rental_server":   s.ID,
				"__meta_server_rental_plan":     s.Plan,
				"__meta_server_rental_location": s.Location,
				"__meta_server_rental_os":       s.OS,
				"__meta_server_rental_hostname": s.Hostname,
				"__meta_server_rental_status":   s.Status,
			},
		})
	}
	return groups, nil
}
