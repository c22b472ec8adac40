package simulator_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// TestLinks follows the links of plans, saved configurations and top-ups.
func TestLinks(t *testing.T) {
	const site = "http://127.0.0.1:4711"
	a := simtest.Start(t, simulator.Options{Site: site})
	open := func(url string) (status int, title string) {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
		if m := regexp.MustCompile(`<h1>(.*)</h1>`).FindStringSubmatch(w.Body.String()); m != nil {
			title = m[1]
		}
		return w.Code, title
	}
	titles := map[string]string{}
	for _, list := range []string{"/plans", "/configurations", "/topups"} {
		for _, v := range get(t, a, list, simtest.MainToken).object(t)["data"].([]any) {
			for name, link := range v.(simulator.Object)["links"].(simulator.Object) {
				url, found := strings.CutPrefix(link.(string), site)
				status, title := open(url)
				if !found || status != http.StatusOK {
					t.Errorf("%s: got status %d", link, status)
				}
				titles[list+" "+name] = title
			}
		}
	}
	simtest.AssertEqual(t, "last titles", titles, map[string]string{
		"/plans page": "GPU L40S", "/plans order": "Order GPU L40S",
		"/configurations order": "Order the saved configuration plan-3.main.example", "/topups page": "Top-up of $50.00: paid",
	})
	var got []int
	for _, url := range []string{"/order", "/order?plan=x", "/order?configuration=x", "/servers/", "/account/topups/x", "/"} {
		status, _ := open(url)
		got = append(got, status)
	}
	simtest.AssertEqual(t, "statuses of other pages", got, slices.Repeat([]int{http.StatusNotFound}, 6))
}
