package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"server_rental_exporter/collector"
)

// targetGroup is one entry of Prometheus' HTTP service discovery.
type targetGroup struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// discovery serves each active server as a target. Prometheus keeps its last list
// after an error, so an error is better than a partial list: all targets are made before
// the first is written, and made again to be written, so that none is kept.
func discovery(active func(account string) (collector.Servers, error)) http.Handler {
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
		if err == nil {
			err = writeTargets(io.Discard, servers, port)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = writeTargets(w, servers, port) // an error means that the client left
	})
}

// writeTargets writes a target for each server's first address. A server without one is
// not reachable yet and is no target; text that is no address, or one that would lead
// Prometheus to another machine, is an error.
func writeTargets(w io.Writer, servers collector.Servers, port string) error {
	separator := "["
	for s := range servers {
		if s.IPv4 == "" {
			continue
		}
		addr, err := netip.ParseAddr(s.IPv4)
		addr = addr.Unmap()
		if err != nil || addr.Zone() != "" || addr.IsLoopback() || addr.IsUnspecified() || addr.IsMulticast() || addr.IsLinkLocalUnicast() {
			return fmt.Errorf("servers: account %s: server %s: ipv4: not the address of a server", s.Account, s.ID)
		}
		target := addr.String()
		switch {
		case port != "":
			target = net.JoinHostPort(target, port)
		case addr.Is6(): // Prometheus adds its own port only to one in brackets
			target = "[" + target + "]"
		}
		group, _ := json.Marshal(targetGroup{ // texts do not fail
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
		if _, err := fmt.Fprintf(w, "%s%s", separator, group); err != nil {
			return err
		}
		separator = ","
	}
	_, err := fmt.Fprintln(w, strings.TrimPrefix(separator, ",")+"]")
	return err
}
