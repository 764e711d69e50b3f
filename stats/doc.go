// Package stats computes the size of a dump of compressed backtraces, and the size that
// it would have in other encodings.
//
//	stacks and blobs ─→ Collector ─ Report ─→ Report (data) ─┬ Sections ─→ text
//	                                                         └→ JSON
//
// A [Collector] stores each distinct call path once, as bits, with the number of
// allocations for each width of size. Its memory depends on the number of call paths
// and not on the length of the log: about 170 bytes for each path of 12 frames. All
// numbers in a [Report] are exact, except those that depend on upper bits of addresses which a
// lossy encoder dropped: they are marked as estimates (see regions.go).
package stats
