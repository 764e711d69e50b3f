// Package conformance tests implementations of SPEC.md, which may be programs in any
// language.
//
//	.btv files ─parse→ Set ─expand→ cases ─ask→ Testee ─judge→ Report ─render→ text
//
// A [Vector] is an input and its expected output, written by hand from SPEC.md or recorded
// from the real library. [Run] runs each vector several times: as written, and with other
// spill bits, which must make no difference. A [Testee] is the implementation under test: the
// codec of this module in process, a program that speaks BTP/1 through pipes, or the stock
// tool of lws. README.md in this directory describes the format of vectors and BTP/1.
//
// The codec is not used to test itself: the positions of fields and spill bits come from the
// bits of a vector, or from an independent reader (internal/naive).
package conformance
