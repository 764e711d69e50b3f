// Package gen generates synthetic stacks and blobs for tests: stacks of programs in the
// address spaces of real machines, stacks at the limits of the format, and blobs with
// exactly one fault.
//
// All output depends on a seed alone and is the same on every machine and with every
// version of Go: the only source of numbers is PCG, and all arithmetic is on integers.
//
//	Model ──seed──> Program ──Next──> codec.Stack, one after the other
//	VectorStacks                      the stacks that ref-c/vectors were recorded from
//	Faults ─────────────────────────> a blob, and the reason to reject it
//
// Package gentest has generators for property tests, which shrink a failing case.
package gen
