// Package fuzz holds the fuzz targets of all packages, for go test -fuzz, and the
// tests that take their input from a fuzzer. docs/fuzzing.md describes how to run them for
// longer, and their findings.
//
// Seeds come from corpus/ and from the vectors. A target without seeds fails.
package fuzz
