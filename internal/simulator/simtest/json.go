package simtest

import (
	"encoding/json"
	"testing"
)

// Decode reads a JSON object.
func Decode(t testing.TB, body []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%.100s: %v", body, err)
	}
	return v
}

// Encode returns a value as JSON.
func Encode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Put sets the value at a path of keys; objects on the way are made.
func Put(o map[string]any, value any, path ...string) {
	for _, key := range path[:len(path)-1] {
		inner, ok := o[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			o[key] = inner
		}
		o = inner
	}
	o[path[len(path)-1]] = value
}
