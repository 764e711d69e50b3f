// Package profile adds up allocations by call path: one dump or many, in memory
// that depends on how many distinct call paths there are, not on how many records.
//
//	records ─Add→ Profile: locations, call paths, Dumps ─View→ names ─┬→ Top, Tree, Diff, Growth
//	                                                                  └→ pprof, folded, speedscope, DHAT, …
//
// A [Profile] holds addresses. The caller sets the [Location] of each address, with its
// frames; this package reads no files. A [View] decides which frames are shown and by
// what name, and every report is made through one.
//
// Sums are unsigned 64-bit numbers. A larger sum stays at the largest value, and
// Profile.Saturated says so; what an output format cannot hold is said by the exporter.
package profile
