package simulator

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// controls are the commands to a simulator, by path.
var controls = map[string]func(w *World, form url.Values) error{
	"/stock": setStock, "/plan": setPlan, "/server": setServer, "/ssh-key": setKey, "/topup": setTopup, "/component": setComponent,
	"/failure": setFailure,
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

// setPlan adds a plan to the catalog, changes its price, or removes it.
func setPlan(w *World, form url.Values) error {
	plans := newCatalog().Plans
	example := plans[0]
	if p := find(plans, hasID(form.Get("plan"))); p != nil {
		example = p
	}
	err := setItem(&w.Plans, form, "plan", example)
	recompute(w)
	return err
}

// setServer adds a server to an account, changes its status or price, or removes it.
func setServer(w *World, form url.Values) error {
	for _, a := range w.accounts() {
		isThere := find(a.Servers, hasID(form.Get("server"))) != nil
		if isThere || form.Has("account") && Text(a.Account, "name") == form.Get("account") {
			return setItem(&a.Servers, form, "server", exampleServers(form.Get("server"), 1, time.Now())[0])
		}
	}
	return fmt.Errorf("server %q: unknown, and no known account to add it to", form.Get("server"))
}

// setKey adds an SSH key to an account, changes its fingerprint, or removes it.
func setKey(w *World, form url.Values) error {
	a, err := w.account(form)
	if err != nil {
		return err
	}
	return setItem(&a.SSHKeys, form, "ssh_key", exampleKeys(form.Get("ssh_key"), time.Now())[0])
}

// setItem changes the item of a list that the form names: it adds the example under that id, sets
// the fields that are given, or removes the item.
func setItem(list *[]Object, form url.Values, name string, example Object) error {
	id, price := form.Get(name), form.Get("usd")
	usd, err := strconv.ParseFloat(price, 64)
	if price != "" && err != nil {
		return fmt.Errorf("usd: %w", err)
	}
	o := find(*list, hasID(id))
	switch {
	case id == "" || o == nil && form.Get("listed") == "false":
		return fmt.Errorf("%s %q: unknown", name, id)
	case form.Get("listed") == "false":
		*list = filter(*list, func(other Object) bool { return Text(other, "id") != id })
		return nil
	case o == nil:
		o, example["id"] = example, id
		*list = append(*list, o)
	}
	for _, field := range []string{"status", "fingerprint"} {
		if form.Has(field) {
			o[field] = form.Get(field)
		}
	}
	if price != "" {
		Put(o, usd, "price", "monthly", "usd")
	}
	return nil
}

// setTopup sets the status of the newest open top-up of an account; pending adds one.
func setTopup(w *World, form url.Values) error {
	a, err := w.account(form)
	if err != nil {
		return err
	}
	open := find(a.Topups, func(t Object) bool { return Text(t, "status") == "pending" || Text(t, "status") == "confirming" })
	status, now := form.Get("status"), time.Now()
	switch {
	case !slices.Contains(strings.Fields(topupStates), status):
		return fmt.Errorf("status %q: unknown", status)
	case status == "pending":
		a.Topups = slices.Insert(a.Topups, 0, newTopup(makeID("tu", Text(a.Account, "id"), now.UnixNano()), 100_00, coins()[0], now))
	case open == nil:
		return fmt.Errorf("account %q: without an open top-up", form.Get("account"))
	case status == "confirming":
		confirmTopup(open, 1)
	case status == "paid":
		a.credit(open, now)
	default:
		closeTopup(open, status)
	}
	return nil
}

// account returns the account that a form names.
func (w *World) account(form url.Values) (*Account, error) {
	for _, a := range w.accounts() {
		if Text(a.Account, "name") == form.Get("account") {
			return a, nil
		}
	}
	return nil, fmt.Errorf("account %q: unknown", form.Get("account"))
}

// setComponent sets the state of a component of a location.
func setComponent(w *World, form url.Values) error {
	states, _ := At(w.Status, "locations", form.Get("location"), "components").(Object)
	if states[form.Get("component")] == nil {
		return fmt.Errorf("component %q of location %q: unknown", form.Get("component"), form.Get("location"))
	}
	states[form.Get("component")] = form.Get("state")
	summarize(w.Status, time.Now())
	return nil
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
