package simulator

import (
	_ "embed"
	"encoding/json"
	"time"
)

// catalogJSON is the documented catalog as the API sends it. recompute sets what follows
// from the stock: delivery, alternative, plans and plans_in_stock.
//
//go:embed catalog.json
var catalogJSON []byte

// catalog is the provider's data that all customers see, and what an example account saved.
type catalog struct {
	Plans, Locations, OS []Object
	Configurations       []Object // without ids, names, times and stock
}

// newCatalog returns a catalog that the caller may change.
func newCatalog() catalog {
	var c catalog
	if err := json.Unmarshal(catalogJSON, &c); err != nil {
		panic("simulator: catalog.json: " + err.Error())
	}
	return c
}

// operationalStatus returns the status without incidents.
func operationalStatus(locations []Object, now time.Time) Object {
	states := Object{}
	for _, l := range locations {
		states[Text(l, "id")] = Object{
			"city":       Text(l, "city"),
			"components": Object{"network": "operational", "ddos": "operational", "provisioning": "operational", "ipmi": "operational"},
		}
	}
	return Object{
		"overall": "operational", "since": date(now.AddDate(0, 0, -30)),
		"locations": states, "ongoing": 0, "scheduled": 0,
	}
}
