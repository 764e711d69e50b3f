// Package conformance tests implementations of SPEC.md: programs in any language.
//
//	.btv files ─parse→ Set ─expand→ cases ─ask→ Testee ─judge→ Report ─render→ text
//
// A [Vector] is one expectation, written by hand from SPEC.md or recorded from
// the real library. The runner asks each many times over: as written, and with
// spill bits changed, which must not matter. A [Testee] is whatever answers: the
// codec of this module in process, a program that speaks BTP/1 through pipes, or
// the stock tool of lws. README.md beside this file describes both formats.
//
// Nothing here trusts the codec to test the codec: where fields begin and which
// bits are spill bits comes from a vector's bits, or from a reader of its own
// that takes one bit at a time (internal/naive).
package conformance
