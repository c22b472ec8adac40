package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
)

func TestWebhook(t *testing.T) {
	var out strings.Builder
	send := func(body string) int {
		w := httptest.NewRecorder()
		webhook(&out).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		return w.Code
	}
	simtest.AssertEqual(t, "statuses", []int{
		send(`{"version": "4", "alerts": [{"status": "firing", "annotations": {"description": "Watch gpu: GPU L40S.", "link": "http://localhost:10170/order?plan=gpu-l40s"}},
			{"status": "resolved", "annotations": {"description": "The balance is low."}}]}`),
		send("no JSON"),
	}, []int{200, 400})
	simtest.AssertEqual(t, "lines", out.String(), "firing: Watch gpu: GPU L40S. http://localhost:10170/order?plan=gpu-l40s\nresolved: The balance is low.\n")
}
