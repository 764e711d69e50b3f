// Package gentest generates stacks, machines and logs for tests: with rapid, which
// shrinks a failing case, and from the bytes of a fuzzer. Only tests import it.
package gentest
