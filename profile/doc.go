// Package profile is the data model of heap profiles: allocations by call path, one
// dump or several, and the reports on them.
//
//	records ─Builder→ Dump ─New→ Profile ─View→ Profile ─┬→ Top, Sites, Tree, Peek, Diff, Growth
//	events ──Replay──↗                                   └→ pprof, folded, speedscope, DHAT, …
//
// A [Builder] adds up the records of each dump. A [Dump] refers to the call paths of its
// Builder and holds its own values; a [Profile] merges the call paths of dumps that look
// alike in a [View]. Dumps and profiles never change. The package reads no logs and no
// ELF files: the addresses of a call path say what is known of them (see [symbol.Addr]).
//
// Sums are unsigned 64-bit numbers. A larger sum is the largest value, and
// [Loss.Saturated] is set. Exporters return notes on what their format cannot hold.
//
// The memory of a Builder depends on the number of distinct call paths, and not on the
// number of records: some 110 bytes for a path of 16 addresses, and 50 for each
// distinct address.
package profile
