package rentalapi

import (
	"encoding/json"
	"math"
	"testing"
)

// What the paging relies on holds of every meta object that is taken.
func FuzzPageMeta(f *testing.F) {
	for _, s := range []string{`{"total":3,"page":1,"pages":1}`, `{"total":0,"pages":0}`, `{"total":500001,"pages":2}`, `{"total":-1,"pages":1}`, `{"total":1e3,"pages":1}`, `null`, ``} {
		f.Add([]byte(s), 1)
	}
	f.Fuzz(func(t *testing.T, raw []byte, page int) {
		if page < 1 || page > math.MaxInt32 {
			return
		}
		m, err := readPageMeta(json.RawMessage(raw), page)
		if err == nil && (m.Total < 0 || m.Total > MaxTotal || m.Pages < 0 || m.Pages > max(m.Total, 1) || m.Page != page) {
			t.Errorf("%q, page %d: took %+v", raw, page, m)
		}
	})
}
