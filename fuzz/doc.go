// Package fuzz holds the fuzz targets of all packages, for go test -fuzz, and the
// tests that take their input from a fuzzer. docs/fuzzing.md says how to run them for
// longer, and what they found.
//
// Seeds come from corpus/ and from the vectors; without any, a target fails.
package fuzz
