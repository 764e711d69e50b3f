// Package gentest makes stacks, machines and logs for tests: as generators of
// rapid, which make a failing case smaller, and from the bytes that a fuzzer
// mutates. Only tests import it.
package gentest
