package runner

// memoryFactor is how many times the text of all metrics the process needs, at most: the
// label values, six encodings, and what the garbage collector leaves.
const memoryFactor = 12

// reserve replaces the bytes of text that a source holds. It returns false, and changes
// nothing, if there would be more than before and more than the memory limit of the Go
// runtime (GOMEMLIMIT) allows for all sources together.
func (src *source) reserve(bytes int) bool {
	more := int64(bytes) - src.bytes
	if used := src.runner.memoryUsed.Add(more); more > 0 && used > src.runner.memoryLimit {
		src.runner.memoryUsed.Add(-more)
		return false
	}
	src.bytes = int64(bytes)
	return true
}
