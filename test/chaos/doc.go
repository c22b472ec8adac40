// Package campaign holds tests only: they try to break the exporter as a whole,
// with faults, load, crashes and attacks, and check what it promises all the same.
// docs/limits.md and docs/security.md say what they found.
//
// These variables of the environment change what is run:
//
//	CAMPAIGN_RUNS=5000     schedules of faults; default 200, with -short 20
//	CAMPAIGN_SEED=17       the first schedule's seed, for other schedules or to repeat one that failed; default 1
//	CAMPAIGN_LOAD=1m       how long 100 scrapers scrape; default 10s, with -short 2s
//	CAMPAIGN_ACCOUNTS=200  accounts of 500 servers in the measurement of size; default: not run
package campaign
