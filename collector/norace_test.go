//go:build !race

package collector

// racing is whether the race detector slows everything down.
const racing = false
