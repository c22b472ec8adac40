package runner

import (
	"runtime/debug"
	"sync"
)

// memoryFactor is how many times the text of all metrics the process needs, at most: the
// label values, six encodings, and what the garbage collector leaves.
const memoryFactor = 12

// memory bounds the text of all snapshots together, by the memory limit of the Go runtime
// (GOMEMLIMIT). Without one, it does not bound it.
type memory struct {
	limit int64 // bytes
	mu    sync.Mutex
	used  int64
}

func newMemory() *memory { return &memory{limit: debug.SetMemoryLimit(-1) / memoryFactor} }

// exchange replaces the bytes that a source holds. It returns false, and changes nothing,
// if there would be more than before and more than the limit.
func (m *memory) exchange(held *int, bytes int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	used := m.used + int64(bytes-*held)
	if used > m.used && used > m.limit {
		return false
	}
	m.used, *held = used, bytes
	return true
}
