package collector

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/url"
	"strings"
	"testing"

	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// fakeAPI is a rentalapi.Getter of the account main, whose responses come from a
// simulated provider at once.
type fakeAPI struct {
	*simulator.Simulator
	accounts map[string]*simulator.Account // by token; tests may change them between two requests
	token    string
	response rentalapi.Response
	body     func(query url.Values) []byte // if not nil, instead of the provider's
	before   func(query url.Values) error  // if not nil, called before each request, which fails with its error
	requests []string                      // status and page of each
}

func newFakeAPI() *fakeAPI {
	api := &fakeAPI{
		Simulator: simulator.New(simulator.Options{}),
		accounts:  map[string]*simulator.Account{simtest.MainToken: {}, simtest.LabToken: {}},
		token:     simtest.MainToken, response: rentalapi.Response{Received: today},
	}
	api.Change(func(w *simulator.World) { w.Accounts = api.accounts })
	return api
}

// Get implements rentalapi.Getter.
func (a *fakeAPI) Get(_ context.Context, path string, query url.Values, read func(io.Reader) error) (rentalapi.Response, error) {
	request := strings.TrimSpace(query.Get("status") + " " + query.Get("page"))
	a.requests = append(a.requests, request)
	if a.before != nil {
		if err := a.before(query); err != nil {
			return rentalapi.Response{}, err
		}
	}
	copy(a.response.Token[:], a.token)
	if a.body != nil {
		return a.response, read(bytes.NewReader(a.body(query)))
	}
	return a.response, read(strings.NewReader(a.Body(path+"?"+query.Encode(), a.token)))
}

// fetchTest fetches a resource of the account main, again and again.
type fetchTest struct {
	*fakeAPI
	t       *testing.T
	account *simulator.Account
	do      func(context.Context, rentalapi.Getter) (fetched, error)
}

func newFetchTest(t *testing.T, r Resource) *fetchTest {
	api := newFakeAPI()
	return &fetchTest{api, t, api.accounts[simtest.MainToken], newFetcher(t, r)}
}

// fetch returns the series of one fetch, its invalid items and its requests.
func (f *fetchTest) fetch() (series map[string]float64, invalid rentalapi.Invalid, requests string, err error) {
	f.t.Helper()
	f.requests = nil
	snap, err := f.do(f.t.Context(), f)
	return exposed(f.t, snap.Metrics), snap.Invalid, strings.Join(f.requests, ", "), err
}

// assertFetch fetches and compares the requests, the series of the families that are
// wanted, and the number of invalid items.
func (f *fetchTest) assertFetch(what, requests string, want map[string]float64, invalid int) {
	f.t.Helper()
	series, items, asked, err := f.fetch()
	if err != nil {
		f.t.Fatalf("%s: %v", what, err)
	}
	family := func(series string) string { name, _, _ := strings.Cut(series, "{"); return name }
	families := map[string]bool{}
	for s := range want {
		families[family(s)] = true
	}
	maps.DeleteFunc(series, func(s string, _ float64) bool { return !families[family(s)] })
	simtest.AssertEqual(f.t, what+": requests", asked, requests)
	simtest.AssertEqual(f.t, what+": series", series, want)
	simtest.AssertEqual(f.t, what+": invalid items", items.Items, invalid)
}
