// Package grafana reads the committed dashboards. Names of fields are those of the JSON.
package grafana

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// Dashboard is a dashboard.
type Dashboard struct {
	UID        string
	Panels     []Panel
	Templating struct{ List []Variable }
}

// Link leads to a dashboard or elsewhere.
type Link struct{ URL string }

// Variable is what a user chooses.
type Variable struct {
	Name, Type, Query string
	Hide              int
}

// Panel is a panel or a row.
type Panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ W float64 } // of 24
	Targets                  []Target
	Links                    []Link
	FieldConfig              struct {
		Defaults struct {
			Unit                 string
			Mappings, Thresholds json.RawMessage
		}
		Overrides []struct{ Properties []Property }
	}
	Transformations []Transformation
	Options         struct {
		SortBy []SortBy
	}
}

// SortBy is the column by which a table is sorted.
type SortBy struct{ DisplayName string }

// Transformation joins, hides and renames fields.
type Transformation struct {
	Options struct {
		ExcludeByName                     map[string]bool
		RenameByName                      map[string]string
		ValueField, RowField, ColumnField string // of a matrix
	}
}

// Property is a setting of some fields.
type Property struct {
	ID    string
	Value json.RawMessage
}

// Target is a query of a panel.
type Target struct {
	RefID, Expr, LegendFormat string
	Instant                   bool
}

// Load returns the committed dashboards by uid.
func Load(t testing.TB) map[string]Dashboard {
	t.Helper()
	all := map[string]Dashboard{}
	for _, file := range repo.Glob(t, "dashboards/*.json") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d Dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[d.UID] = d
	}
	return all
}

// Query is a query of a panel.
type Query struct {
	Target
	Key   string // dashboard/panel/query
	Panel Panel
}

// Queries returns the queries of all panels.
func (d Dashboard) Queries() []Query {
	var all []Query
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			all = append(all, Query{q, fmt.Sprintf("%s/%d/%s", d.UID, p.ID, q.RefID), p})
		}
	}
	return all
}

// Interpolate replaces variables in a query. The others that a user chooses select all.
func Interpolate(expr string, values map[string]string) string {
	return os.Expand(expr, func(name string) string {
		if value, found := values[name]; found {
			return value
		}
		switch name {
		case "account", "plan":
			return ".+" // the value of All, or like all that are listed
		case "location", "watch":
			return ".*"
		default:
			return "$" + name // which Prometheus rejects, but for groups of patterns
		}
	})
}
