package simulator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestActivity lets a day pass: every state occurs, and balances follow from transactions.
func TestActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, seen := simulator.New(simulator.Options{}), map[string]bool{}
		s.Change(func(w *simulator.World) {
			for _, name := range []string{"one", "two"} {
				w.Accounts[name] = simulator.ExampleAccount(name, time.Now())
			}
		})
		ctx, stop := context.WithCancel(t.Context())
		go s.Run(ctx)
		for range 24 * 60 * 6 {
			time.Sleep(10 * time.Second)
			s.Change(func(w *simulator.World) { recordStates(w, seen) })
		}
		stop()
		synctest.Wait()
		s.Change(func(w *simulator.World) {
			for name, a := range w.Accounts {
				checkLedger(t, name, a)
			}
		})
		checkStates(t, seen, "pending confirming paid expired operational degraded outage scheduled "+
			"sold-out-2 sold-out-6 topup bonus renewal usage")
	})
}

// TestActivityWithoutPlans takes all plans off the list, one after the other.
func TestActivityWithoutPlans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ids := simulator.New(simulator.Options{}), []string{}
		s.Change(func(w *simulator.World) {
			for _, p := range w.Plans {
				ids = append(ids, simulator.Text(p, "id"))
			}
		})
		ctx, stop := context.WithCancel(t.Context())
		go s.Run(ctx)
		for _, id := range ids {
			time.Sleep(time.Hour)
			simulator.Control(s).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/plan?listed=false&plan="+id, nil))
		}
		time.Sleep(24 * time.Hour)
		stop()
		synctest.Wait()
		s.Change(func(w *simulator.World) { simtest.AssertEqual(t, "plans", len(w.Plans), 0) })
	})
}

func checkStates(t *testing.T, seen map[string]bool, states string) {
	t.Helper()
	for state := range strings.FieldsSeq(states) {
		if !seen[state] {
			t.Errorf("%s was never seen; seen: %v", state, slices.Sorted(maps.Keys(seen)))
		}
	}
}

// recordStates records the present states, those of the newest top-ups and transactions.
func recordStates(w *simulator.World, seen map[string]bool) {
	seen[simulator.Text(w.Status, "overall")] = true
	seen["scheduled"] = seen["scheduled"] || w.Status["scheduled"] == 1
	inStock := slices.DeleteFunc(slices.Clone(w.Plans), func(p simulator.Object) bool { return simulator.At(p, "availability", "in_stock") == false })
	seen[fmt.Sprintf("sold-out-%d", len(w.Plans)-len(inStock))] = true
	for _, a := range w.Accounts {
		seen[simulator.Text(a.Topups[0], "status")] = true
		for _, transaction := range a.Transactions[:5] {
			seen[simulator.Text(transaction, "type")] = true
		}
	}
}

// checkLedger checks the transactions of an account, which are newest first.
func checkLedger(t *testing.T, name string, a *simulator.Account) {
	t.Helper()
	cents := func(o simulator.Object, key string) int {
		return int(math.Round(100 * simulator.At(o, key, "usd").(float64)))
	}
	balance := cents(a.Account, "balance")
	ids := map[any]bool{}
	for _, transaction := range a.Transactions {
		if got := cents(transaction, "balance_after"); got != balance || got < 0 || ids[transaction["id"]] {
			t.Fatalf("%s: transaction %v: got a balance of %d, want %d", name, transaction["id"], got, balance)
		}
		ids[transaction["id"]] = true
		balance -= cents(transaction, "amount")
	}
}

// TestPast lets a month of the past happen, which ends in the data that an account begins with.
func TestPast(t *testing.T) {
	end := time.Date(2026, 11, 21, 11, 12, 0, 0, time.UTC)
	start := end.AddDate(0, 0, -30)
	past, seen := simulator.NewPast(start, end, map[string]string{"one": "main"}), map[string]bool{}
	simulator.New(simulator.Options{}).Change(func(w *simulator.World) {
		for at := start; !at.After(end); at = at.Add(20 * time.Minute) {
			past.Apply(w, at)
			recordStates(w, seen)
			checkLedger(t, "one", w.Accounts["one"])
		}
		simtest.AssertEqual(t, "account", w.Accounts["one"], simulator.ExampleAccount("main", end))
	})
	checkStates(t, seen, "pending confirming failed canceled operational degraded outage maintenance scheduled renewal")
}

// addShape records the JSON type of each field of a value by its path. Items of a list and
// of an object with ids as keys are one. Null has the type of other items.
func addShape(shape map[string]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if path == ".data.locations" {
				key = "*"
			}
			addShape(shape, path+"."+key, inner)
		}
	case []any:
		for _, inner := range v {
			addShape(shape, path, inner)
		}
	case string:
		shape[path] = "string"
	case bool:
		shape[path] = "bool"
	case float64:
		shape[path] = "number"
	}
}

// TestShape compares the fields of each endpoint with the documented ones, which the test
// data of the collectors has.
func TestShape(t *testing.T) {
	documents, err := filepath.Glob("../collector/testdata/*/document.golden")
	if err != nil || len(documents) < 10 {
		t.Fatalf("%v: %v", documents, err)
	}
	a := simtest.Start(t, simulator.Options{})
	for _, path := range documents {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var document any // the metrics follow it
		if err := json.NewDecoder(bytes.NewReader(text)).Decode(&document); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		endpoint := "/" + strings.ReplaceAll(filepath.Base(filepath.Dir(path)), "_", "-")
		got, want := map[string]string{}, map[string]string{}
		addShape(got, "", simtest.Decode(t, []byte(get(a, endpoint).Body)))
		addShape(want, "", document)
		simtest.AssertEqual(t, endpoint+" of simulator/resources.go, beside "+path, got, want)
	}
}
