// Package growth finds what grows in the dumps of a log: it prepares the values of call paths and
// heaps for package leak, which judges them.
//
//	Profile ─┬→ useDumps: which dumps can be compared, and when each was
//	         └→ the values of each row ──→ leak.Judge ──→ Leaks: rows, bugs of several paths, heaps
//
// [Judge] judges a profile, [Timeline] the values of a device that are no profile, and a [HeapTrend]
// what an allocator reported of a heap.
package growth
