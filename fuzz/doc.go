// Package fuzz holds the fuzz targets of all packages, for go test -fuzz, and the
// tests that take their input from a fuzzer. conformance/README.md describes how to run them for
// longer.
//
// Seeds come from corpus/ and from the vectors. A target without seeds fails.
package fuzz
