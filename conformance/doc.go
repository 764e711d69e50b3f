// Package conformance tests implementations of SPEC.md, which may be programs in any
// language.
//
//	.btv files ─parse→ Set ─expand→ cases ─ask→ Testee ─judge→ Report ─render→ text
//
// A [Vector] is one expectation, written by hand from SPEC.md or recorded from
// the real library. [Run] runs each several times: as written, and with spill bits
// changed, which must make no difference. A [Testee] is what is tested: the codec of this module in process, a program that speaks BTP/1 through pipes, or
// the stock tool of lws. README.md beside this file describes both formats.
//
// The codec is not used to test the codec: where fields begin and which bits are spill
// bits comes from a vector's bits, or from an independent reader (internal/naive).
package conformance
