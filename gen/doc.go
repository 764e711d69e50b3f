// Package gen makes stacks and blobs to test with: stacks as programs on real
// address spaces have them, stacks that stand at the format's edges, and blobs
// that are wrong in exactly one way.
//
// Everything follows from a seed and is the same on every machine and with
// every version of Go: numbers come from PCG alone, and only integers are
// computed with.
//
//	Model ──seed──> Program ──Next──> codec.Stack, one after the other
//	VectorStacks                      what ref-c/vectors were recorded from
//	Faults ─────────────────────────> a blob, and the reason to reject it
//
// Package gentest has the same for property tests, where a failing case is to
// be made smaller.
package gen
