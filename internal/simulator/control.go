package simulator

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// controls are the commands to a simulator, by path.
var controls = map[string]func(w *World, form url.Values) error{
	"/stock": setStock, "/payment": pay, "/server": setServer, "/failure": setFailure,
}

// Control returns a handler of POST requests that change what a simulator serves. Parameters
// are in the query or in a form.
func Control(s *Simulator) http.Handler {
	mux := http.NewServeMux()
	for path, control := range controls {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			err := r.ParseForm()
			if err == nil {
				s.Change(func(w *World) { err = control(w, r.Form) })
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			fmt.Fprintln(w, "done")
		})
	}
	return mux
}

// setStock lets a plan come in stock or sell out, in a location or in all.
func setStock(w *World, form url.Values) error {
	plan, location := form.Get("plan"), form.Get("location")
	if find(w.Plans, hasID(plan)) == nil {
		return fmt.Errorf("plan %q: unknown", plan)
	}
	if location != "" && find(w.Locations, hasID(location)) == nil {
		return fmt.Errorf("location %q: unknown", location)
	}
	stock, err := strconv.ParseBool(form.Get("in_stock"))
	if err != nil {
		return fmt.Errorf("in_stock: %w", err)
	}
	w.SetStock(plan, location, stock)
	return nil
}

// pay pays the newest open top-up of an account.
func pay(w *World, form url.Values) error {
	for _, a := range w.accounts() {
		open := find(a.Topups, func(t Object) bool { return Text(t, "status") == "pending" || Text(t, "status") == "confirming" })
		if open != nil && Text(a.Account, "name") == form.Get("account") {
			a.credit(open, time.Now())
			return nil
		}
	}
	return fmt.Errorf("account %q: unknown, or without an open top-up", form.Get("account"))
}

// setServer sets the status of a server.
func setServer(w *World, form url.Values) error {
	for _, a := range w.accounts() {
		if server := find(a.Servers, hasID(form.Get("server"))); server != nil {
			server["status"] = form.Get("status")
			return nil
		}
	}
	return fmt.Errorf("server %q: unknown", form.Get("server"))
}

// setFailure lets an endpoint fail with an HTTP status until that is 200.
func setFailure(w *World, form url.Values) error {
	status, err := strconv.Atoi(form.Get("status"))
	if err != nil || status < 200 || status > 599 {
		return fmt.Errorf("status %q: must be from 200 to 599", form.Get("status"))
	}
	if _, known := route(&url.URL{Path: Prefix + form.Get("path")}); !known {
		return fmt.Errorf("path %q: unknown", form.Get("path"))
	}
	w.Failing[form.Get("path")] = status
	return nil
}
