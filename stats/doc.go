// Package stats computes the size of a dump of compressed backtraces, and what other
// encodings of it would take.
//
//	stacks and blobs ─→ Collector ─ Report ─→ Report (data) ─ Tables ─→ text, markdown, CSV
//	                                             └→ JSON
//
// A [Collector] keeps each distinct call path once, as bits, with the number of
// allocations of each width of size. Its memory depends on the program's call paths and
// not on the length of its log: about 150 bytes for each of 12 frames. Everything in a
// [Report] is computed from that, exactly; only two kinds of number are estimates, and
// say so: those that need the upper bits of addresses which a lossy encoder dropped
// (see regions.go), and gzip and zstd of dumps longer than the sample they are tried
// on.
package stats
