package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
)

// targetGroup is one target group of Prometheus' HTTP service discovery.
type targetGroup struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// discovery serves each active server as a target. Prometheus keeps its last list
// after an error, so an error is better than a partial list.
func discovery(active func(accounts []string) ([]collector.Server, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accounts, ports, err := parse(r.URL.RawQuery)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		servers, err := active(accounts)
		switch {
		case errors.Is(err, collector.ErrNoAccount):
			http.Error(w, "account: this exporter has no such account", http.StatusNotFound)
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		default:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(targets(servers, ports)) // an error means that the client left
		}
	})
}

// parse returns the accounts and the ports of a query, by default an empty port. It ignores nothing: without a
// misspelt account, the list would be that of all accounts.
func parse(query string) (accounts, ports []string, err error) {
	parameters, err := url.ParseQuery(query)
	if err != nil {
		return nil, nil, fmt.Errorf("query: %w", err)
	}
	accounts, ports = parameters["account"], parameters["port"]
	for _, port := range ports {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '0' {
			return nil, nil, errors.New("port: must be a number from 1 to 65535")
		}
	}
	if len(ports) == 0 {
		ports = []string{""}
	}
	delete(parameters, "account")
	delete(parameters, "port")
	if len(parameters) > 0 {
		return nil, nil, errors.New("query: unknown parameter: must be account or port")
	}
	return accounts, ports, nil
}

// targets returns a target for each port of each server whose address is valid, and leads Prometheus to no
// other machine than the server.
func targets(servers []collector.Server, ports []string) []targetGroup {
	groups := []targetGroup{}
	for _, s := range servers {
		addr := s.IPv4.Unmap()
		if !addr.IsGlobalUnicast() || addr.Zone() != "" {
			continue
		}
		var all []string
		for _, port := range ports { // Prometheus adds its port to an IPv6 address in brackets only
			all = append(all, strings.TrimSuffix(net.JoinHostPort(addr.String(), port), ":"))
		}
		groups = append(groups, targetGroup{all, map[string]string{
			"__meta_server_rental_account":  s.Account,
			"__meta_server_rental_server":   s.ID,
			"__meta_server_rental_plan":     s.Plan,
			"__meta_server_rental_location": s.Location,
			"__meta_server_rental_os":       s.OS,
			"__meta_server_rental_hostname": s.Hostname,
			"__meta_server_rental_status":   s.Status,
		}})
	}
	return groups
}
