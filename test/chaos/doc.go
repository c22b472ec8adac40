// Package chaos holds tests only. They run the whole exporter under faults, load,
// crashes and attacks, and check what it guarantees regardless. docs/limits.md and
// docs/security.md describe the results.
//
// Environment variables:
//
//	CHAOS_LONG=1      long runs: more schedules and load, and checks of processor time and memory
//	CHAOS_RUNS=5000   number of fault schedules; default 10, long 200, with -short 3
//	CHAOS_SEED=17     seed of the first fault schedule; default 1
package chaos
