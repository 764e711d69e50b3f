// Package conformance tests implementations of SPEC.md, which may be programs in any
// language.
//
//	.btv files ─btv→ Set ─expand→ cases ─ask→ Testee ─judge→ Report ─render→ text
//
// The table of operations, operation.go, holds all that depends on the operation: the form of its
// requests and answers, the codec's answer, how answers are compared, and what a report shows.
// A [Vector] is one expectation, written by hand from SPEC.md or recorded from
// the real library. [Run] runs each several times: as written, and with changed spill
// bits, which must make no difference. A [Testee] is the implementation under test: the
// codec of this module in process, or a program that speaks BTP/1 through pipes. README.md describes BTP/1, and btv/README.md the form of vectors.
//
// The runner uses package codec to find fields and spill bits, and to read the lines that an
// implementation writes. Tests compare the codec with example/testee.py, which is written from the text alone.
package conformance
