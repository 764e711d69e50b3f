// Package profile holds heap profiles and makes reports on them. A heap profile is the
// allocations of one or more dumps, summed by call path.
//
//	records ─Builder→ Dump ─New→ Profile ─View→ Profile ─┬→ Top, Sites, Tree, Diff
//	events ─replay.Replay↗                               ├→ package export: pprof, folded, …
//	                                                     └→ package growth: what leaks
//
// A [Builder] adds up the records of each dump. A [Dump] refers to the call paths of its
// Builder and holds its own values. A [Profile] merges the call paths that look alike in a
// [View]. Dumps and profiles never change. The package reads no logs and no ELF files: the
// addresses of a call path come with their symbols (see [symbol.Addr]).
//
// Sums are unsigned 64-bit numbers. If a sum overflows, it is 2^64-1, and [Loss.Saturated]
// is set.
//
// The memory of a Builder depends on the number of distinct call paths, and not on the
// number of records: about 110 bytes per path of 16 addresses, and 50 bytes per distinct
// address.
package profile
