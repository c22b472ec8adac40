package rentalapi

import (
	"net/http"
	"testing"
	"time"
)

func TestParseDelay(t *testing.T) {
	date := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"5":                              5 * time.Second,
		" 30 ":                           30 * time.Second,
		"1.5":                            1500 * time.Millisecond,
		"0":                              minPause,
		"3600":                           time.Hour,
		"86400":                          maxPause,
		"999999999":                      maxPause,
		"Sun, 01 Mar 2026 12:02:00 GMT":  2 * time.Minute,
		"1e3":                            time.Minute,
		"Sun, 01 Mar 2026 11:00:00 GMT":  minPause,
		"Sun, 01 Mar 2099 12:00:00 GMT":  maxPause,
		"Sunday, 01-Mar-26 12:00:20 GMT": 20 * time.Second,
		"1772366445":                     45 * time.Second, // the same day, 12:00:45
		"1772366445000":                  45 * time.Second,
		"1772366399":                     minPause,
		"99999999999":                    maxPause,
		"":                               unknownPause,
		"soon":                           unknownPause,
		"-3":                             unknownPause,
		"NaN":                            unknownPause,
		"Inf":                            unknownPause,
		"1e999":                          unknownPause,
	} {
		if got := parseDelay(value, date); got != want {
			t.Errorf("parseDelay(%q): got %v, want %v", value, got, want)
		}
	}
}

func TestRetryDelay(t *testing.T) {
	date := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	for name, c := range map[string]struct {
		status int
		header http.Header
		want   time.Duration
	}{
		"success":                        {200, header("RateLimit-Remaining", "5", "RateLimit-Reset", "9"), 0},
		"success and nothing remains":    {200, header("RateLimit-Remaining", "0", "RateLimit-Reset", "9"), 9 * time.Second},
		"nothing remains until an epoch": {200, header("RateLimit-Remaining", "0", "RateLimit-Reset", "1772366409"), 9 * time.Second},
		"nothing remains, no reset":      {200, header("RateLimit-Remaining", "0"), time.Minute},
		"429 with delay":                 {429, header("Retry-After", "7"), 7 * time.Second},
		"429 without delay":              {429, nil, time.Minute},
		"429 with a date":                {429, header("Retry-After", "Sun, 01 Mar 2026 12:00:08 GMT"), 8 * time.Second},
		"503 with delay":                 {503, header("Retry-After", "7"), 7 * time.Second},
		"503 without delay":              {503, nil, 0},
		"500 with delay":                 {500, header("Retry-After", "7"), 0},
		"429, later reset":               {429, header("Retry-After", "2", "RateLimit-Remaining", "0", "RateLimit-Reset", "40"), 40 * time.Second},
		"429, earlier reset":             {429, header("Retry-After", "60", "RateLimit-Remaining", "0", "RateLimit-Reset", "40"), time.Minute},
		"429, no reset":                  {429, header("Retry-After", "2", "RateLimit-Remaining", "0"), 2 * time.Second},
		"429, something remains":         {429, header("Retry-After", "2", "RateLimit-Remaining", "5", "RateLimit-Reset", "40"), 2 * time.Second},
		"429 with a reset only":          {429, header("RateLimit-Remaining", "0", "RateLimit-Reset", "40"), time.Minute},
		"503, later reset":               {503, header("Retry-After", "2", "RateLimit-Remaining", "0", "RateLimit-Reset", "40"), 40 * time.Second},
	} {
		got, cause := retryDelay(&http.Response{StatusCode: c.status, Header: c.header}, date)
		if got != c.want || (cause == "") != (c.want == 0) {
			t.Errorf("%s: got %v %q, want %v", name, got, cause, c.want)
		}
	}
}

func FuzzParseDelay(f *testing.F) {
	for _, s := range []string{"5", "1772366445", "Sun, 01 Mar 2026 12:02:00 GMT", "-1", "1e308", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := parseDelay(s, time.Now()); got < minPause || got > maxPause {
			t.Errorf("parseDelay(%q): %v is out of bounds", s, got)
		}
	})
}
